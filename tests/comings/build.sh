#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds the programs of this folder into OUTDIR.   build.sh OUTDIR
set -eu
[ $# = 1 ] || {
	echo "usage: $0 OUTDIR" >&2
	exit 2
}
out=$(cd "$1" && pwd)
cd "$(dirname "$0")"
cc="${CC:-gcc} -O2 -g0 -fomit-frame-pointer -fno-plt -D_GNU_SOURCE" # no stubs, which have no names

for program in reopen memfd orphan reuse swarm hugetext crowded crowd; do
	$cc -pthread -o "$out/$program" $program.c -ldl
done
# part NAME FILE OPTION...: a build of part.c
part() {
	local name=$1 file=$2
	shift 2
	$cc -DNAME="$name" -o "$out/$file" part.c "$@"
}
room=1
for x in a b c d m o r h; do
	part lib$x lib$x.so -DLIBRARY -DROOM=$room -shared -fPIC -Wl,-Bsymbolic -Wl,-soname,lib$x.so
	room=$((21 - room)) # the next one's frames are larger or smaller: another's rows are wrong
done
part libw libw.so -DLIBRARY -DALONE -shared -fPIC -Wl,-Bsymbolic -nostdlib
part parta reuse_a
part partb reuse_b
for x in one two six; do
	part part$x chain_$x
done
part oldone replaced_old -DCOMM='"replaced_old"'
part newone replaced_new -DCOMM='"replaced_new"'
part removed removed
for x in outside inside jailed hanging; do
	part $x $x -static -DCOMM="\"$x\""
done
part lower lower -DCOMM='"lower"'
part upper upper -DCOMM='"upper"'
part memory memory -DCOMM='"memory"'
part many many -DCOMM='"many"' -Wl,--build-id=0x00112233445566778899aabbccddeeff
part mote mote
part atom atom -static
