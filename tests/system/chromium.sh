#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A browser at work: Chromium has 240 MB of code without symbols and tables, code that V8 brought along, and code made at run time.
# Nearly all of its stacks must reach their root, and what lies on the way must be of every kind.
# Alone: it takes every CPU, and what lives for milliseconds is to be complete.
. "$TOP/tests/system/lib.sh"
need_bpf
command -v chromium >/dev/null && command -v chromedriver >/dev/null || skip "no chromium and chromedriver here"

"$HEARTH" record -F 199 --symbols off -o x.otlp -- python3 "$TOP/tests/browser/busy.py" 5 >out 2>err || fail "exit status $?: $(cat out err)"
"$HEARTH" report x.otlp --format truth >truth
cat out err truth
# STACKS COMPLETE TRUNCATED UNNAMED TIME, FRAMES chromium
read -r stacks percent < <(awk '/^stacks, by executable/ { on = 1 } /^$/ { on = 0 } on && $6 == "chromium" { print $1, $2 + 0 }' truth)
[ "${stacks:-0}" -ge 200 ] || fail "only ${stacks:-0} stacks of chromium"
awk -v p="$percent" 'BEGIN { exit p < 99 }' || fail "only $percent % of chromium's stacks are complete"
# JavaScript on the way: code made at run time between that of the file
"$HEARTH" report x.otlp --format folded >folded
grep -cE ';chromium(\+0x| \(no symbols\))(.*;)?\[JIT code\][^;]*;(.*;)?chromium(\+0x| \(no symbols\))' folded >through || :
[ "$(cat through)" -ge 5 ] || fail "only $(cat through) stacks go through JavaScript: $(cut -c 1-300 folded | head -5)"
