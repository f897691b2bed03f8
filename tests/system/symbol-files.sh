#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Names wherever a program's debug information is: in a file found by build id or by .gnu_debuglink, in .gnu_debugdata, in .dwo and
# .dwp files, at a debuginfod server, in Go's own table. First asked for by address, held against llvm-symbolizer's answers for the
# same program before anything was taken from it; then in recordings of programs that are gone when they are named.
. "$TOP/tests/system/lib.sh"
if [ -z "${IN_NAMESPACE:-}" ]; then # a /usr/lib/debug of our own
	[ "$(id -u)" = 0 ] || skip "needs root"
	unshare -m true 2>/dev/null || skip "no mount namespaces here"
	made=$(mkdir -v /usr/lib/debug 2>/dev/null) || :
	status=0
	IN_NAMESPACE=1 unshare -m -n "$0" || status=$? # and a loopback device of our own for the server
	[ -z "$made" ] || rmdir /usr/lib/debug
	exit $status
fi
mount -t tmpfs debug-files /usr/lib/debug
command -v llvm-symbolizer >/dev/null || skip "no llvm-symbolizer here"
export HOME=$PWD XDG_CACHE_HOME=$PWD/cache
unset DEBUGINFOD_URLS

programs=$(dirname "$HEARTH")/symbols
"$TOP/tests/symbols/build.sh" "$programs" cpp go go_stripped
[ -x "$programs/cpp" ] || skip "no g++ here"

build_id() {
	readelf -nW "$1" | sed -n 's/.*Build ID: //p'
}

# named WHOLE FILE: hearth names addresses of FILE as the judges do those of WHOLE
named() {
	echo "--- $2"
	"$TOP/tests/symbols/compare.py" --count 400 --judge "$1" "$HEARTH symbols resolve --symbol-cache $PWD/none --demangle none" "$2" ||
		fail "$2 is not named as $1"
}

# nameless FILE: nothing tells of its functions; what is asked below is not answered by accident
nameless() {
	! "$HEARTH" symbols resolve --symbol-cache "$PWD/none" "$1" "$(nm "$programs/cpp" | sed -n 's/ T _ZN4work4spinEm$//p')" |
		grep spin || fail "$1 is not stripped"
}

# strip_to NAME: the program NAME without anything, NAME.debug with it
strip_to() {
	objcopy --only-keep-debug "$programs/cpp" "$1.debug"
	strip -o "$1" "$programs/cpp"
}

# --- by address ---
strip_to by_id
nameless by_id
id=$(build_id by_id)
mkdir -p "/usr/lib/debug/.build-id/${id:0:2}"
mv by_id.debug "/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug"
named "$programs/cpp" by_id
rm -r /usr/lib/debug/.build-id

strip_to by_link
objcopy --remove-section .note.gnu.build-id by_link.debug
objcopy --remove-section .note.gnu.build-id by_link
objcopy --add-gnu-debuglink=by_link.debug by_link
named "$programs/cpp" by_link
printf x >>by_link.debug # another checksum
nameless by_link
rm by_link.debug

# As distributions do it: the symbols that .dynsym does not have, compressed. No DWARF, so the judge gets none either.
if command -v xz >/dev/null; then
	strip_to mini
	nm -D mini --format=posix --defined-only | awk '{ print $1 }' | sort >exported
	nm mini.debug --format=posix --defined-only | awk '$2 == "T" || $2 == "t" || $2 == "W" { print $1 }' | sort >all
	comm -13 exported all >only
	objcopy -S --remove-section .comment --keep-symbols=only mini.debug mini.symbols
	xz mini.symbols
	objcopy --add-section .gnu_debugdata=mini.symbols.xz mini
	objcopy -g "$programs/cpp" symbols_only
	named symbols_only mini
else
	left_out xz "not here"
fi

# answers FILE: hearth's for addresses throughout the function spin and what is inlined into it
answers() {
	local start
	start=$((16#$(nm "$1" | sed -n 's/ T _ZN4work4spinEm$//p')))
	for i in $(seq 0 4 200); do
		printf '%x\n' $((start + i))
	done | "$HEARTH" symbols resolve --symbol-cache "$PWD/none" --demangle none "$1" -
}

for version in 4 5; do
	split=split$version
	g++ -std=c++17 -O2 -gdwarf-$version -gsplit-dwarf -o $split "$TOP/tests/symbols/programs/work.cc"
	named $split $split
	answers $split >with_dwo
	grep -q chrono with_dwo || fail "no inlined call in $split: $(head -n 20 with_dwo)"
	dwp=$(command -v llvm-dwp || command -v llvm-dwp-14) || { left_out "$split.dwp" "no llvm-dwp here" && continue; }
	"$dwp" -e $split -o $split.dwp
	rm ./*.dwo
	named $split $split
	answers $split >with_dwp
	cmp with_dwo with_dwp || fail "$split.dwp says something else than the .dwo file"
	rm $split.dwp
	answers $split >with_neither
	! cmp -s with_dwo with_neither || fail "inlined calls of $split without its .dwo file"
done

if [ -x "$programs/go_stripped" ]; then
	named "$programs/go" "$programs/go_stripped"
else
	left_out go "no go here"
fi

# --- from a server ---
if command -v debuginfod >/dev/null && ip link set lo up; then
	echo "--- debuginfod"
	mkdir served
	strip_to far
	cp far served/far
	mv far.debug served/
	start debuginfod.out debuginfod -p 8002 -d "$PWD/debuginfod.sqlite" -F -t 5 served
	curl -sf --retry 20 --retry-connrefused --retry-delay 1 -o /dev/null http://127.0.0.1:8002/metrics || fail "no debuginfod: $(cat debuginfod.out.err)"
	until_true 30 curl -sf -o /dev/null "http://127.0.0.1:8002/buildid/$(build_id far)/debuginfo" || fail "debuginfod does not serve what it should"
	nameless far
	DEBUGINFOD_URLS=http://127.0.0.1:8002 named "$programs/cpp" far
	kill "$started"
	DEBUGINFOD_URLS=http://127.0.0.1:8002 named "$programs/cpp" far # out of the cache
else
	left_out debuginfod "not here"
fi

# --- recorded: the program is deleted while it runs, is in a chroot of another mount namespace, or runs for 20 ms ---
need_bpf
# with_id FILE DIGIT: changes the build id, so that no other file's names fit
with_id() {
	objcopy --dump-section .note.gnu.build-id=note "$1" /dev/null
	printf '%b' "\\x$2$2" | dd of=note bs=1 seek=20 conv=notrunc status=none
	objcopy --update-section .note.gnu.build-id=note "$1"
}

# place NAME DIGIT ROOT: a stripped program ROOT/NAME, its debug file below ROOT
place() {
	local id
	strip_to "$1"
	with_id "$1" "$2"
	with_id "$1.debug" "$2"
	id=$(build_id "$1")
	mkdir -p "$3/usr/lib/debug/.build-id/${id:0:2}"
	mv "$1.debug" "$3/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug"
}

place gone 1 ''
place brief 2 ''
place jailed 3 jail
mv jailed jail/
ldd jail/jailed | grep -o '/[^ ]*' | while read -r library; do cp -L --parents "$library" jail; done
start_record all.otlp -F 499 -p $$ # and its children
start gone.out ./gone 4000
gone=$started
start jailed.out unshare -m chroot jail /jailed 4000
jailed=$started
sleep 0.3
rm gone
for i in $(seq 60); do
	./brief 20 >/dev/null
done
rm brief
wait "$gone" "$jailed"
stop "$recorder"
cat record.out.err
accounted record.out.err
"$HEARTH" report all.otlp --format folded >folded
for comm in gone jailed brief; do
	all=$(awk -v comm="$comm" -F';' '$1 == comm && /;main;/ { sub(/.* /, ""); n += $0 } END { print n + 0 }' folded)
	named=$(awk -v comm="$comm" -F';' '$1 == comm && /;main;(work::spin|work::words|std::)/ { sub(/.* /, ""); n += $0 } END { print n + 0 }' folded)
	inlined=$(awk -v comm="$comm" -F';' '$1 == comm && /work::spin;work::Mixer<unsigned long>::many;work::Mixer<unsigned long>::once/ { sub(/.* /, ""); n += $0 } END { print n + 0 }' folded)
	echo "$comm: $all samples below main, $named named, $inlined with the inlined call"
	[ "$all" -ge 100 ] && [ $((named * 100)) -ge $((all * 95)) ] || fail "$comm is not named: $(grep "^$comm;" folded | sort -t' ' -k2 -n | tail -n 5)"
	[ "$inlined" -ge $((all / 10)) ] || fail "no inlined calls in $comm: $(grep "^$comm;" folded | tail -n 5)"
done
