#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes a folder that holds hearth with all its libraries, the C library too, and runs on any Linux of its CPU, from any place.
#   usage: tools/package/bundle.sh BUILD FOLDER [ARCH [SYSROOT]]      fills FOLDER: bin/hearth, lib/, share/, LIBRARIES
# LIBRARIES has a line for each library: its name, package and version. ARCH is a Debian name, this machine's unless given; another one's
# libraries are in SYSROOT, as the cross build's are.
set -eu
build=$(realpath "${1:?usage: bundle.sh BUILD FOLDER [ARCH [SYSROOT]]}")
out=$(realpath -m "${2:?usage: bundle.sh BUILD FOLDER [ARCH [SYSROOT]]}")
here=$(dpkg --print-architecture)
arch=${3:-$here}
case $arch in
amd64) triple=x86_64-linux-gnu ;;
arm64) triple=aarch64-linux-gnu ;;
*) echo "bundle.sh: hearth is for amd64 and arm64" >&2 && exit 2 ;;
esac
root=/ cross='' sysroot=()
if [ "$arch" != "$here" ]; then
	root=$(realpath "${4:?a SYSROOT}") cross=$triple- sysroot=("--sysroot=$root")
fi
cd "$(dirname "$0")/../.."
umask 022
rm -rf "$out"
mkdir -p "$out/bin" "$out/lib"
make --no-print-directory install DESTDIR="$out/.stage" PREFIX=/ BUILD="$build" ARCH="$arch" ${4:+SYSROOT="$4"} >/dev/null
mv "$out/.stage/bin/hearth" "$out/lib/hearth"
mv "$out/.stage/share" "$out/share"
rm -rf "$out/.stage"

# libcurl is loaded when it is needed; names of users and hosts are looked up by libraries that the C library loads.
tools/package/libraries.py "$root" "$triple" "$build/hearth" libcurl.so.4 libnss_files.so.2 libnss_dns.so.2 >"$out/.libraries"
while read -r library package version; do
	name=$(basename "$library")
	case $name in
	ld-linux*) install -m 755 "$library" "$out/lib/ld.so" && name=ld.so ;;
	*) install -m 644 "$library" "$out/lib/$name" ;;
	esac
	echo "$name $package $version"
done <"$out/.libraries" | sort >"$out/LIBRARIES"
rm "$out/.libraries"
"${cross}gcc" -O2 -static -s -Wall -Wextra -Werror "${sysroot[@]}" -o "$out/bin/hearth" tools/package/start.c
install -m 644 LICENSE "$out/LICENSE"
