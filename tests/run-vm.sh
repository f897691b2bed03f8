#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Boots other kernels and runs tests/vm/inside.sh on each: every BPF object is loaded and a truth program is walked.
#   run-vm.sh BUILD [5.10|6.1|6.12|7.2...]      (all of them when none is named)
# One line a kernel; what failed shows its output. Needs root and what tests/vm/boot.sh names; a kernel that cannot be had is
# skipped. Counts as run-system.sh does.
set -u
[ $# -ge 1 ] || {
	echo "usage: $0 BUILD [KERNEL...]" >&2
	exit 2
}
build=$(readlink -f "$1")
cd "$(dirname "$0")/.." || exit 1
shift
[ $# -gt 0 ] || set -- 5.10 6.1 6.12 7.2
[ -x "$build/hearth" ] || {
	echo "$build/hearth is not built: run 'make' first" >&2
	exit 1
}
tests/truth/build.sh "$build/truth" || exit 1

out=$(mktemp)
trap 'rm -f "$out"' EXIT
passed=0 failed=0 skipped=0
for version; do
	start=$EPOCHREALTIME
	release=
	kernel=$(tests/vm/kernel.sh "$version" 2>"$out")
	status=$?
	if [ $status = 0 ]; then
		release=" ($(cat "$kernel/release"))"
		tests/vm/boot.sh "$kernel" "cd '$PWD' && tests/vm/inside.sh '$build'" >"$out" 2>&1
		status=$?
	fi
	took=$(awk "BEGIN { printf \"%.1f s\", $EPOCHREALTIME - $start }")
	case $status in
	0)
		passed=$((passed + 1))
		echo "  ok   kernel $version$release: $(tail -n 1 "$out") ($took)"
		;;
	77)
		skipped=$((skipped + 1))
		echo "  skip kernel $version$release: $(tail -n 1 "$out")"
		;;
	*)
		failed=$((failed + 1))
		echo "  FAIL kernel $version$release ($took, exit status $status)"
		sed 's/^/       /' "$out"
		;;
	esac
done
echo "vm tests: $passed passed, $failed failed, $skipped skipped"
[ -z "${HEARTH_TEST_COUNTS:-}" ] || echo "$passed $failed $skipped" >>"$HEARTH_TEST_COUNTS"
[ $failed = 0 ]
