#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Time off the CPUs: threads that wait in known ways, judged by their own clocks and by the kernel's count of what they waited for CPUs;
# where they wait; nanoseconds taken = delivered + lost; the report of each kind; both forms of the walk.
# Alone: it compares times with the kernel's.
. "$TOP/tests/system/lib.sh"
need_bpf
gcc -O2 -g -o waits "$TOP/tests/waits/waits.c" -lpthread
mean_ms=10

# kind_accounted FILE KIND: what was taken of it was delivered or lost, by number and by time
kind_accounted() {
	awk -v kind="$2:" '$2 == kind { n++; rest = $12 - $15 - $18; bad = $3 != $7 + $10 || rest > 0.002 || rest < -0.002 }
		END { exit n != 1 || bad }' "$1" || fail "$2 is not accounted for: $(cat "$1")"
}

for form in '' --no-bpf-loop; do
	"$HEARTH" record --off-cpu --off-cpu-from ${mean_ms}ms -F 99 $form -o x.otlp -- ./waits 2 >truth 2>err || fail "record $form: $(cat err)"
	if grep -q 'not sampled: this kernel' err; then
		skip "$(grep 'not sampled: this kernel' err)"
	fi
	accounted err
	kind_accounted err off_cpu
	kind_accounted err runnable
	"$HEARTH" convert x.otlp x.otlp.json 2>/dev/null
	python3 "$TOP/tests/waits/judge.py" x.otlp.json truth $mean_ms err || fail "waits are not told as they were ($form): $(cat err)"
done

# Time on a CPU is what is meant where nothing is said; others are there on request, and all together.
"$HEARTH" report x.otlp | head -n 1 | grep -q 'of CPU time' || fail "the report begins with $("$HEARTH" report x.otlp | head -n 1)"
"$HEARTH" report x.otlp --kind off_cpu | grep -q wait_forever || fail "no wait_forever among $("$HEARTH" report x.otlp --kind off_cpu)"
"$HEARTH" report x.otlp --kind wall --focus wait_burn | head -n 1 | grep -q 'of wall' || fail "no wall time"
"$HEARTH" report x.otlp --kind off_cpu --format folded | grep -q 'wait_lock;.*;futex' || fail "no futex under wait_lock"

# A script has its functions in stacks of both kinds, on whatever CPU it runs: each CPU and level has memory of its own for them.
if [ -x /usr/bin/python3 ]; then
	printf 'import time\ndef busy():\n\tfor _ in range(300000): pass\ndef nap(): time.sleep(0.02)\ndef work():\n\twhile True: busy(); nap()\nwork()\n' >script.py
	cpu=$(python3 -c 'import os; print(max(os.sched_getaffinity(0)))')
	start sleeper sleep 1000 # it slept before, and does when the recording ends
	sleeper=$started
	start script taskset -c "$cpu" /usr/bin/python3 script.py
	script=$started
	for form in '' --no-bpf-loop; do
		# shellcheck disable=SC2086 # there may be none
		"$HEARTH" record --off-cpu --off-cpu-from ${mean_ms}ms -F 99 $form -d 2 --report-interval 250ms -p "$script,$sleeper" -o script.otlp 2>err || fail "record $form: $(cat err)"
		for label in thread.state:sleeping syscall.name:clock_nanosleep; do
			"$HEARTH" report script.otlp --kind off_cpu --process "$sleeper" --by "label=${label%:*}" --format folded >asleep
			awk -v label="${label#*:}" '{ all += $NF } index($0, label) == 1 { of += $NF } END { exit of != all || all < 1.8e9 || all > 4e9 }' asleep ||
				fail "$form: who slept all the time is not told so, as $label: $(cat asleep)"
		done
		for kind in samples off_cpu; do
			"$HEARTH" report script.otlp --kind $kind --process "$script" --format folded |
				awk '{ all += $NF; named += /;work;(busy|nap)/ ? $NF : 0 } END { exit !all || named < all * 0.7 }' ||
				fail "CPU $cpu $form: stacks without functions: $("$HEARTH" report script.otlp --kind $kind --format folded | grep -v ';work;' | head -3)"
		done
	done
fi
