#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The lock of Python's interpreter: samples of threads that hold it, wait for it, or have let go of it say so, on a CPU and off, by what
# the program knows of itself; both forms of the walk. Debian's own Python here, others by hand (docs/scripts.md).
. "$TOP/tests/system/lib.sh"
need_bpf
python=$(readlink -e /usr/bin/python3) || skip "no /usr/bin/python3 here"

# The interpreter is read when a process that runs it is met first: one runs before.
"$python" -c 'import time; time.sleep(300)' &
pids+=($!)
for form in "" --no-bpf-loop; do
	# shellcheck disable=SC2086 # there may be none
	start_record x.otlp $form --off-cpu --off-cpu-from 1ms -F 199 --report-interval 500ms -p $$ # and its children
	"$python" "$TOP/tests/script/gil.py" 6
	stop "$recorder"
	grep -q 'not sampled: this kernel' record.out.err && skip "$(grep 'not sampled: this kernel' record.out.err)"
	accounted record.out.err
	verdict "samples do not say what the thread has of the lock ($form)" python3 "$TOP/tests/script/judge_gil.py" x.otlp "$(basename "$python")" 90
done
for state in held released; do
	"$HEARTH" report x.otlp --by label=cpython.gil --format folded | grep -q "^$state;" || fail "no group $state: $("$HEARTH" report x.otlp --by label=cpython.gil)"
done
"$HEARTH" report x.otlp --kind off_cpu --by label=cpython.gil --format folded | grep -q "^waiting;.*;fight;" || fail "no thread waits"

# Programs without it say nothing.
"$HEARTH" record -F 199 -o x.otlp -- sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i + 1)); done' >/dev/null 2>&1
"$HEARTH" report x.otlp --by label=cpython.gil --format folded >folded
[ -s folded ] || fail "no samples of a shell"
! grep -E '^(held|waiting|released);' folded || fail "a shell has Python's lock"
