# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Shared by the system tests; sourced first. Background processes go through start(), so that none outlives its test.
set -eu
pids=()
trap 'for pid in "${pids[@]}"; do kill -KILL "$pid" 2>/dev/null || :; done' EXIT

skip() {
	echo "$*"
	exit 77
}

# left_out PART WHY: of a test that else runs; it is counted as skipped
left_out() {
	echo "left out: $*"
}

fail() {
	echo "FAILED: $*"
	exit 1
}

# known WHAT UNIT PRINTED TOLD: what a program says that it did, and what the profile has; the table of `make known`
known() {
	awk -v what="$1" -v unit="$2" -v printed="$3" -v told="$4" 'BEGIN {
		part = printed ? sprintf("%+.2f %%", 100 * (told / printed - 1)) : "-"
		printf "known: %-44s %14s %14s %-6s %10s\n", what, printed, told, unit, part }'
}

# Skips the test where the profiler cannot work, found out without hearth's help.
need_bpf() {
	[ "$(id -u)" = 0 ] || skip "needs root"
	[ -r /sys/kernel/btf/vmlinux ] || skip "this kernel has no BTF"
	PATH=$PATH:/usr/sbin bpftool prog show >/dev/null 2>&1 || skip "BPF is not allowed here"
}

# start OUTPUT COMMAND...: in the background, stdout to OUTPUT, stderr to OUTPUT.err; its pid is $started
start() {
	local out=$1
	shift
	rm -f "$out" "$out.err" # what an earlier one of that name said
	"$@" >"$out" 2>"$out.err" </dev/null &
	started=$!
	pids+=("$started")
}

# until_true SECONDS COMMAND...: repeats COMMAND until it succeeds
until_true() {
	local end=$((SECONDS + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.1
	done
}

# start_record FILE OPTION...: a recording that samples, which it says unless it is quiet (-q); its pid is $recorder. A loaded machine
# may take a while.
start_record() {
	local file=$1
	shift
	start record.out "$HEARTH" record -o "$file" "$@"
	recorder=$started
	until_true 60 grep -q "profiles go to" record.out.err || fail "no recording after 60 s: $(cat record.out.err)"
}

# start_metrics OUTPUT OPTION...: `hearth run` in the background, until it says where its /metrics are; sets metrics to the address
start_metrics() {
	start "$1" "$HEARTH" run "${@:2}"
	until_true 20 grep -q ' for /metrics alone' "$1.err" || fail "no metrics: $(cat "$1.err")"
	metrics=$(sed -n 's/.*listening on \(http:[^ ]*\) for \/metrics alone/\1/p' "$1.err")
}

# stop PID: as Ctrl-C does; fails unless it was still there, and ends with status 0
stop() {
	local status=0
	kill -INT "$1" 2>/dev/null || fail "process $1 ended before it was stopped: $(cat ./*.err)"
	wait "$1" || status=$?
	[ $status = 0 ] || fail "exit status $status after SIGINT: $(cat ./*.err)"
}

# count NAME FILE: a number of the line "N samples taken = N delivered + N lost" that ends a run
count() {
	local n
	n=$(sed -nE "s/.*\b([0-9]+) (samples )?$1\b.*/\1/p" "$2" | tail -n 1)
	[ -n "$n" ] || fail "no number of samples $1 in: $(cat "$2")"
	echo "$n"
}

# accounted FILE: taken = delivered + lost, exactly, and there was something to count
accounted() {
	local taken delivered lost
	taken=$(count taken "$1")
	delivered=$(count delivered "$1")
	lost=$(count lost "$1")
	echo "taken $taken, delivered $delivered, lost $lost"
	[ "$taken" -gt 0 ] || fail "no sample was taken"
	[ "$taken" = $((delivered + lost)) ] || fail "$taken taken, but $delivered delivered and $lost lost: $(cat "$1")"
}

# verdict WHY COMMAND...: runs a judge; skips where there is no Python with protobuf, fails with WHY where something is wrong
verdict() {
	local status=0
	"${@:2}" || status=$?
	[ $status != 77 ] || skip "no protoc or no Python with protobuf here"
	[ $status = 0 ] || fail "$1"
}

# judge OPTION... CAPTURE TRUTH...: what tests/truth/check.py says
judge() {
	verdict "stacks are not exact" "$TOP/tests/truth/check.py" "$@"
}

# judge_scripts OPTION... CAPTURE PROGRAM TYPE TRUTH: what tests/script/judge.py says
judge_scripts() {
	verdict "stacks are wrong" python3 "$TOP/tests/script/judge.py" "$@"
}
