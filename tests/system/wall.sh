#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A web service under load, whose requests wait for a slow database and for a lock: where they wait, who holds the lock, and for each
# thread cpu + blocked + runnable = its life by its own clocks. `SERVICE_SECONDS=30 SERVICE_HZ=199` is the long form.
# Alone: it compares times with the service's.
. "$TOP/tests/system/lib.sh"
need_bpf
seconds=${SERVICE_SECONDS:-5} hz=${SERVICE_HZ:-499}
# Where others use the machine the timer is late now and then; its samples are the only part of the sum that is not exact.
least=$((seconds * hz / 4)) slack=3
[ "$seconds" -lt 30 ] || least=1000 slack=0
"$HEARTH" record --wakers -F "$hz" -o x.otlp -- python3 "$TOP/tests/waits/service/server.py" "$seconds" >said 2>err || fail "record: $(cat err)"
! grep -q 'not sampled: this kernel' err || skip "$(grep 'not sampled: this kernel' err)"
accounted err
"$HEARTH" convert x.otlp x.otlp.json 2>/dev/null
python3 "$TOP/tests/waits/service/judge.py" x.otlp.json said "$seconds" "$least" "$slack" || fail "the service's waits are not told as they were: $(cat err)"
"$HEARTH" report x.otlp --format locks --rows 5 >locks
cat locks
# The lock of the service is the one with most waits.
sed -n 5p locks | grep -q ' lock_stock (' && grep -m1 -A7 ' lock_stock (' locks | grep -q 'let go .*prices: refresh_prices (' || fail "the lock is not told with both sides: $(cat locks)"
cat err
