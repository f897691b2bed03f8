#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the unit test binaries, shows a line for each and the whole output of those that fail.
#   usage: tests/run-unit.sh BUILD BINARY...
# $HEARTH_TEST_RUNNER: a command that runs them, for another CPU's. Appends "passed failed skipped" to the file $HEARTH_TEST_COUNTS when that is set. Exit status 1 when a test failed or none ran.
set -u
build=$(realpath "${1:?usage: tests/run-unit.sh BUILD BINARY...}")
shift
binaries=()
for binary; do
	binaries+=("$(realpath "$binary")")
done
cd "$(dirname "$0")/.." || exit 1

limit_s=120
export CMOCKA_MESSAGE_OUTPUT=STDOUT
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

# count WORD FILE: the number in cmocka's summary line "[  WORD  ] N test(s)"
count() {
	sed -nE "s/^\[ +$1 +\] ([0-9]+) test\(s\).*/\1/p" "$2" | awk '{ sum += $1 } END { print sum + 0 }'
}

# run BINARY: its line, the output of one that failed, and its counts in $work/counts. The output goes into a file: what a test leaves
# running would hold a pipe open.
run() {
	local name=${1#"$build/unit/"} log status p f s note=
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
	# A crash, a hang or an empty run is a failure of its own: its tests never reached the summary.
	[[ $note ]] && f=$((f + 1))
	{
		flock 9
		echo "$p $f $s" >>"$work/counts"
		if ((f)); then
			printf '  FAIL %-34s %d passed, %d failed%s\n' "$name" "$p" "$f" "${note:+ ($note)}"
			sed 's/^/       /' "$log"
		else
			printf '  ok   %-34s %d passed%s\n' "$name" "$p" "$( ((s)) && echo ", $s skipped")"
		fi
	} 9>"$work/lock"
}

# As many at a time as there are CPUs: much of their time is waiting.
for binary in "${binaries[@]}"; do
	while (($(jobs -rp | wc -l) >= $(nproc))); do
		wait -n
	done
	run "$binary" &
done
wait
read -r passed failed skipped < <(awk '{ p += $1; f += $2; s += $3 } END { print p + 0, f + 0, s + 0 }' "$work/counts" 2>/dev/null || echo 0 0 0)

if [[ ${HEARTH_TEST_COUNTS:-} ]]; then
	echo "$passed $failed $skipped" >>"$HEARTH_TEST_COUNTS"
fi
echo "$passed passed, $failed failed$( ((skipped)) && echo ", $skipped skipped")"
((failed == 0 && passed > 0))
