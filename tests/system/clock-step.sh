#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The wall clock is set forward by an hour in the middle of a recording: samples before it carry the old time, those after it the
# new one. Where the machine is nobody else's (HEARTH_OWN_MACHINE=1) its clock is really set, elsewhere hearth is shown another one.
# Alone: it may set the clock.
. "$TOP/tests/system/lib.sh"
need_bpf

step=3600 least=20
start chain "$TRUTH/c_chain" 25
options=(--report-interval 200ms --report-jitter 0 -F 99 -p "$started")
before=$EPOCHREALTIME
if [ "${HEARTH_OWN_MACHINE:-0}" = 0 ]; then
	"${CC:-cc}" -shared -fPIC -O1 -o stepped_clock.so "$TOP/tests/system/stepped_clock.c" -ldl || skip "no C compiler here"
	HEARTH_REAL=$HEARTH
	shown() {
		STEP=$PWD/step LD_PRELOAD=$PWD/stepped_clock.so exec "$HEARTH_REAL" "$@"
	}
	HEARTH=shown
fi
start_record step.otlp "${options[@]}"
sleep 3
at=$EPOCHREALTIME
read -r up _ </proc/uptime # goes on evenly
if [ "${HEARTH_OWN_MACHINE:-0}" = 0 ]; then
	: >step
	offset=$step # of hearth's clock from ours, from here on
else
	date -s "@$(awk "BEGIN { printf \"%.3f\", $at + $step }")" >/dev/null
	offset=0 least=0 # emulated it may be so slow that its first interval is that of the step
fi
read -r up_then _ </proc/uptime
sleep 3
after=$EPOCHREALTIME
stop "$recorder"
HEARTH=${HEARTH_REAL:-$HEARTH}

"$HEARTH" report step.otlp --format print | sed -nE 's/^ *Timestamp\[[0-9]+\]: ([0-9]+).*/\1/p' >times
# What the interval of the step holds from before it is told in the new time too: 200 ms of it, many more on a slow machine.
awk -v before="$before" -v at="$at" -v took="$(awk "BEGIN { print $up_then - $up }")" -v after="$after" -v step=$step -v least=$least -v offset="$offset" '
	{
		t = $1 / 1e9
		if (t >= before - 1 && t <= at + took + 1) old++
		else if (t >= at + step - 10 && t <= after + offset + 2) new += t >= at + step
		else { wrong++; printf "neither before nor after the step: %.3f s\n", t - at }
	}
	END {
		printf "%d samples before the step, %d after it, %d at another time\n", old, new, wrong
		exit !(old >= least && new >= 20 && !wrong)
	}' times
