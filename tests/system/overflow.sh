#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# hearth stands still for seconds while its rings, the smallest there are, overflow: each sample is delivered or counted as lost, and says
# why; who was there before, who began and who ran another program meanwhile is known afterwards, whole and by its own name.
# Alone: it keeps every CPU busy and counts what their time implies.
. "$TOP/tests/system/lib.sh"
need_bpf
hz=999 still=5

start c_chain "$TRUTH/c_chain" 30
start_record all.otlp -F $hz --ring-bytes 64K --report-interval 1s -p "$$,$started"
sleep 1
kill -STOP "$recorder"
start c_chain_fp "$TRUTH/c_chain_fp" 30
start cpp_chain bash -c 'i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done; exec "$0" 30' "$TRUTH/cpp_chain"
sleepers=()
for i in 1 2 3 4 5 6 7 8; do
	start "sleeper$i" bash -c 'while :; do sleep 0.002; done' # each sleep is another process
	sleepers+=("$started")
done
sleep $still
kill "${sleepers[@]}"
kill -CONT "$recorder"
sleep 4
stop "$recorder"
cat record.out.err
accounted record.out.err
lost=$(count lost record.out.err)
implied=$((hz * still * $(nproc)))
[ "$lost" -ge $((implied / 4)) ] || fail "only $lost samples are lost of some $implied that were taken while nobody read: nothing overflowed"
judge --min 99 --least 100 all.otlp c_chain
judge --min 90 --least 100 all.otlp c_chain_fp cpp_chain # the kernel copies only a part of a stack in a file that hearth did not read yet
