#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Each line of the table in docs/from-perf.md: what a perf user types works, or is answered by one sentence that says what to type; and
# what stands beside it ends with status 0 and gives something. Recordings of 10 s take one here.
. "$TOP/tests/system/lib.sh"
need_bpf

printf '#!/bin/sh\nend=$(($(date +%%s) + 3))\nwhile [ $(date +%%s) -lt $end ]; do :; done\n' >work # 2 to 3 s
chmod +x work
start busy sh -c 'while :; do /bin/true; done' # switches, calls, faults
pid=$started
has_perf=0
command -v perf >/dev/null && perf record -F 199 -g -e cpu-clock -o perf.data -- "$TRUTH/c_chain" 1 >/dev/null 2>&1 && has_perf=1

# cells: "LEFT TAB RIGHT" of each row whose first two cells are code
cells() {
	sed -nE 's/^\| `([^`]*)` \| `([^`]*)` \|.*/\1\t\2/p' "$TOP/docs/from-perf.md" |
		sed -E "s/\bCOMMAND\b/.\/work/g; s/\bPID\b/$pid/g; s/(sleep|-d) 10\b/\1 1/g"
}
cells >rows
[ "$(wc -l <rows)" -ge 20 ] || fail "the table has $(wc -l <rows) rows"
[ "$(grep -c '^| `' "$TOP/docs/from-perf.md")" = "$(wc -l <rows)" ] || fail "rows that are no two commands: $(grep '^| `' "$TOP/docs/from-perf.md")"

# run WORDS: hearth with the words behind the first; the live table gets Ctrl-C after 4 s. Sets $status.
run() {
	local words limit=60
	read -ra words <<<"$1"
	[ "${words[1]}" != top ] || limit=4
	status=0
	timeout --foreground --preserve-status -s INT $limit "$HEARTH" "${words[@]:1}" >out 2>err </dev/null || status=$?
}

# gives WORDS: standard output, or the file that is named, is not empty, and what was recorded has samples
gives() {
	local file
	file=$(grep -oE '[^ ]+\.(otlp|svg|txt)$' <<<"${1%% -- *}" || :)
	[ -s out ] || [ -s "${file:-none}" ] || fail "'$1' gives nothing: $(cat err)"
	! grep -q 'no sample was taken' err || fail "'$1' takes no sample: $(cat err)"
}

while IFS=$'\t' read -r perf hearth; do
	case $hearth in
	"hearth "*) ;;
	*) fail "'$hearth' is no command line of hearth's" ;;
	esac
	case $perf in
	*perf.data*) [ $has_perf = 1 ] || continue ;;
	esac
	run "$perf"
	case $status in
	0) ;;
	2)
		[ "$(wc -l <err)" = 1 ] && [ ! -s out ] || fail "'$perf' is not answered in one line: $(cat err out)"
		! grep -qE 'unknown|lists what there is|is none of|did you mean' err || fail "'$perf' is not answered: $(cat err)"
		;;
	*) fail "'$perf': status $status: $(cat err)" ;;
	esac
	echo "$SECONDS s $perf: $(head -n 1 err)"
	run "$hearth"
	[ $status = 0 ] || fail "'$hearth': status $status: $(cat err)"
	gives "$hearth"
	! grep -q ' error: ' err || fail "'$hearth': $(cat err)"
done <rows
[ $has_perf = 1 ] || left_out perf "not here: what reads perf.data"
echo "all as it should be"
