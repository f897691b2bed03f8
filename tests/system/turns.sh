#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Ends and turns of walks: every case of tests/turns below one recording, two at a time; every sample must show a right stack.
# docs/agent.md says which code handles which case. "turns.sh CASE..." runs these only.
# Alone: it takes every CPU.
. "$TOP/tests/system/lib.sh"
need_bpf

seconds=0.4
programs=$(dirname "$TRUTH")/turns
"$TOP/tests/turns/build.sh" "$programs"

# PROGRAM CASE [NAME]: a line a case; its samples are told by the name, which is the case where none stands.
cases() {
	local case program
	echo signals sig_async
	echo signals_musl sig_async musl_sig_async # beside it: both are long
	for case in sig_plain sig_rt sig_storm sig_nested sig_fault alt_main alt_above alt_below alt_nested alt_leave; do
		echo signals $case
	done
	for case in sig_plain sig_nested alt_main alt_above; do
		echo signals_musl $case musl_$case
	done
	for case in pthread storm fresh clone_vm vforked vfork_call spawned exits pidns uring_work uring_poll exec; do
		echo starts $case
	done
	echo starts_musl pthread musl_pthread
	echo starts_musl clone_vm musl_clone
	for case in context ctx_storm step_ctx coro_cfi coro_bare coro_boost coro_storm step_coro jumps step_jump shapes shapes_fast \
		step_shapes; do
		echo stacks $case
	done
	for case in lazy now ibt; do
		echo calls_$case plt_$case
		echo calls_$case step_$case
	done
	for case in binding vdso step_vdso vsyscall strings step_strings crypto; do
		echo calls_lazy $case
	done
	for case in by_syscall by_int80 by_fault by_interrupt huge_text; do
		echo entry $case
	done
	for program in "$programs"/frames_*; do
		program=${program##*/}
		echo $program frames ${program/frames/fr}
		echo $program step_frames ${program/frames/st}
	done
	echo except throwing
	echo except step_throw
	echo bare bare
	echo compat compat
	for program in goturns goturns_1.19; do
		for case in goexit mcall morestack systemstack vdso; do
			echo $program $case go${program#goturns}_$case
		done
	done
	for program in cgoturns cgoturns_1.19; do
		for case in to_c to_go both thread; do
			echo $program $case cgo${program#cgoturns}_$case
		done
	done
}

# The recorder before others, so that it is never late with what a young process needs; only what this shell starts.
mkdir told as
start record.out nice -n -15 "$HEARTH" record -o turns.otlp -F 997 -p $$ ${HEARTH_OPTIONS:-}
recorder=$started
until_true 15 grep -q "profiles go to" record.out.err || fail "no recording: $(cat record.out.err)"
sleep 0.3

running=()
while read -r program case name; do
	name=${name:-$case}
	name=${name:0:15}
	[ -x "$programs/$program" ] || continue
	[ $# = 0 ] || [[ " $* " = *" $name "* ]] || continue
	run=$programs/$program
	if [[ $program = *goturns* ]]; then # whose threads keep the name that the process began with
		run=as/$name
		ln -s "$programs/$program" "$run"
	fi
	took=$seconds
	[ "$case" != sig_async ] || took=10 # one spot of many: some 1.5 samples in a second
	start "told/$name" timeout 60 "$run" "$case" $took "$name"
	running+=("$started")
	if [ ${#running[@]} = 2 ]; then
		wait "${running[0]}" || fail "a case ended with status $?: $(cat told/*.err)"
		running=("${running[1]}")
	fi
done < <(cases)
for pid in "${running[@]}"; do
	wait "$pid" || fail "a case ended with status $?: $(cat told/*.err)"
done
stop "$recorder"
cat record.out.err
accounted record.out.err
rm -f told/*.err
"$HEARTH" report turns.otlp --format print --no-inline >printed
"$TOP/tests/turns/judge.py" printed told/*
# A second life, which begins with the rows that the first one learned.
if [ $# = 0 ]; then
	mkdir again
	cd again
	"$0" coro_cfi coro_bare coro_boost coro_storm context
fi
