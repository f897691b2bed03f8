#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# BPF programs that are loaded while hearth runs, and gone before it names anything: named at once, each by the moment of its
# samples, also where one was loaded at the place of another. The program that loads one and has it run is the judge.
. "$TOP/tests/system/lib.sh"
need_bpf
"${CC:-gcc}" -O2 -o bpf_maker "$TOP/tests/system/bpf_maker.c"
names=(judged_1 judged_2 judged_3 judged_4)
# A second profiler beside: the kernel then writes its records in another size.
start beside "$HEARTH" record -o beside.otlp -p $$
beside=$started
until_true 60 grep -q "profiles go to" beside.err || fail "no second recording: $(cat beside.err)"
start_record all.otlp -F 499 --report-interval 1m -p $$ # and its children; everything is named at the end
for name in "${names[@]}"; do
	cp bpf_maker "bm_$name"
	status=0
	"./bm_$name" "$name" 1 || status=$?
	[ $status != 77 ] || skip "no BPF programs may be run here"
	[ $status = 0 ] || fail "bm_$name failed"
done
stop "$recorder"
stop "$beside"
cat record.out.err
accounted record.out.err
"$HEARTH" report all.otlp --format folded >folded
for name in "${names[@]}"; do
	# What bpf_test_run called, by the program that asked for it.
	awk -v comm="bm_$name" -v name="_$name" -F';' '$1 == comm {
		n = $0; sub(/.* /, "", n); sub(/ [0-9]*$/, "")
		for (i = 2; i < NF; i++)
			if ($i == "bpf_test_run" && ($(i + 1) ~ /^bpf_prog_/ || $(i + 1) ~ /^(bpf|vmlinux)?\+?0x/))
				if ($(i + 1) ~ name "$") right += n; else { wrong += n; print "    " $(i + 1), n }
	} END { print comm ": " right + 0 " right, " wrong + 0 " wrong"; exit !(right >= 5 && !wrong) }' folded || fail "a BPF program has another name"
done
