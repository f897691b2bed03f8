#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Programs that cost whoever profiles them what they can (neighbour.c), one after another for SECONDS each, beside an honest one, under
# hearth at 999 Hz: hearth's processes together take at most 20 MB more than before, which come back when it has ended; the honest one
# has its samples, whole. By hand: make neighbours; tests/system/neighbours.sh has a moment of each.
#   neighbours.sh BUILD [SECONDS [KIND...]]
build=$(readlink -f "${1:?usage: neighbours.sh BUILD [SECONDS [KIND...]]}")
seconds=${2:-30}
kinds=("${@:3}")
[ ${#kinds[@]} != 0 ] || kinds=(mappings remap threads registers jitdump perfmap)
unset HEARTH_ONE_PROCESS SUDO_USER SUDO_UID SUDO_GID
. "$(dirname "$0")/../by-hand.sh"
export HEARTH_SYMBOL_CACHE=$here/symbols # known files would hide what reading them takes
need_bpf
most_mb=20    # the bar of docs/halves.md
back_mb=4     # of it may stay: names and rows of files that were met
back_seconds=30

gcc -std=gnu17 -O1 -D_GNU_SOURCE -I"$TOP" -fno-stack-protector -fno-omit-frame-pointer -pthread -o neighbour "$TOP/tests/hostile/neighbour.c"
start honest "$TRUTH/c_chain" $(((seconds + back_seconds + 10) * ${#kinds[@]} + 60))
honest=$started
# who starts the programs that it reads the names of; with it they alone are sampled, not what else this machine does
mkfifo next
# shellcheck disable=SC2016 # the inner shell's
start runner bash -c 'exec <next
	read -r kind; ./neighbour "$kind" 1 >"$kind" 2>"$kind.err"; echo $? >"$kind.ended"
	while read -r kind; do ./neighbour "$kind" "$0" >"$kind" 2>"$kind.err"; echo $? >"$kind.ended"; done' "$seconds"
runner=$started
exec 3>next
start out "$HEARTH" run -F 999 -p "$honest,$runner" --http-address 127.0.0.1:0 --report-interval 1s --store store
hearth=$started
until_true 60 grep -q "profiles go to" out.err || fail "no profiler: $(cat out.err)"
page=$(sed -n 's/.*page at \(http:[^ ]*\)\/$/\1/p' out.err)

# pss SECONDS: sets least, peak, last and who
pss() {
	# shellcheck disable=SC2034 # least: of settled()
	read -r least peak last who < <("$TOP/tests/hostile/pss.py" "$hearth" "$1")
}
# above MB: whether hearth has that
at_most() {
	pss 0
	awk -v last="$last" -v most="$1" 'BEGIN { exit last > most }'
}
# of_honest: how many of its samples are stored
of_honest() {
	curl -sfG "$page/api/v1/top?from=first&to=now&kind=samples" --data-urlencode "query={process.pid=\"$honest\"}" |
		python3 -c 'import json, sys; print(json.load(sys.stdin)["events"])'
}

ready() { grep -q ready "$kind"; }
# Names of what all programs share are read before, and the first reports are behind it.
kind=registers
echo $kind >&3
until_true 60 test -s $kind.ended || fail "the warm-up does not end: $(cat $kind.err)"
rm $kind $kind.ended
settled() { pss 2 && awk -v least="$least" -v peak="$peak" 'BEGIN { exit peak > least + 0.5 }'; }
until_true 60 settled || fail "hearth's memory does not settle: $least to $peak MB, $who"
printf '%-10s %8s %8s %8s %8s   %s\n' KIND BEFORE MOST AFTER HONEST 'MOST OF IT'
failures=()
for kind in "${kinds[@]}"; do
	pss 2
	before=$last
	had=$(of_honest)
	echo "$kind" >&3
	until_true 30 ready || fail "$kind does not begin: $(cat "$kind.err")"
	pss "$seconds"
	until_true 30 test -s "$kind.ended" && [ "$(cat "$kind.ended")" = 0 ] || fail "$kind ended: $(cat "$kind.err")"
	most=$peak mostly=$who
	until_true $back_seconds at_most "$(awk -v b="$before" -v m=$back_mb 'BEGIN { print b + m }')" || failures+=("$kind: it had $before MB, and keeps $last")
	printf '%-10s %8s %8s %8s %8s   %s\n' "$kind" "$before" "$most" "$last" $(($(of_honest) - had)) "$mostly"
	awk -v b="$before" -v p="$most" -v most=$most_mb 'BEGIN { exit p > b + most }' || failures+=("$kind: it had $before MB, then $most")
done
stop "$hearth"
accounted out.err
tail -n 4 out.err
[ ${#failures[@]} = 0 ] || fail "$(printf '%s\n' "${failures[@]}")"
