#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Virtual threads of Java that wait deep in calls and go on on other carriers: each sample is judged by what the program says of itself,
# walks go on behind the return barrier down to the carrier's start, and one frame stands for what is in the heap.
. "$TOP/tests/system/lib.sh"
need_bpf
[ "$(uname -m)" = x86_64 ] || skip "the return barrier is not known for this CPU"
mkdir classes
for javac in /usr/lib/jvm/*/bin/javac; do
	"$javac" --release 21 -d classes "$TOP/tests/script/VirtualCalls.java" 2>javac.err && break
done
[ -f classes/VirtualCalls.class ] || skip "no JDK 21 or later here"
java=${javac%c}

for form in "" --no-bpf-loop; do
	# shellcheck disable=SC2086 # there may be none
	start_record x.otlp $form -F 499 --report-interval 500ms -p $$ # and its children
	"$java" -Djdk.virtualThreadScheduler.parallelism=2 -cp classes VirtualCalls "$TOP/tests/script/VirtualCalls.java" 5 >truth
	stop "$recorder"
	accounted record.out.err
	judge_scripts --min 99.5 --least 200 --without 100000 --loop NONE --complete 95 --file VirtualCalls.java x.otlp java jvm truth
	"$HEARTH" report x.otlp --format folded >folded
	# Behind the barrier the way goes on, and a stack whose frames all came back has none that stands for others.
	grep -q "Continuation.run;\[frames in the heap\];VirtualCalls\.[a-z]*[; ]" folded || fail "no stack goes on behind the barrier"
	awk '/Continuation.enter;.*VirtualThread.run;.*VirtualCalls.task;VirtualCalls/ && !/in the heap/ { n++ } END { exit !n }' folded ||
		fail "no stack came back as a whole"
	! grep -q "\[frames in the heap\].*\[frames in the heap\]" folded || fail "two barriers in one stack"
done
