#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# JavaScript functions in stacks of node, without any flag of node's: each sample of a program that calls in every way there is, judged by
# what the program says of itself; in its compilers' tiers and in bytecode alone; of one that is gone when its profile is made. The node
# that is here, with symbols or without, as Debian's library; others by `make runtimes`.
. "$TOP/tests/system/lib.sh"
need_bpf
[ "$(uname -m)" = x86_64 ] || skip "frames of V8 are known for x86-64 alone"
node=$(readlink -e /usr/bin/node) || skip "no node here (nodejs)"
name=$(basename "$node")
"$node" -p process.versions.v8 >version
[[ $(cat version) =~ ^(9\.[4-9]|1[0-4])\. ]] || skip "V8 $(cat version) is none that is known"

# judged LEAST [MIN FILES OPTION...]: the verdict on x.otlp. Functions that are thrown away at once may lack their names.
judged() {
	judge_scripts --min "${2:-97}" --least "$1" --without 100000 --loop NONE --complete 97 --file "${3:-calls.js}" "${@:4}" x.otlp "$name" v8js truth
}

for way in "" "--no-opt --no-sparkplug" "--no-bpf-loop"; do
	form= flags=$way
	[ "$way" != --no-bpf-loop ] || form=$way flags=
	# shellcheck disable=SC2086 # there may be none
	"$node" $flags -e 0 2>/dev/null || continue
	# shellcheck disable=SC2086
	start_record x.otlp $form -F 399 --report-interval 500ms -p $$ # and its children
	# shellcheck disable=SC2086
	"$node" $flags "$TOP/tests/script/calls.js" 2.5 plain deep map generator exception regexp lines makes >truth
	stop "$recorder"
	accounted record.out.err
	judged 100
	"$HEARTH" report x.otlp --format folded >folded
	for function in "main" "plain;mid;leaf;spin" "map;.*mapped" "makes" "generator;.*numbers"; do
		grep -q ";$function[; ]" folded || fail "$way: $function is in no stack"
	done
	unknown=$(awk '/main;.*\[JIT code\]/ { n += $NF } /calls.js|main;/ { all += $NF } END { print int(100 * n / (all + 1)) }' folded)
	[ "$unknown" -le 5 ] || fail "$way: $unknown % have code without a name: $(grep 'main;.*JIT code' folded | head -3)"
done

# Functions that are inlined, with their files and lines; what runs for them is folded into them, and stays on request.
"$HEARTH" report x.otlp --format lines >lines
grep -q "calls.js" lines || fail "no lines: $(head lines)"
grep ";main;" folded | grep -v "Builtins_InterpreterEntry" >known # before the first answers functions are not known
! grep -q "Builtins_[A-Za-z]*Handler" known || fail "handlers of bytecodes are told: $(grep -m 1 Builtins_.*Handler known)"
start_record x.otlp -F 399 --interpreter-frames -p $$
"$node" --no-opt --no-sparkplug "$TOP/tests/script/calls.js" 1 plain >truth
stop "$recorder"
"$HEARTH" report x.otlp --format folded | grep -q "Builtins_JSEntry" || fail "--interpreter-frames keeps none"

# Functions of WebAssembly, which have no names, between those of JavaScript. The first samples may come before all is known.
no_inlining=--no-wasm-inlining
"$node" $no_inlining -e 0 2>/dev/null || no_inlining=
for form in "" --no-bpf-loop; do
	# shellcheck disable=SC2086 # there may be none
	start_record x.otlp $form -F 399 --report-interval 500ms -p $$
	# shellcheck disable=SC2086
	"$node" $no_inlining "$TOP/tests/script/wasm.js" 2.5 >truth
	stop "$recorder"
	judged 100 99 wasm.js, --within '(wasm ?*)'
done

# A node that never compiles has no code but its file's: the kernel finds it as soon as it is known.
start deep "$node" --no-opt --no-sparkplug "$TOP/tools/bench/load/deep.js" 10
node_pid=$started
start_metrics metrics -F 399 --report-interval 1s -p "$node_pid" --http-address off --metrics-address 127.0.0.1:0
# sum SERIES: of the metrics that begin so
sum() { curl -s "$metrics/metrics" | awk -v series="$1" 'index($0, series) == 1 { n += $NF } END { print n + 0 }'; }
has_taken() { [ "$(sum hearth_samples_taken_total)" -ge "$1" ]; }
until_true 20 has_taken 800 || fail "no samples: $(cat metrics.err)"
taken=$(sum hearth_samples_taken_total) missed=$(sum hearth_misses_total)
until_true 20 has_taken $((taken + 800)) || fail "no more samples: $(cat metrics.err)"
missed=$(($(sum hearth_misses_total) - missed))
stop "$started"
kill "$node_pid"
[ $missed -le 80 ] || fail "$missed samples of 800 were walked in user space, of code that is in a file"
