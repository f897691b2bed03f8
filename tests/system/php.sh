#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The functions of PHP scripts in stacks: each sample of a program that calls in every way there is, judged by what the program says of
# itself, in both forms of the walk, without and with PHP's cache of scripts; a program that passes itself off as PHP, with frames that
# are broken in many ways. Debian's own PHP here.
. "$TOP/tests/system/lib.sh"
need_bpf

# judged LEAST WITHOUT ARGUMENT...: the verdict on x.otlp
judged() {
	judge_scripts --min 99.5 --least "$1" --without "$2" --all-lines --loop execute_ex --file calls.php,included.php, "${@:3}" \
		x.otlp "$name" php truth
}

# --- frames that make no sense: what is above them is right, nothing is behind them ---

"${CC:-gcc}" -O1 -rdynamic -o torn_php "$TOP/tests/system/torn_php.c"
# expected WAY STACK: of the samples with way() on top, all have this stack of the script
expected() {
	local others
	grep -q ";run;$2\(;\| [0-9]*$\)" folded || fail "$1: no stack $2: $(grep ";$1 " folded | head -3)"
	others=$(grep ";$1 " folded | grep -vc ";run;$2\(;\| [0-9]*$\)" || :)
	[ "$others" = 0 ] || fail "$1: $(grep ";$1 " folded | grep -v ";run;$2\(;\| [0-9]*$\)" | head -3)"
}

for form in "" --no-bpf-loop; do
	# shellcheck disable=SC2086 # there may be none
	"$HEARTH" record $form -F 199 -o torn.otlp -- ./torn_php >/dev/null 2>record.err || fail "$(cat record.err)"
	"$HEARTH" report torn.otlp --format folded --lines >folded
	! grep -q WRONG folded || fail "a frame behind a broken one: $(grep WRONG folded | head -3)"
	for way in whole edge; do
		expected $way "torn.php torn.php:5;caller;$way torn.php:7"
	done
	for way in far between; do # the place makes no sense: there is no line
		expected $way "torn.php torn.php:5;caller;$way torn.php"
	done
	for way in hole odd kind nothing oblique untyped unnamed; do
		expected $way "$way torn.php:7"
	done
	grep -q ";torn.php torn.php:5;x\{1023\};long torn.php:7" folded || fail "a long name is not cut"
	for way in ring delegates; do
		grep -qE "(;$way torn.php:7){900,}" folded || fail "$way: $(grep -c $way folded) stacks"
	done
	accounted record.err
done

# --- scripts ---

php=$(readlink -e /usr/bin/php) || skip "no /usr/bin/php here"
[ -x "$php" ] || skip "no /usr/bin/php here"
name=$(basename "$php")
for form in "" --no-bpf-loop "-- -d opcache.enable_cli=1"; do
	# shellcheck disable=SC2086 # there may be none
	start_record x.otlp ${form%%-- *} -F 333 --report-interval 500ms -p $$ # and its children
	[ "$form" = "${form#-- }" ] && options= || options=${form#-- }
	# shellcheck disable=SC2086
	"$php" $options "$TOP/tests/script/calls.php" 3 >truth
	stop "$recorder"
	accounted record.out.err
	judged 40 400
	judged 40 400 | sed -n 's/.*never seen: //p' | tr ' ' '\n' | grep Calls | grep -v 'Calls.\(tell\|put\|in_full\)' >>missing || :
done
missing=$(sort missing | uniq -c | awk '$1 == 3 { print $2 }')
[ -z "$missing" ] || fail "never seen: $missing"
