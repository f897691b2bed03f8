#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Programs that interrupt each other: a timer at 4,999 Hz, a probe at hot functions, and time off the CPUs, all at once, of threads that
# have just begun, so that most walks miss the caches and copy stacks. Each sample has its own thread's stack, and a script's its own
# functions; what is lost is named.
# Alone: it samples at 4,999 Hz.
. "$TOP/tests/system/lib.sh"
need_bpf
[ -e /sys/bus/event_source/devices/uprobe ] || skip "this kernel has no uprobes"
gcc -O2 -g -fomit-frame-pointer -fno-pie -no-pie -o chains "$TOP/tests/levels/chains.c" -lpthread
cat >begin.sh <<'ENDS'
for slot in 1 2 3; do
	while [ ! -e over ]; do ./chains $slot 0.06; done &
done
./chains 0 3
: >over
wait
ENDS
"$HEARTH" record -F 4999 -e cpu-clock -e 'uprobe:./chains:hot_*:arg0' --off-cpu --off-cpu-from 1ms -o x.otlp -- sh begin.sh >truth 2>err || fail "record: $(cat err)"
! grep -q 'not sampled: this kernel' err || skip "$(grep 'not sampled: this kernel' err)"
accounted err
"$HEARTH" convert x.otlp x.otlp.json 2>/dev/null
python3 "$TOP/tests/levels/judge.py" x.otlp.json truth err || fail "stacks are not their own threads': $(cat err)"
cat err
