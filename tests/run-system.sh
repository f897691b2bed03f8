#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs the system tests, every executable tests/system/*.sh, one after another, each in a folder of its own.
#   run-system.sh BUILD [TEST...]
# A test sees HEARTH (the binary), TRUTH (the built truth programs), TOP (the source tree). Its exit status: 0 passed, 77 skipped
# (the last line it printed says why), anything else failed, and then its output is shown. These tests watch a whole machine, and
# what else it does: one that failed runs a second time, and that counts; both are shown (HEARTH_TRIES=1: no second time). Ends
# with one line of counts, which also goes into $HEARTH_TEST_COUNTS as "PASSED FAILED SKIPPED".
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
# The machine's own settings are not the tests'.
export HEARTH_CONFIG=/dev/null
# Indexes of names go nowhere else; kept from test to test, as on a machine.
export HEARTH_SYMBOL_CACHE=$scratch/symbols
# Nor do profiles that are kept where nothing else was said.
export STATE_DIRECTORY=$scratch/state
# attempt TEST NAME: runs it in an empty folder, its output into $scratch/NAME.out; sets $status and $took
attempt() {
	local dir=$scratch/$2 start=$EPOCHREALTIME
	mkdir "$dir"
	(cd "$dir" && exec timeout -k 10 "$limit_seconds" "$1") >"$scratch/$2.out" 2>&1 </dev/null
	status=$?
	took=$(awk "BEGIN { printf \"%.1f s\", $EPOCHREALTIME - $start }")
	[ $status != 124 ] || echo "no end within $limit_seconds s" >>"$scratch/$2.out"
	rm -rf "$dir"
}

show() {
	sed 's/^/       /' "$scratch/$1.out"
}

passed=0 failed=0 skipped=0 again=''
[ $# -gt 0 ] || set -- tests/system/*.sh
for test; do
	[ -f "$test" ] && [ -x "$test" ] || continue
	test=$(readlink -f "$test")
	name=$(basename "$test" .sh)
	attempt "$test" "$name"
	if [ $status != 0 ] && [ $status != 77 ] && [ "${HEARTH_TRIES:-2}" != 1 ]; then
		echo "  once $name ($took, exit status $status), and again:"
		show "$name"
		again="$again $name"
		attempt "$test" "$name"
	fi
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
		echo "  FAIL $name ($took, exit status $status)"
		show "$name"
		;;
	esac
done
echo "system tests: $passed passed, $failed failed, $skipped skipped${again:+; run twice:$again}"
[ -z "${HEARTH_TEST_COUNTS:-}" ] || echo "$passed $failed $skipped" >>"$HEARTH_TEST_COUNTS"
[ $failed = 0 ]
