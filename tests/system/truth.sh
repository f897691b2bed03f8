#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every truth program runs below one recording of the whole machine; at least 99 % of the samples of each must show its chain.
. "$TOP/tests/system/lib.sh"
need_bpf

seconds=3
programs=() running=()
start_record all.otlp -F 499

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
	esac
	[ "$name" != threads ] || finish # eight of them, which leave nothing to a neighbour
	start "$name" "$file" $seconds
	programs+=("$name")
	running+=("$started")
	[ ${#running[@]} -lt 2 ] && [ "$name" != threads ] || finish
done
finish
stop "$recorder"
cat record.out.err
accounted record.out.err
"$HEARTH" report all.otlp --format folded >folded
"$TOP/tests/truth/check.py" --min 99 --least 300 folded "${programs[@]}"
