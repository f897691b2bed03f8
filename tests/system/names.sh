#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Functions by name, with inlined calls, files and lines, as llvm-symbolizer says them of the same addresses: a C++ program with
# its debug information, the same stripped with a debug file beside it, deleted while it runs, in a chroot that is deleted
# with it; one that runs 20 ms; one whose files break who reads them, which is named out of its tables. The second start
# reads no debug information.
. "$TOP/tests/system/lib.sh"
need_bpf
judge_of_names=$(command -v llvm-symbolizer || ls /usr/bin/llvm-symbolizer-* 2>/dev/null | head -n 1) || :
[ -n "$judge_of_names" ] || skip "no llvm-symbolizer here"

cat >names.cc <<'END'
#include <cstdlib>
#include <cstdio>
#include <ctime>
namespace work {
template <typename T> struct mixer {
	T state;
	inline void add(T x)
	{
		state = state * 31 + x;
		state ^= state >> 7;
	}
};
static inline unsigned long step(mixer<unsigned long> &m, unsigned long i)
{
	for (int k = 0; k < 50; k++)
		m.add(i + k);
	return m.state;
}
__attribute__((noinline, noclone)) unsigned long run(unsigned long n)
{
	mixer<unsigned long> m{ n };
	volatile unsigned long sum = 0;
	for (unsigned long i = 0; i < n; i++)
		sum += step(m, i);
	return sum;
}
}
int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 1;
	timespec now;
	unsigned long sum = 0;
	do {
		sum += work::run(1000 + (sum & 3));
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	} while (now.tv_sec + now.tv_nsec / 1e9 < seconds);
	printf("%lu\n", sum);
}
END
salt=0
# program NAME OPTION...: built with debug information, another build each time
program() {
	local name=$1
	shift
	salt=$((salt + 1))
	g++ -O2 -g -DSALT=$salt "$@" -o "$name" names.cc -Wl,--build-id=0x"$(printf 'c0de%012x%s' $salt "$(head -c 4 /dev/urandom | od -An -tx4 | tr -d ' ')")"
}
program nm_whole
program nm_linked
objcopy --only-keep-debug nm_linked nm_linked.debug
cp nm_linked nm_linked.truth
strip nm_linked
objcopy --add-gnu-debuglink=nm_linked.debug nm_linked
program nm_deleted
cp nm_deleted nm_deleted.truth
program nm_jail -static
cp nm_jail nm_jail.truth
mkdir -p jail
mv nm_jail jail/
program nm_short
program nm_hostile
cp nm_hostile nm_hostile.truth
# Sections of debug information that say they go on behind the file's end; and a table of lines that nobody can read.
for section in .debug_abbrev .debug_line .debug_str; do
	head -c 65536 /dev/urandom >noise
	objcopy --update-section $section=noise nm_hostile
done

# look OPTION...: records all of it once, into names.otlp
look() {
	start_record names.otlp -F 997 -v -p $$ "$@" # and its children
	start whole ./nm_whole 1
	local running=("$started")
	start linked ./nm_linked 1
	running+=("$started")
	wait "${running[@]}"
	cp nm_deleted.truth nm_deleted
	start deleted ./nm_deleted 1
	running=("$started")
	until_true 5 grep -q nm_deleted "/proc/$started/comm"
	rm nm_deleted
	mkdir -p jail
	cp nm_jail.truth jail/nm_jail
	start jail.out chroot jail /nm_jail 1
	running+=("$started")
	until_true 5 grep -q nm_jail "/proc/$started/comm"
	rm -r jail
	wait "${running[@]}"
	for _ in $(seq 30); do ./nm_short 0.02; done >/dev/null
	./nm_hostile 1 >/dev/null
	stop "$recorder"
	cat record.out.err
	accounted record.out.err
}

# made WHAT: the number before it in the recorder's last words on names
made() { sed -nE "s/.*names: .*\b([0-9]+) $1.*/\1/p" record.out.err; }

look
[ "$(made made)" -ge 6 ] || fail "no indexes were made"
[ "$(made 'bytes of debug')" -gt 100000 ] || fail "no debug information was read"
python3 "$TOP/tests/system/names.py" names.otlp "$judge_of_names" nm_whole=nm_whole nm_linked=nm_linked.truth \
	nm_deleted=nm_deleted.truth nm_jail=nm_jail.truth nm_short=nm_short
# What is broken in it is not known; names are, from its symbol table at least, and none is wrong.
"$HEARTH" report names.otlp --format folded >folded
n=$(awk -F';' '$1 == "nm_hostile" && /main;work::run/ { sub(/.* /, ""); sum += $0 } END { print sum + 0 }' folded)
[ "$n" -ge 100 ] || fail "the program with broken debug information has $n samples with names: $(grep nm_hostile folded | head)"

"$HEARTH" report names.otlp --format tree >tree
grep -q 'work::step (inlined)' tree || fail "no inlined call in the call tree: $(cat tree)"
"$HEARTH" report names.otlp --format folded --no-inline >folded
! grep -q 'work::step' folded || fail "--no-inline shows inlined calls"
"$HEARTH" report names.otlp --format folded --lines >folded
grep -q 'work::step names.cc:1[4-8]' folded || fail "--lines shows no lines: $(head -n 3 folded)"
"$HEARTH" report names.otlp --format print >printed
grep -q 'Function: work::run, File: .*names.cc, Line: 2[0-9], Column: [0-9]' printed || fail "no line in the text"
"$HEARTH" report names.otlp --format modules >modules
cat modules
grep -qE 'dwarf +full .*/nm_whole ' modules || fail "the report on modules does not know nm_whole"

look
[ "$(made 'bytes of debug')" = 0 ] || fail "the second start read debug information" # of cp, if that was met now, there is none
[ "$(made 'indexes from disk')" -ge 6 ] || fail "the second start opened no indexes"
python3 "$TOP/tests/system/names.py" names.otlp "$judge_of_names" nm_whole=nm_whole nm_linked=nm_linked.truth \
	nm_deleted=nm_deleted.truth nm_jail=nm_jail.truth nm_short=nm_short

look --symbols tables --symbol-cache empty
! "$HEARTH" report names.otlp --format print | grep -q 'File: .*names.cc' || fail "--symbols tables gives lines"
"$HEARTH" report names.otlp --format folded | grep -q 'nm_whole;.*main;work::run' || fail "--symbols tables gives no names"
look --symbols off
! "$HEARTH" report names.otlp --format folded | grep -Eq 'nm_whole;.*(;main[; ]|work::run)' || fail "--symbols off gives names" # the kernel balances domains
