#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# hearth's word on its own stacks: a program deeper than hearth walks is reported as cut, for that reason, in its
# module; with --error-frames each of its stacks says so itself, at its root; a program that can be walked is reported
# complete and unmarked.
# Alone: it takes every CPU.
. "$TOP/tests/system/lib.sh"
need_bpf

cp "$TRUTH/turns1500" toodeep
cp "$TRUTH/recurse400" deep
# number LINE-START FILE: the number that ends lines of FILE that begin so, added up
number() {
	awk -v start="$1" 'index($0, start) == 1 { sum += $NF } END { print sum + 0 }' "$2"
}

start toodeep.out ./toodeep 30
start deep.out ./deep 30
toodeep_pid=${pids[0]} deep_pid=${pids[1]}
for options in "" --error-frames; do
	# shellcheck disable=SC2086 # there may be none
	"$HEARTH" record $options -F 99 -d 4 -p "$toodeep_pid,$deep_pid" -o x.otlp >out 2>err || fail "exit status $?: $(cat err)"
	"$HEARTH" report x.otlp --format folded >folded
	"$HEARTH" report x.otlp --format truth >truth
	"$HEARTH" report x.otlp --format truth | cat >again
	cmp -s truth again || fail "the report differs from run to run"
	cut -c 1-200 folded
	cat truth err
	all=$(number "toodeep;" folded)
	marked=$(number "toodeep;[stack truncated: depth];" folded)
	cut=$(awk '$6 == "toodeep" && $7 == "depth" { print $3 }' truth)
	[ "${cut:-0}" -ge 10 ] || fail "only ${cut:-0} of $all stacks of toodeep are reported as too deep"
	[ $((cut * 100)) -ge $((all * 75)) ] || fail "$cut of $all stacks of toodeep are too deep; all but those on the way down are"
	if [ -n "$options" ]; then
		[ "$marked" = "$cut" ] || fail "$cut stacks are cut, but $marked are marked"
	else
		! grep -q "stack truncated" folded || fail "stacks are marked without --error-frames"
	fi
	grep -qE '^named: [0-9.]+ % of the time .*, [0-9.]+ % of user frames' truth || fail "names are not told by time"
	# where the walks began: in the program itself, which is also a module, but for the few samples of its look at the clock
	modules=$(awk '/^stacks, by the module/ { on = 1 } /^$/ { on = 0 } on && $5 == "depth" { sum += $3 } END { print sum + 0 }' truth)
	own=$(awk '$4 == "toodeep" && $5 == "depth" { print $3 }' truth)
	[ "$modules" = "$cut" ] || fail "$modules stacks are too deep by module, $cut by executable"
	[ $((${own:-0} * 100)) -ge $((cut * 90)) ] || fail "only ${own:-0} of $cut too deep stacks are the program's own by module"
	awk '/^stacks, by executable/ { on = 1 } /^$/ { on = 0 } on && $6 == "deep" && $3 { bad = 1 } END { exit bad }' truth ||
		fail "a program that can be walked is not reported complete"
	# the last lines of the run say the same
	grep -qE "hearth: $cut of [0-9]+ user stacks are not complete(, most of them \([0-9]+\) for)?: depth$" err ||
		grep -qE "user stacks are not complete, most of them \($cut\) for: depth$" err ||
		fail "the run itself does not say that $cut stacks are too deep: $(cat err)"
done
HEARTH_ERROR_FRAMES=yes "$HEARTH" record -F 99 -d 2 -p "$toodeep_pid" -o x.otlp >out 2>err || fail "exit status $?: $(cat err)"
"$HEARTH" report x.otlp --format folded | grep -qE "^toodeep;\[stack truncated: depth\];(down|over);" || fail "no effect of HEARTH_ERROR_FRAMES"
