#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the unit test binaries, shows a line for each and the whole output of those that fail. One that failed runs a second time, alone,
# when the others have ended, and that counts, as a flake when it passes (HEARTH_TRIES=1: no second time).
#   usage: tests/run-unit.sh BUILD BINARY...
# $HEARTH_TEST_RUNNER: a command that runs them, for another CPU's. The lines it appends to $HEARTH_TEST_COUNTS are told
# in run.sh; lines "left out: PART WHY" of a test are parts that it skipped. Exit status 1 when a test failed or none
# ran.
set -u
build=$(realpath "${1:?usage: tests/run-unit.sh BUILD BINARY...}")
shift
binaries=()
for binary; do
	binaries+=("$(realpath "$binary")")
done
cd "$(dirname "$0")/.." || exit 1

limit_s=120
counts=${HEARTH_TEST_COUNTS:-/dev/null}
export CMOCKA_MESSAGE_OUTPUT=STDOUT
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

# count WORD FILE: the number in cmocka's summary line "[  WORD  ] N test(s)", or "tests: N test(s)" of cmocka 1.1.8
count() {
	sed -nE "s/^\[ +$1 +\] (tests: )?([0-9]+) test\(s\).*/\2/p" "$2" | awk '{ sum += $1 } END { print sum + 0 }'
}

# run BINARY once|again: its line, the output of one that failed, and its counts in $work/counts, or its name in $work/again. The output
# goes into a file: what a test leaves running would hold a pipe open.
run() {
	local name=${1#"$build/unit/"} try=$2 start=$EPOCHREALTIME log status p f s note=
	log=$work/${name//\//-}
	timeout --kill-after=5 "$limit_s" ${HEARTH_TEST_RUNNER:-} "$1" >"$log.raw" 2>&1 </dev/null
	status=$?
	tr -d '\0' <"$log.raw" >"$log"
	p=$(count PASSED "$log") f=$(count FAILED "$log") s=$(count SKIPPED "$log")
	if ((status == 124 || status == 137)); then
		note="no end after $limit_s s"
	elif ((status != 0 && f == 0)); then
		note="ended with status $status"
	elif ((p + f + s == 0)); then
		note="ran no test"
	fi
	{
		sed -nE "s|^\[ +SKIPPED +\] ([A-Za-z_0-9]+)$|\1 skips itself|p" "$log" | sort -u
		sed -n 's/^left out: //p' "$log"
	} | sed "s|^|skip unit/$name/|" >"$log.skips"
	s=$(wc -l <"$log.skips")
	# A crash, a hang or an empty run is a failure of its own: its tests never reached the summary.
	[[ $note ]] && f=$((f + 1))
	{
		flock 9
		awk "BEGIN { printf \"time %.1f unit/$name\n\", $EPOCHREALTIME - $start }" >>"$counts"
		if ((f)) && [ "$try" = once ] && [ "${HEARTH_TRIES:-2}" != 1 ]; then
			echo "  once $name${note:+ ($note)}, and again at the end:"
			sed 's/^/       /' "$log"
			echo "$1" >>"$work/again"
			return
		fi
		echo "$p $f $s" >>"$work/counts"
		cat "$log.skips" >>"$counts"
		if ((f)); then
			{
				echo "fail unit/$name"
				grep -aE 'ERROR|error|FAILED' "$log" | head -n 8 | cut -c -400 | sed 's/^/said /'
			} >>"$counts"
			printf '  FAIL %-34s %d passed, %d failed%s\n' "$name" "$p" "$f" "${note:+ ($note)}"
			sed 's/^/       /' "$log"
		else
			[ "$try" = once ] || echo "flake unit/$name" | tee -a "$counts" >>"$work/flakes"
			printf '  ok   %-34s %d passed%s\n' "$name" "$p" "$( ((s)) && echo ", $s skipped")$([ "$try" = once ] || echo " (flaky: failed once)")"
		fi
	} 9>"$work/lock"
}

# One more at a time than there are CPUs: much of their time is waiting.
for binary in "${binaries[@]}"; do
	while (($(jobs -rp | wc -l) > $(nproc))); do
		wait -n
	done
	run "$binary" once &
done
wait
touch "$work/again" "$work/flakes"
while read -r binary; do
	run "$binary" again
done <"$work/again"
read -r passed failed skipped < <(awk '{ p += $1; f += $2; s += $3 } END { print p + 0, f + 0, s + 0 }' "$work/counts" 2>/dev/null || echo 0 0 0)

echo "$passed $failed $skipped" >>"$counts"
echo "$passed passed, $failed failed$( ((skipped)) && echo ", $skipped skipped")$(sed '1s/^flake /; flaky: /; 2,$s/^flake //' "$work/flakes" | paste -sd ' ')"
((failed == 0 && passed > 0))
