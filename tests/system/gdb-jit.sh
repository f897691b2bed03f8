#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Code that a program loaded and registered for debuggers, as LLVM's compilers do: its functions, lines and inlined calls are in stacks
# that are complete without frame pointers; of two pieces of code in turn at one place each has its own name. Real compilers: `make runtimes`.
. "$TOP/tests/system/lib.sh"
need_bpf
[ "$(uname -m)" = x86_64 ] || skip "registered code is read on x86-64 alone"
source=$TOP/tests/script/gdb_jit_code.c
"${CC:-gcc}" -O2 -g -o gdb_jit "$TOP/tests/script/gdb_jit_loader.c"
for round in 0 1 2 3 4 5; do
	"${CC:-gcc}" -O2 -g -fomit-frame-pointer -fcf-protection=none -fno-stack-protector -fPIC -fvisibility=hidden -DROUND=$round -c -o made_$round.o "$source"
done
"$TOP/tests/script/gdb-jit-truth.sh" "$source" >truth
cp gdb_jit gdb_jit_run
cp gdb_jit gdb_jit_churn
cp gdb_jit gdb_jit_late

for form in "" --no-bpf-loop; do
	# shellcheck disable=SC2086 # there may be none
	start_record x.otlp $form -F 499 --report-interval 500ms -p $$ # and its children
	start run.out ./gdb_jit_run run 1 made_0.o
	first=$started
	start late.out ./gdb_jit_late late 1 made_0.o
	second=$started
	start churn.out ./gdb_jit_churn churn 3 made_[0-5].o
	wait "$first" || fail "the program ended: $(cat run.out.err)"
	wait "$second" || fail "the program ended: $(cat late.out.err)"
	wait "$started" || fail "the program ended: $(cat churn.out.err)"
	stop "$recorder"
	accounted record.out.err
	judge_scripts --min 99.9 --least 100 --without 1000 --loop NONE --file gdb_jit_code.c x.otlp gdb_jit_run native truth
	"$HEARTH" report x.otlp --format truth >report || :
	"$HEARTH" report x.otlp --format folded >folded
	for function in "main;run;call_until;made_run;made_down;made_down;made_down" "made_run;calls_back;made_back;made_mid;made_leaf;made_mix"; do
		grep -q "$function" folded || fail "$form: $function is in no stack"
	done
	# Until a program registered its code the kernel walks that by frame pointers, and needs nobody for it; then it is found all the same.
	late=$(awk '/^gdb_jit_late;.*;made_run/ { n += $NF } END { print n + 0 }' folded)
	[ "$late" -ge 100 ] || fail "$form: $late samples with a name in code that was registered after a third of a second"
	# A piece is looked at again after 250 ms, so on a busy machine one may be gone before it was read.
	named=0
	for n in 0 1 2 3 4 5; do
		! grep -q "calls_$n;made_again_$n" folded || named=$((named + 1))
		! grep "calls_$n;made_again_" folded | grep -v "calls_$n;made_again_$n" || fail "$form: another function's name"
	done
	[ $named -ge 4 ] || fail "$form: of 6 functions that follow each other at one place $named have names"
done

# QEMU's emulators of programs are stripped and linked statically: the code is registered, but no symbol leads to it.
if command -v qemu-x86_64-static >/dev/null; then
	cat >loop.c <<-'END'
		#include <stdio.h>
		#include <time.h>
		__attribute__((noinline)) static unsigned long turn(unsigned long x)
		{
			for (int i = 0; i < 100000; i++)
				x = x * 6364136223846793005ul + 1442695040888963407ul;
			return x;
		}
		int main(void)
		{
			unsigned long x = 1;

			for (time_t end = time(NULL) + 5; time(NULL) < end;)
				x = turn(x);
			return printf("%lx\n", x) < 0;
		}
	END
	"${CC:-gcc}" -O1 -static -o loop loop.c
	start_record qemu.otlp -F 499 -p $$
	start loop.out qemu-x86_64-static ./loop
	wait "$started" || fail "qemu-x86_64-static ended: $(cat loop.out.err)"
	stop "$recorder"
	"$HEARTH" report qemu.otlp --format truth >report || :
	# Samples of the first quarter second are of a time when nothing was known of the code.
	awk '/ qemu-x86_64-static/ { found = 1; exit !($1 >= 500 && $2 + 0 >= 80) } END { if (!found) exit 1 }' report ||
		fail "QEMU's stacks are cut: $(cat report)"
else
	echo "left out: qemu no qemu-x86_64-static here"
fi
