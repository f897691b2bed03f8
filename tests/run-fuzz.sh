#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs each libFuzzer target for some seconds on a copy of its seeds in tests/fuzz/corpus/NAME (fuzz_NAME is the binary).
#   usage: tests/run-fuzz.sh BUILD SECONDS BINARY...
#   FUZZ_SEED=N: of libFuzzer's random numbers, another one each time without
#   FUZZ_CORPUS=FOLDER: each target goes on from its inputs in FOLDER/NAME and leaves there what it finds
# An input that breaks a target is kept under BUILD/crashes. Counts and exit status as in tests/run-unit.sh: a target is a test.
set -u
build=$(realpath "${1:?usage: tests/run-fuzz.sh BUILD SECONDS BINARY...}")
seconds=${2:?usage: tests/run-fuzz.sh BUILD SECONDS BINARY...}
shift 2
binaries=()
for binary; do
	binaries+=("$(realpath "$binary")")
done
corpus=${FUZZ_CORPUS:+$(mkdir -p "$FUZZ_CORPUS" && realpath "$FUZZ_CORPUS")}
[[ -z ${FUZZ_CORPUS:-} || -n $corpus ]] || exit 1
cd "$(dirname "$0")/.." || exit 1

counts=${HEARTH_TEST_COUNTS:-/dev/null}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
mkdir -p "$build/crashes"

# show_input NAME: the input that broke it, in base64 while it is short: a log may be all that is left of the machine
show_input() {
	local input
	for input in "$build/crashes/$1-"*; do
		[[ -f $input ]] || continue
		printf '       %s, %d bytes' "${input##*/}" "$(stat -c %s "$input")"
		(($(stat -c %s "$input") <= 8192)) && printf ', base64: %s' "$(base64 -w0 "$input")"
		echo
	done
}

# run BINARY: its lines, and its name in $work/passed or $work/failed
run() {
	local name seeds inputs status executions rate
	name=$(basename "$1")
	seeds=tests/fuzz/corpus/${name#fuzz_}
	inputs=${corpus:-$work}/$name
	mkdir -p "$inputs"
	[[ -d $seeds ]] && cp -r "$seeds/." "$inputs/"
	# The outer limit is for a target that hangs before or after libFuzzer's own clock runs.
	timeout --kill-after=5 $((seconds + 60)) "$1" "$inputs" -max_total_time="$seconds" -max_len=65536 -timeout=10 \
		-rss_limit_mb=2048 ${FUZZ_SEED:+-seed=$FUZZ_SEED} -verbosity=0 -print_final_stats=1 -artifact_prefix="$build/crashes/$name-" \
		>"$work/$name.output" 2>&1 </dev/null
	status=$?
	executions=$(sed -n 's/^stat::number_of_executed_units: *//p' "$work/$name.output")
	rate=$(sed -n 's/^stat::average_exec_per_sec: *//p' "$work/$name.output")
	{
		flock 9
		if ((status == 0 && ${executions:-0} > 0)); then
			echo "$name" >>"$work/passed"
			printf '  ok   %-24s %d execs, %d exec/s\n' "$name" "$executions" "$rate"
		else
			echo "fail fuzz/$name" | tee -a "$work/failed" >>"$counts"
			printf '  FAIL %-24s status %d after %d execs\n' "$name" "$status" "${executions:-0}"
			sed 's/^/       /' "$work/$name.output"
			show_input "$name"
		fi
	} 9>"$work/lock"
}

# As many at a time as there are CPUs.
touch "$work/passed" "$work/failed"
for binary in "${binaries[@]}"; do
	while (($(jobs -rp | wc -l) >= $(nproc))); do
		wait -n
	done
	run "$binary" &
done
wait
rmdir --ignore-fail-on-non-empty "$build/crashes"
passed=$(wc -l <"$work/passed") failed=$(wc -l <"$work/failed")

echo "$passed $failed 0" >>"$counts"
echo "$passed passed, $failed failed"
((failed == 0 && passed > 0))
