#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every truth program runs below one recording; every stack of each must be exact. "truth.sh PROGRAM..." runs these only, and with
# "--exact" before them nothing is known to fall short.
# Alone: it takes every CPU.
. "$TOP/tests/system/lib.sh"
need_bpf

seconds=2 known=(--known "$TOP/tests/truth/known")
[ "${1:-}" != --exact ] || {
	known=()
	shift
}
programs=() running=()
# Not of the neighbours: what they miss would share the limits of stack copies. The programs give way to the agent: while it has to wait
# for a CPU, stacks that are deeper than a copy are cut.
start_record all.otlp -F 499 --ring-bytes 16777216 -p $$

# finish: until all that were started have ended
finish() {
	for pid in "${running[@]}"; do
		wait "$pid" || fail "a truth program ended with status $?: $(cat ./*.err)"
	done
	running=()
}

for file in "$TRUTH"/*; do
	name=$(basename "$file")
	case $name in
	lib* | bench*) continue ;;
	turns1500) continue ;; # deeper than hearth walks
	esac
	[ -f "$file" ] || continue
	[ $# = 0 ] || [[ " $* " = *" $name "* ]] || continue
	[ "$name" != threads ] || finish # eight of them, which leave nothing to a neighbour
	start "$name" nice "$file" $seconds
	programs+=("$name")
	running+=("$started")
	[ ${#running[@]} -lt 2 ] && [ "$name" != threads ] || finish
done
finish
stop "$recorder"
cat record.out.err
accounted record.out.err
judge "${known[@]}" --folder "$TRUTH" --least 60 all.otlp "${programs[@]}"
