#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Names, files and lines of random code addresses against other tools (compare.py says how, and why differences are right).
#   run.sh BUILD short|long [RESOLVER]     short: some thousand addresses; long: more than 100,000 over all that is here
# RESOLVER: the command that is judged, called with FILE and '-'.
set -eu
[ $# -ge 2 ] || {
	echo "usage: $0 BUILD short|long [RESOLVER]" >&2
	exit 2
}
build=$(readlink -f "$1")
form=$2
resolver=${3:-$build/hearth symbols resolve --symbol-cache $build/no-such-folder --demangle none}
cd "$(dirname "$0")"
programs=$build/symbols
command -v llvm-symbolizer >/dev/null || {
	echo "no llvm-symbolizer here"
	exit 77
}

files=()
# add FILE...: those that are here, with their debug files where a package brought them
add() {
	local file id
	for file; do
		file=$(readlink -f "$file") && [ -f "$file" ] || continue
		id=$(readelf -nW "$file" 2>/dev/null | sed -n 's/.*Build ID: //p')
		id=/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug
		[ ! -f "$id" ] || file=$file=$id
		files+=("$file")
	done
}

library=/usr/lib/$(gcc -print-multiarch)
case $form in
short)
	./build.sh "$programs" cpp c_static go
	add "$programs"/{cpp,c_static,go} "$library/libc.so.6" "$build/hearth"
	exec ./compare.py --count 800 "$resolver" "${files[@]}"
	;;
long)
	./build.sh "$programs"
	for file in "$programs"/*; do
		[[ $file == *_stripped || ! -x $file ]] || add "$file"
	done
	add "$library"/{libc.so.6,libm.so.6,libstdc++.so.6,libgcc_s.so.1,libcrypto.so.3,libpython3.11.so.1.0,libcurl.so.4} \
		"$library"/{ld-linux-x86-64.so.2,libLLVM-14.so.1,libclang-cpp.so.14,libdw.so.1,libbfd-*-system.so} \
		/usr/bin/{python3.11,python3.11-dbg,redis-server,node,git,gdb,bash,perf,ld.bfd} \
		"$build/hearth" "$build/judge/judge" "$build"/bench/symbols/bin/{rg,addr2line} /usr/local/go/bin/go /usr/lib/go-1.19/bin/go
	second=0
	! command -v eu-addr2line >/dev/null || second=60
	exec ./compare.py --count 3000 --elfutils $second "$resolver" "${files[@]}"
	;;
esac
echo "no such form: $form" >&2
exit 2
