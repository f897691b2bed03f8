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

limit_s=60
passed=0 failed=0 skipped=0
export CMOCKA_MESSAGE_OUTPUT=STDOUT

# count WORD OUTPUT: the number in cmocka's summary line "[  WORD  ] N test(s)"
count() {
	sed -nE "s/^\[ +$1 +\] ([0-9]+) test\(s\).*/\1/p" <<<"$2" | awk '{ sum += $1 } END { print sum + 0 }'
}

# In a file: what a test leaves running would hold a pipe open.
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
for binary in "${binaries[@]}"; do
	name=${binary#"$build/unit/"}
	timeout --kill-after=5 "$limit_s" ${HEARTH_TEST_RUNNER:-} "$binary" >"$log" 2>&1 </dev/null
	status=$?
	output=$(tr -d '\0' <"$log")
	p=$(count PASSED "$output") f=$(count FAILED "$output") s=$(count SKIPPED "$output")
	note=
	if ((status == 124 || status == 137)); then
		note="no end after $limit_s s"
	elif ((status != 0 && f == 0)); then
		note="ended with status $status"
	elif ((p + f + s == 0)); then
		note="ran no test"
	fi
	# A crash, a hang or an empty run is a failure of its own: its tests never reached the summary.
	[[ $note ]] && f=$((f + 1))
	passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
	if ((f)); then
		printf '  FAIL %-34s %d passed, %d failed%s\n' "$name" "$p" "$f" "${note:+ ($note)}"
		sed 's/^/       /' <<<"$output"
	else
		printf '  ok   %-34s %d passed%s\n' "$name" "$p" "$( ((s)) && echo ", $s skipped")"
	fi
done

if [[ ${HEARTH_TEST_COUNTS:-} ]]; then
	echo "$passed $failed $skipped" >>"$HEARTH_TEST_COUNTS"
fi
echo "$passed passed, $failed failed$( ((skipped)) && echo ", $skipped skipped")"
((failed == 0 && passed > 0))
