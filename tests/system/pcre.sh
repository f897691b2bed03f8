#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Regular expressions that PCRE2 compiled to machine code: stacks go on through such code, which has no frame pointers, to their root,
# and it has a name; with the reader off they end there.
. "$TOP/tests/system/lib.sh"
need_bpf
[ "$(uname -m)" = x86_64 ] || skip "regular expressions' code is read on x86-64 alone"
echo aab | grep -qP 'a(?=b)' 2>/dev/null || skip "no grep -P here"
base64 /dev/urandom | head -c 8000000 >text
cp "$(command -v grep)" regexp_grep
search() {
	timeout 3 "${BASH:-bash}" -c 'while cat text; do :; done' 2>/dev/null |
		./regexp_grep -cP '(?<=a)(\w+?)(?:z|(?1){2})x\d+(?!b)[[:alpha:]]*\1' >count || : # not to /dev/null, where grep looks for the first line alone
}
# record_search OPTION...: into x.otlp; sets part (percent of the stacks that are complete) and report
record_search() {
	start_record x.otlp -F 499 --report-interval 500ms "$@" -p $$ # and its children
	search
	stop "$recorder"
	accounted record.out.err
	"$HEARTH" report x.otlp --format truth >report
	part=$(sed -n 's/.* with a user stack: [0-9]* complete (\([0-9]*\).*/\1/p' report)
	"$HEARTH" report x.otlp --process regexp_grep --format folded >folded
}

for form in "" --no-bpf-loop; do
	# shellcheck disable=SC2086 # there may be none
	record_search $form
	[ "$(awk '/;\(regexp\)[ ;]/ { n += $NF } END { print n + 0 }' folded)" -ge 200 ] || fail "$form: no regular expression: $(head -n 5 folded)"
	[ "${part:-0}" -ge 99 ] || fail "$form: $part % of stacks are complete: $(cat report)"
	! grep '(regexp)' folded | grep -v '__libc_start_main;.*;pcre2_jit_match_8;.*(regexp)' || fail "$form: not from the program's start"
done
record_search --runtimes -pcre
! grep -q '(regexp)' folded && grep -q 'JIT code' folded || fail "the reader is not off: $(head -n 5 folded)"
