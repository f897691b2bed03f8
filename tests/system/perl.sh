#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The subs of Perl scripts in stacks: each sample of a program that calls in every way there is, judged by what the program says of
# itself, in both forms of the walk; code that runs before and behind the main program; a program that passes itself off as Perl, with
# contexts that are broken in many ways. Debian's own Perl here.
. "$TOP/tests/system/lib.sh"
need_bpf
[ "$(uname -m)" = x86_64 ] || skip "torn_perl.c has the layout of x86-64 alone"

# --- contexts that make no sense: what is inside them is right, nothing is outside them ---

"${CC:-gcc}" -O1 -rdynamic -o torn_perl "$TOP/tests/system/torn_perl.c"
# expected WAY STACK: of the stacks that have a sub WAY all are this one
expected() {
	local others
	grep -q ";run;$2\(;\| [0-9]*$\)" folded || fail "$1: no stack $2: $(grep "::$1 " folded | head -3)"
	others=$(grep "::$1 " folded | grep -vc ";run;$2\(;\| [0-9]*$\)" || :)
	[ "$others" = 0 ] || fail "$1: $(grep "::$1 " folded | grep -v ";run;$2\(;\| [0-9]*$\)" | head -3)"
}

start torn.out ./torn_perl # its file is read while it runs, so that the first way of the next is seen on a busy machine
callers="torn.pl torn.pl:6;main::outer torn.pl:7;main::caller"
for form in "" --no-bpf-loop; do
	# shellcheck disable=SC2086 # there may be none
	"$HEARTH" record $form -F 199 --interpreter-frames -o torn.otlp -- ./torn_perl >/dev/null 2>record.err || fail "$(cat record.err)"
	"$HEARTH" report torn.otlp --format folded --lines >folded
	! grep -q WRONG folded || fail "a frame outside a broken one: $(grep WRONG folded | head -3)"
	for way in array many ahead; do
		! grep -q "::$way" folded || fail "$way: $(grep "::$way" folded | head -3)"
	done
	for way in whole behind; do
		expected $way "$callers torn.pl:8;main::$way torn.pl:9"
	done
	grep -qE ";run;$callers torn.pl:8(;clock_gettime.*)? [0-9]+$" folded || fail "no stack without the sub that has ended"
	expected fresh "$callers torn.pl:9;main::fresh torn.pl:6"
	expected lost "main::outer torn.pl:7;main::caller torn.pl:8;main::lost torn.pl:9"
	expected line "main::caller torn.pl:8;main::line torn.pl:9"
	for way in kind nothing bodyless unnamed; do
		expected $way "main::$way torn.pl:9"
	done
	grep -qE ";run;(main::(outer|caller|ring) torn.pl:[6-9];?){700,}" folded || fail "ring: $(grep -c ::ring folded) stacks"
done

# --- scripts ---

perl=$(readlink -e /usr/bin/perl) || skip "no /usr/bin/perl here"
"$perl" -MConfig -MList::Util -MData::Dumper -MTime::HiRes -e 'exit !($Config{useithreads} && ($] =~ /^5\.0(?:36|40)/))' ||
	skip "a Perl without threads, or of a version that is not known"
name=$(basename "$perl")

# judged LEAST WITHOUT ARGUMENT...: the verdict on x.otlp
judged() {
	judge_scripts --min 99.9 --least "$1" --without "$2" --loop Perl_runops_standard --file calls.pl --within 'eval *' "${@:3}" \
		x.otlp "$name" perl truth
}

# The interpreter is read when a process that runs it is met first, which takes its time on a busy machine: one runs before.
"$perl" -e 'sleep(300)' &
pids+=($!)
for form in "" --no-bpf-loop; do
	# shellcheck disable=SC2086 # there may be none
	start_record x.otlp $form -F 399 --interpreter-frames --report-interval 500ms -p $$ # and its children
	"$perl" "$TOP/tests/script/calls.pl" 3 >truth
	stop "$recorder"
	accounted record.out.err
	judged 300 120
	# Ends and beginnings of threads are in no script; tiny and short subs may not be met.
	missing=$(judged 0 100000 --min 0 | sed -n 's/.*never seen: //p' | tr ' ' '\n' |
		grep -vxE 'main::(say_truth|say_frame|passed|use_threads|tiny_.*)|Tied::TIESCALAR|.*::BEGIN' || :)
	[ -z "$missing" ] || fail "never seen: $missing"
done

# Code of other times than the main program's.
mkdir lib
cat >lib/Slow.pm <<'END'
package Slow;
sub work { main::spin() }
work();
1;
END
cat >when.pl <<'END'
sub spin { my $end = (times)[0] + 0.5; my $n = 0; while ((times)[0] < $end) { $n++ for 1 .. 500 } }
BEGIN { spin() }
use lib 'lib';
use Slow;
eval "spin();\n";
format STDERR =
@<<<
Slow::work()
.
write STDERR;
INIT { spin() }
END { spin() }
END
start_record x.otlp -F 199 --report-interval 500ms -p $$
"$perl" when.pl 2>/dev/null
stop "$recorder"
"$HEARTH" report x.otlp --format folded >folded
for stack in "perl_parse;.*;when.pl;eval {...};main::BEGIN;main::spin" \
	"perl_parse;.*;when.pl;eval {...};main::BEGIN;require lib/Slow.pm;Slow::work;main::spin" \
	"main;when.pl;eval '...';main::spin" "main;when.pl;main::STDERR;Slow::work;main::spin" \
	"main;when.pl;eval {...};main::INIT;main::spin" "perl_destruct;when.pl;eval {...};main::END;main::spin"; do
	grep -q "^$name;.*;$stack[; ]" folded || fail "no stack $stack: $(grep "main::spin" folded | head -20)"
done
wrong=$(grep "^$name;.*main::spin" folded | grep -vc "when.pl;.*main::spin" || :)
[ "$wrong" = 0 ] || fail "$wrong stacks without the main program"
