#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs the system tests, every executable tests/system/*.sh, each in a folder of its own: two at a time, beside them those that have a
# line "# Waits: WHY", one at a time, and then one after another those that have a line "# Alone: WHY".
#   run-system.sh BUILD [TEST...]      a test: its file, or its name
#   run-system.sh BUILD --one-process  those that start `hearth run` and do not say in which form, in the form of one process
# A test sees HEARTH (the binary), TRUTH (the built truth programs), TOP (the source tree). Exit status: 0 passed, 77
# skipped (the last line it printed says why), anything else failed, and then its output is shown. A test that passed
# but printed lines "left out: PART WHY" has parts that are counted as skipped. These tests watch a whole machine, and
# what else it does: one that failed runs a second time, alone, and that counts, as a flake when it passes; both are
# shown (HEARTH_TRIES=1: no second time). Of one that passed the lines with HEARTH_SHOW are shown; of what a failed one
# printed, each line is cut at 400 characters. Ends with one line of counts. $HEARTH_TEST_COUNTS: see run.sh.
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

# `record -- COMMAND` would run it as the user who called sudo, to whom the tests' folders do not belong.
unset SUDO_USER SUDO_UID SUDO_GID SUDO_COMMAND

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
chmod 755 "$scratch"
# The machine's own settings are not the tests'.
export HEARTH_CONFIG=/dev/null
# A system call that hearth does not expect of itself ends it.
export HEARTH_REFUSED_CALLS=kill
# Indexes of names go nowhere else; kept from test to test, as on a machine.
export HEARTH_SYMBOL_CACHE=$scratch/.symbols
# What Go compiles is kept too, its own library and `go tool pprof` among it, which is half a minute of work.
export GOCACHE=$PWD/build/go-cache
# in_one_process: those tests: what they start stands in them, or in a file that they name
in_one_process() {
	local test files
	for test in tests/system/*.sh; do
		files=$(grep -oE '\$TOP/tests/[A-Za-z0-9_/.-]+\.(sh|py)' "$test" | sed 's|^\$TOP/||' | sort -u)
		# shellcheck disable=SC2086 # a list
		[ ! -x "$test" ] || grep -q 'unset.*HEARTH_ONE_PROCESS' "$test" $files || ! grep -qE '\$HEARTH"? (run |--config)|"run", "-' "$test" $files || echo "$test"
	done
}
if [ "${1:-}" = --one-process ]; then
	export HEARTH_ONE_PROCESS=yes
	# shellcheck disable=SC2046 # a list
	set -- $(in_one_process)
fi

# attempt TEST NAME: runs it in an empty folder, its output into $scratch/NAME.out; sets $status and $took. Profiles that are kept
# where nothing else was said go nowhere else either.
attempt() {
	local dir=$scratch/$2 start=$EPOCHREALTIME
	mkdir "$dir"
	(cd "$dir" && STATE_DIRECTORY=$dir.state exec timeout -k 10 "$limit_seconds" "$1") >"$scratch/$2.out" 2>&1 </dev/null
	status=$?
	took=$(awk "BEGIN { printf \"%.1f s\", $EPOCHREALTIME - $start }")
	echo "time ${took% s} system/$2" >>"$counts"
	[ $status != 124 ] || echo "no end within $limit_seconds s" >>"$scratch/$2.out"
	rm -rf "$dir"
}

# skipped NAME WHY
skipped() {
	echo "0 0 1" >>"$counts"
	echo "skip system/$*" >>"$counts"
	echo "  skip $1: ${*:2}"
}

# failed NAME WHY
failed() {
	{
		echo "0 1 0"
		echo "fail system/$1"
		show "$1" | tail -n 8 | sed 's/^ */said /'
	} >>"$counts"
	echo "  FAIL $1${*:2}"
	show "$1"
}

show() {
	[ ! -e "$scratch/$1.out" ] || cut -c -400 "$scratch/$1.out" | sed 's/^/       /'
}

# run TEST...: one after another, a line each. in_lane=1: one that fails is put into $scratch/.again; again=1: it is tried once more
run() {
	local test name once part why
	for test; do
		name=$(basename "$test" .sh)
		if [ ! -x "$test" ]; then
			failed "$name" ": there is no such test"
			continue
		fi
		test=$(readlink -f "$test")
		attempt "$test" "$name"
		once=${again:-}
		if [ -z "$once" ] && [ $status != 0 ] && [ $status != 77 ] && [ "${HEARTH_TRIES:-2}" != 1 ]; then
			echo "  once $name ($took, exit status $status), and again${in_lane:+ when the others have ended}:"
			show "$name"
			if [ -n "${in_lane:-}" ]; then
				echo "$test" >>"$scratch/.again"
				continue
			fi
			once=1
			attempt "$test" "$name"
		fi
		case $status in
		0)
			echo "1 0 0" >>"$counts"
			[ -z "$once" ] || echo "flake system/$name" >>"$counts"
			echo "  ok   $name ($took${once:+; flaky: failed once})"
			[ -z "${HEARTH_SHOW:-}" ] || grep -- "$HEARTH_SHOW" "$scratch/$name.out" | sed 's/^/       /'
			while read -r part why; do
				skipped "$name/$part" "$why"
			done < <(sed -n 's/^left out: //p' "$scratch/$name.out")
			;;
		77) skipped "$name" "$(tail -n 1 "$scratch/$name.out")" ;;
		*)
			failed "$name" " ($took, exit status $status)"
			;;
		esac
	done
}

counts=$scratch/.counts
: >"$counts"
tests/truth/build.sh "$TRUTH" >"$scratch/truth.out" 2>&1 || {
	cat "$scratch/truth.out"
	exit 1
}
while read -r part why; do
	skipped "truth/$part" "$why"
done < <(sed -n 's/^left out: //p' "$scratch/truth.out")
[ $# -gt 0 ] || set -- tests/system/*.sh
: >"$scratch/.beside" >"$scratch/.waiting" >"$scratch/.again"
alone=()
for test; do
	[ -f "$test" ] || test=tests/system/$(basename "$test" .sh).sh
	if [ -f "$test" ] && [ ! -x "$test" ]; then # a part of tests
		continue
	elif grep -qs '^# Alone: ' "$test"; then
		alone+=("$test")
	elif grep -qs '^# Waits: ' "$test"; then
		echo "$test" >>"$scratch/.waiting"
	else
		echo "$test" >>"$scratch/.beside"
	fi
done
# lane FILE...: of the tests in these open files each that no other lane has taken
lane() {
	local test file
	for file; do
		while { flock 9 && read -r test <&"$file"; } 9>"$scratch/.turn"; do
			in_lane=1 run "$test" 3<&- 4<&-
		done
	done
}
{
	lane 3 4 &
	lane 3 4 &
	lane 4 &
	wait
} 3<"$scratch/.beside" 4<"$scratch/.waiting"
run "${alone[@]}"
mapfile -t failed_once <"$scratch/.again"
again=1 run "${failed_once[@]}"
awk '/^flake / { sub("system/", "", $2); flaky = flaky " " $2 } /^[0-9]/ { p += $1; f += $2; s += $3 }
	END { printf "system tests: %d passed, %d failed, %d skipped%s\n", p, f, s, flaky ? "; flaky:" flaky : ""; exit f > 0 }' "$counts"
status=$?
cat "$counts" >>"${HEARTH_TEST_COUNTS:-/dev/null}"
exit $status
