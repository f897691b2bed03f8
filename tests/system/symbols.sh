#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `hearth symbols`: addresses of a C++ program with inlined calls named as llvm-symbolizer names them, out of the file and out of
# its index; and what becomes of an index that is damaged, of a file that changes, of a debug file that comes later.
. "$TOP/tests/system/lib.sh"
command -v llvm-symbolizer g++ objcopy >/dev/null || skip "needs llvm-symbolizer, g++ and objcopy"
export HEARTH_SYMBOL_CACHE=$PWD/folder
unset DEBUGINFOD_URLS

cat >program.cc <<'END'
#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <vector>
namespace deep {
template <class T> struct box {
	std::vector<T> all;
	void add(T x) { all.push_back(x); }
	T most() const { return *std::max_element(all.begin(), all.end()); }
};
static inline int twice(int x) { return x + x; }
static inline int more(int x) { return twice(x) + 1; }
__attribute__((noinline)) int work(int n)
{
	box<int> b;
	for (int i = 0; i < n; i++)
		b.add(more(i) ^ n);
	return b.most();
}
}
int main(int argc, char **)
{
	std::map<std::string, int> m;
	for (int i = 0; i < argc + 3; i++)
		m[std::to_string(i)] = deep::work(i + 5);
	for (auto &p : m)
		printf("%s %d\n", p.first.c_str(), p.second);
	return 0;
}
END
g++ -g -O2 -o program program.cc || fail "g++"
read -r start bytes < <(readelf -SW program | sed -nE 's/.* \.text +PROGBITS +([0-9a-f]+) [0-9a-f]+ ([0-9a-f]+) .*/\1 \2/p')
for ((at = 0x$start; at < 0x$start + 0x$bytes; at++)); do printf '0x%x\n' "$at"; done >addrs
[ "$(wc -l <addrs)" -gt 1000 ] || fail "the program is too small"

# The same as llvm-symbolizer, every byte: as in the file, and in full.
# Where no line is known it takes the file from the symbol table.
as_dwarf='sed s/^crtstuff.c:0:0$/??:0:0/'
llvm-symbolizer --obj=program --no-demangle <addrs | $as_dwarf >want
"$HEARTH" symbols resolve --demangle none program <addrs >cold 2>err || fail "exit status $?: $(cat err)"
diff want cold >difference || fail "not what llvm-symbolizer says: $(head -n 10 difference)"
grep -q '^_ZN4deep4workEi$' want && grep -q '^_ZN4deep3boxIiE3addEi$' want || fail "nothing inlined was compared"
llvm-symbolizer --obj=program --no-demangle --no-inlines <addrs | $as_dwarf >want.outer
"$HEARTH" symbols resolve --demangle none --no-inline program <addrs >cold.outer
diff want.outer cold.outer >difference || fail "without inlines: $(head -n 10 difference)"
[ ! -e folder ] || fail "resolve made a folder"

# Out of the index: the same bytes.
"$HEARTH" symbols build program 2>err || fail "build: $(cat err)"
grep -Eq 'index of program: [0-9]+ functions from DWARF' err || fail "build says: $(cat err)"
"$HEARTH" symbols show program >shown || fail "show"
grep -q '^best source DWARF$' shown && grep -q 'checksums right$' shown || fail "show says: $(cat shown)"
mkdir -m 700 aside && mv program.cc aside # nothing is read of the sources
"$HEARTH" symbols resolve --demangle none program <addrs | cmp - cold || fail "the index says something else"
objcopy --strip-all program stripped
! "$HEARTH" symbols resolve --demangle none stripped <addrs | grep -q deep || fail "a stripped program, which has the same build id, took the other's index"

# Addresses as arguments, in all forms; what is no address comes back.
work=$(nm program | sed -n 's/ T _ZN4deep4workEi$//p')
"$HEARTH" symbols resolve program "$work" "0x$work" nonsense 1 >out || fail "arguments"
sed -n 1p out | grep -qx 'deep::work' || fail "not named: $(cat out)"
sed -n 4p out | grep -qx 'deep::work' && sed -n 7p out | grep -qx nonsense || fail "not in order: $(cat out)"
[ "$(tail -n 3 out)" = $'??\n??:0:0' ] || fail "an unknown address: $(tail -n 3 out)"
"$HEARTH" symbols resolve --demangle full program "$work" | grep -qx 'deep::work(int)' || fail "not in full"

# As a co-process: each line is answered before the next is asked.
for from in "--symbol-cache $PWD/folder" "--symbol-cache $PWD/empty"; do
	# shellcheck disable=SC2086
	coproc "$HEARTH" symbols resolve $from program -
	asked=$COPROC_PID
	for round in 1 2 3; do
		echo "$work" >&"${COPROC[1]}"
		read -r -t 20 line <&"${COPROC[0]}" || fail "no answer number $round"
		[ "$line" = deep::work ] || fail "answer number $round: $line"
		while read -r -t 20 line <&"${COPROC[0]}" && [ "$line" ]; do :; done
	done
	exec {COPROC[1]}>&-
	wait "$asked" || fail "exit status $? at the end of the input"
done

# A damaged index is not believed: behind the head by who asks, the head by who opens.
index=folder/$(ls folder)
printf '\377\377\377\377' | dd of="$index" bs=1 seek=$(($(stat -c %s "$index") / 2)) conv=notrunc status=none
"$HEARTH" symbols resolve --demangle none program <addrs >again 2>err || fail "a damaged index: $(cat err)"
cmp again cold || fail "a damaged index was believed"
"$HEARTH" symbols prune 2>err && grep -q '1 broken' err || fail "prune says: $(cat err)"
[ ! -e "$index" ] || fail "prune kept a damaged index"
"$HEARTH" symbols build program 2>/dev/null && printf x | dd of="$index" bs=1 seek=60 conv=notrunc status=none
"$HEARTH" symbols resolve --demangle none program <addrs | cmp - cold || fail "a damaged head was believed"
"$HEARTH" symbols build program 2>/dev/null && chmod 666 "$index"
"$HEARTH" symbols resolve --demangle none program <addrs | cmp - cold && [ ! -e "$index" ] || fail "anybody's index was believed"

# Another user's file has an index of its own.
if [ "$(id -u)" = 0 ]; then
	cp program theirs && chown 12345 theirs
	"$HEARTH" symbols build theirs 2>/dev/null && [ "$(ls folder)" = "$(basename "$index")-u12345" ] || fail "not apart: $(ls folder)"
	"$HEARTH" symbols prune theirs && [ -z "$(ls folder)" ] || fail "prune left $(ls folder)"
fi

# An index of what a stripped file has, then its debug file comes.
objcopy --only-keep-debug program stripped.debug && objcopy --add-gnu-debuglink=stripped.debug stripped linked && mv stripped.debug aside
"$HEARTH" symbols build linked 2>/dev/null
"$HEARTH" symbols resolve linked "$work" >out 2>err && grep -qx '??' out || fail "named from nowhere: $(cat out)"
mv aside/stripped.debug .
"$HEARTH" symbols resolve --demangle none linked <addrs >again 2>err || fail "$(cat err)"
cmp again cold || fail "not named from the debug file"
grep -q 'made without a debug file that is there now' err || fail "it does not say so: $(cat err)"
"$HEARTH" symbols build linked 2>/dev/null && "$HEARTH" symbols show linked | grep -q '^also read *debug file' || fail "not read for the index"

# The same from a server (a folder stands for it), into the cache that debuginfod's clients share; once it is there, without.
build_id=$(readelf -n program | awk '/Build ID/ { print $3 }')
mkdir -p "served/buildid/$build_id" && mv stripped.debug "served/buildid/$build_id/debuginfo" && rm -rf folder
export DEBUGINFOD_CACHE_PATH=$PWD/cache
DEBUGINFOD_URLS=file://$PWD/served "$HEARTH" symbols resolve --demangle none linked <addrs >again 2>err || fail "$(cat err)"
cmp again cold && [ -s "cache/$build_id/debuginfo" ] || fail "not named from the server"
DEBUGINFOD_URLS=file:///nowhere "$HEARTH" symbols resolve --demangle none linked <addrs >again 2>err && cmp again cold || fail "not from the cache"
rm -r cache
DEBUGINFOD_URLS=file:///nowhere "$HEARTH" symbols resolve linked "$work" >out 2>err && grep -qx '??' out || fail "named from nowhere: $(cat out)"
unset DEBUGINFOD_CACHE_PATH

# What is wrong is said.
for words in '' nothing build 'build addrs' 'build nowhere' 'resolve addrs 1' 'show nowhere' 'resolve'; do
	# shellcheck disable=SC2086
	! "$HEARTH" symbols $words >out 2>err </dev/null || fail "'symbols $words' went well"
	[ -s err ] || fail "'symbols $words' says nothing"
done
echo "$(wc -l <addrs) addresses"
