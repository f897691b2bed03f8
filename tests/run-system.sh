#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs the system tests, every executable of tests/system, one after another, each in a folder of its own.
#   run-system.sh BUILD [TEST...]
# A test sees HEARTH (the binary), TRUTH (the built truth programs), TOP (the source tree). Its exit status: 0 passed, 77 skipped
# (the last line it printed says why), anything else failed, and then its output is shown. Ends with one line of counts, which
# also goes into $HEARTH_TEST_COUNTS as "PASSED FAILED SKIPPED".
set -u
limit_seconds=180
[ $# -ge 1 ] || {
	echo "usage: $0 BUILD [TEST...]" >&2
	exit 2
}
build=$(readlink -f "$1")
cd "$(dirname "$0")/.." || exit 1
shift
export HEARTH=$build/hearth TRUTH=$build/truth TOP=$PWD
[ -x "$HEARTH" ] || {
	echo "$HEARTH is not built: run 'make' first" >&2
	exit 1
}
tests/truth/build.sh "$TRUTH" || exit 1

# `record -- COMMAND` would run it as the user who called sudo, to whom the tests' folders do not belong.
unset SUDO_USER SUDO_UID SUDO_GID SUDO_COMMAND

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
chmod 755 "$scratch"
passed=0 failed=0 skipped=0
[ $# -gt 0 ] || set -- tests/system/*
for test; do
	[ -f "$test" ] && [ -x "$test" ] || continue
	test=$(readlink -f "$test")
	name=$(basename "$test" .sh)
	dir=$scratch/$name
	mkdir "$dir"
	start=$EPOCHREALTIME
	(cd "$dir" && exec timeout -k 10 "$limit_seconds" "$test") >"$scratch/$name.out" 2>&1 </dev/null
	status=$?
	took=$(awk "BEGIN { printf \"%.1f s\", $EPOCHREALTIME - $start }")
	case $status in
	0)
		passed=$((passed + 1))
		echo "  ok   $name ($took)"
		;;
	77)
		skipped=$((skipped + 1))
		echo "  skip $name: $(tail -n 1 "$scratch/$name.out")"
		;;
	*)
		failed=$((failed + 1))
		[ $status != 124 ] || echo "no end within $limit_seconds s" >>"$scratch/$name.out"
		echo "  FAIL $name ($took, exit status $status)"
		sed 's/^/       /' "$scratch/$name.out"
		;;
	esac
	rm -rf "$dir"
done
echo "system tests: $passed passed, $failed failed, $skipped skipped"
[ -z "${HEARTH_TEST_COUNTS:-}" ] || echo "$passed $failed $skipped" >>"$HEARTH_TEST_COUNTS"
[ $failed = 0 ]
