#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The CI job of docs/ci.md as a script: its steps for recording and comparing are taken out of the file and run, on a program that became
# half as slow again, and on one that did not; then the other formats, read by other tools.
. "$TOP/tests/system/lib.sh"
need_bpf

mkdir -p a b bin
ln -s "$HEARTH" bin/hearth
export PATH=$PWD/bin:$PATH
gcc -O2 -g -o a/blocks "$TOP/tests/diff/blocks.c"
gcc -O2 -g -DMORE=150 -o b/blocks "$TOP/tests/diff/blocks.c"

# step NAME: the commands of that step, with the programs of this test
step() {
	awk -v name="$1" '/^      - /{ on = index($0, "name: " name) } on && /^          /{ print substr($0, 11) }' "$TOP/docs/ci.md" |
		sed "s|sudo hearth|hearth|; s|/tmp/old|a/blocks 25|; s|/tmp/new|b/blocks 25|"
}
[ "$(step record | wc -l)" = 4 ] && [ "$(step compare | wc -l)" = 4 ] || fail "docs/ci.md has other steps: $(step record; step compare)"
export GITHUB_STEP_SUMMARY=$PWD/summary.md

bash -e -c "$(step record)" || fail "recording failed"
status=0
bash -e -c "$(step compare)" 2>err || status=$?
[ $status = 3 ] || fail "a slower program: status $status: $(cat err summary.md)"
grep -q 'hash_keys (blocks)' err && grep -q 'hash&#95;keys' summary.md || fail "does not say what is slower: $(cat err summary.md)"
[ "$(wc -l <err)" -le 24 ] || fail "more than one screen: $(cat err)"
[ -s diff.html ] || fail "the step makes no page"
"$HEARTH" diff -o diff.svg old?.otlp -- new?.otlp >/dev/null || fail "no picture"
python3 -c "import xml.dom.minidom as m; m.parse('diff.svg')" || fail "diff.svg is no XML"
grep -A1 'data-name="hash_keys"' diff.svg | grep -q 'class="u[0-3]"' || fail "hash_keys is not red"

status=0
"$HEARTH" diff --fail-above 2% old1.otlp old2.otlp >out 2>err || status=$?
[ $status = 0 ] && grep -q "^none of " out || fail "the same program: status $status: $(cat out err)"

"$HEARTH" diff --format json old?.otlp -- new?.otlp | python3 -c '
import json, sys
d = json.load(sys.stdin)
f = {f["name"]: f for f in d["functions"]}
h = f["hash_keys"]["self"]
assert d["runs"] == {"a": 3, "b": 3} and h["changed"] and h["delta"] > h["band"] > 0, h
assert abs(h["b"] - h["a"] - h["delta"]) < 1e-6
assert 1.8 < h["b"] / h["a"] < 3.2, h
' || fail "--format json"
"$HEARTH" diff --format csv old?.otlp -- new?.otlp | python3 -c '
import csv, sys
rows = [r for r in csv.DictReader(sys.stdin) if r["name"] == "hash_keys"]
assert {r["of"] for r in rows} == {"self", "total"} and all(r["changed"] == "1" for r in rows), rows
' || fail "--format csv"

"$HEARTH" diff --format json -o diff.html old?.otlp -- new?.otlp >diff.json || fail "no page"
status=0
python3 "$TOP/tests/browser/diff_page.py" diff.html diff.json hash_keys . || status=$?
[ $status = 0 ] || [ $status = 77 ] || exit $status # 77: no browser here

# --- what is wrong is said ---
refused() {
	local status=0
	"$HEARTH" diff "${@:2}" >out 2>err || status=$?
	[ $status = 2 ] && grep -qF -- "$1" err && [ ! -s out ] || fail "hearth diff ${*:2}: status $status: $(cat err)"
}
refused "Say: hearth diff A1 A2 -- B1 B2" old1.otlp old2.otlp new1.otlp
refused "'x%' is no part of the whole" --fail-above x% old1.otlp new1.otlp
refused "end it in .svg or .html" -o diff.png old1.otlp new1.otlp
refused "is no regular expression" --focus 'a(b' old1.otlp new1.otlp
