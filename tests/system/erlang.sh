#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Erlang's functions in stacks of the emulator, without any flag of it: each sample of a program that calls in every way there is, judged
# by what the program says of itself; of one that is gone when its profile is made. The Erlang that is here; others by `make runtimes`.
. "$TOP/tests/system/lib.sh"
need_bpf
[ "$(uname -m)" = x86_64 ] || skip "frames of Erlang are known for x86-64 alone"
command -v erl >/dev/null && command -v erlc >/dev/null || skip "no Erlang here (erlang-base)"
cp "$TOP/tests/script/calls.erl" .
erlc calls.erl || fail "calls.erl cannot be compiled"

for form in "" --no-bpf-loop; do
	# shellcheck disable=SC2086 # there may be none
	start_record x.otlp $form -F 399 --report-interval 500ms -p $$ # and its children
	erl -noshell -s calls main 2 >truth
	stop "$recorder"
	accounted record.out.err
	judge_scripts --min 99 --least 150 --without 100000 --loop NONE --complete 97 --whole-names --file calls.erl,again.erl \
		x.otlp beam.smp beam truth
	"$HEARTH" report x.otlp --format folded >folded
	for function in "calls:plain/0;calls:mid/1;calls:leaf/1;calls:spin/1;calls:turn/2" "calls:down/1;calls:down/1;calls:down/1" \
		"calls:mapped/0;lists:map.*calls:mapped/0-fun-0/1" "calls:bifs/0;.*[a-z]*_[0-9]"; do
		grep -q ";$function[; ]" folded || fail "$form: $function is in no stack"
	done
done
