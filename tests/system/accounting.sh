#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# 999 Hz, every CPU busy, processes starting all the time: what was taken is what was delivered plus what was counted as lost.
# HEARTH_LONG=1: a minute of it.
# Alone: it keeps every CPU busy and counts what their time implies.
. "$TOP/tests/system/lib.sh"
need_bpf

seconds=20
[ "${HEARTH_LONG:-0}" = 0 ] || seconds=60
for _ in $(seq "$(nproc)"); do
	start busy "$TRUTH/c_chain" $((seconds + 5))
done
start forks "$TRUTH/short" $((seconds + 5))
start more_forks bash -c 'while :; do /bin/true; done'
"$HEARTH" record -F 999 -d $seconds -o storm.otlp >out 2>err || fail "exit status $?: $(cat err)"
cat err
accounted err
delivered=$(count delivered err)
"$HEARTH" report storm.otlp --format folded >folded
in_file=$(awk '{ sum += $NF } END { print sum + 0 }' folded)
[ "$in_file" = "$delivered" ] || fail "$delivered delivered, but $in_file in the file"
# all CPUs are busy, so about this many must have been taken
implied=$((999 * seconds * $(nproc)))
taken=$(count taken err)
[ "$taken" -gt $((implied * 8 / 10)) ] || fail "$taken samples taken of the $implied that the time implies"
