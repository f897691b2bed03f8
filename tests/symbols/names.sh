#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every mangled name of the largest C++ and Rust files here, demangled by hearth and by other tools (names.py compares).
#   names.sh BUILD [FILE...]
set -eu
demangle=$(readlink -f "$1")/symbols/demangle
shift
[ $# -gt 0 ] || {
	library=/usr/lib/$(gcc -print-multiarch)
	set -- "$library"/{libLLVM-14.so.1,libclang-cpp.so.14,libstdc++.so.6} /usr/bin/node "$(rustc --print sysroot 2>/dev/null)"/lib/*.so
}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for file; do
	[ -f "$file" ] || continue
	nm --defined-only "$file" 2>/dev/null || :
	nm -D --defined-only "$file" 2>/dev/null || :
done | awk '{ sub(/@.*/, "", $NF); print $NF }' | grep -E '^_[ZR]' | sort -u >"$scratch/names" || :

# run OUTPUT COMMAND...: the names through a filter; without it there is no OUTPUT
run() {
	local output=$scratch/$1
	shift
	! command -v "$1" >/dev/null || "$@" <"$scratch/names" >"$output"
}
run short "$demangle" short
run full "$demangle" full
run full_hash "$demangle" full hash
run cxxfilt_short c++filt -p -i
run cxxfilt c++filt
run llvm "$(command -v llvm-cxxfilt || echo llvm-cxxfilt-14)"
run rustfilt rustfilt
run rustfilt_hash rustfilt -h
exec "$(dirname "$0")/names.py" "$scratch"
