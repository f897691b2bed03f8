#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Two programs with the same code at the same addresses but for the size of their frames take turns on one CPU: what the kernel
# half remembers of one's last walk must never be used for the other.
. "$TOP/tests/system/lib.sh"
need_bpf

[ -x "$TRUTH/twin_small" ] || skip "not for this CPU"
address() {
	nm "$1" | awk '$3 == "inner" { print $1 }'
}
[ "$(address "$TRUTH/twin_small")" = "$(address "$TRUTH/twin_large")" ] || fail "the twins are not alike"
start_record twins.otlp -F 999 --ring-bytes 16777216 # the agent may have to wait for a CPU
for name in twin_small twin_large; do
	start $name taskset -c 0 "$TRUTH/$name" 4
done
for pid in "${pids[@]:1}"; do
	wait "$pid" || fail "a twin ended with status $?: $(cat ./*.err)"
done
stop "$recorder"
accounted record.out.err
# A busy agent may cut the first ones; with rows of the other twin a third is wrong.
judge --min 90 --least 200 twins.otlp twin_small twin_large
