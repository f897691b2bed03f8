#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes a folder that holds hearth with all its libraries, the C library too, and runs on any Linux of this CPU, from any place.
#   usage: tools/package/bundle.sh BUILD FOLDER      fills FOLDER: bin/hearth, lib/, share/, LIBRARIES
# LIBRARIES names each library's package and version.
set -eu
build=$(realpath "${1:?usage: bundle.sh BUILD FOLDER}")
out=$(realpath -m "${2:?usage: bundle.sh BUILD FOLDER}")
cd "$(dirname "$0")/../.."
umask 022
rm -rf "$out"
mkdir -p "$out/bin" "$out/lib"
make --no-print-directory install DESTDIR="$out/.stage" PREFIX=/ BUILD="$build" >/dev/null
mv "$out/.stage/bin/hearth" "$out/lib/hearth"
mv "$out/.stage/share" "$out/share"
rm -rf "$out/.stage"

libraries() { # FILE...
	ldd "$@" | sed -nE 's/.* => (\/[^ ]*) .*/\1/p' | sort -u
}
curl=$(ldconfig -p | sed -nE 's/.*libcurl\.so\.4 .* => (.*)/\1/p' | head -n 1)
: >"$out/LIBRARIES"
{
	libraries "$out/lib/hearth" "$curl"
	echo "$curl"
	# Names of users and hosts are looked up by libraries that the C library loads.
	ldconfig -p | sed -nE 's/.* => (.*\/libnss_(files|dns)\.so\.2)$/\1/p'
} | sort -u | while read -r library; do
	install -m 644 "$library" "$out/lib/$(basename "$library")"
	dpkg-query -S "$(realpath "$library")" "$library" 2>/dev/null | sed -n 's/: .*//p' | head -n 1 |
		xargs -r dpkg-query -W -f '${Package} ${Version}\n' >>"$out/LIBRARIES" || :
done
sort -u -o "$out/LIBRARIES" "$out/LIBRARIES"
loader=$(ldd "$out/lib/hearth" | sed -nE 's/^\s*(\/[^ ]*ld-linux[^ ]*) .*/\1/p')
install -m 755 "$loader" "$out/lib/ld.so"
${CC:-gcc} -O2 -static -s -Wall -Wextra -Werror -o "$out/bin/hearth" tools/package/start.c
install -m 644 LICENSE "$out/LICENSE"
