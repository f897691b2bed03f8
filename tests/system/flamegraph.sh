#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The picture of a recording, complete and in its parts what the folded stacks say; then in a browser.
# Alone: rare frames of two seconds are seen by a program that has its CPU.
. "$TOP/tests/system/lib.sh"
need_bpf

"$HEARTH" record -F 499 -o chain.otlp -- "$TRUTH/cpp_chain" 2 >out 2>err || fail "exit status $?: $(cat err)"
"$HEARTH" convert chain.otlp chain.svg 2>/dev/null || fail "no picture"
! grep -qE '(href|src|url)[=(]' chain.svg || fail "it asks for something from elsewhere"
"$HEARTH" report chain.otlp --format folded >folded
python3 - chain.svg folded <<'PY' || fail "the picture is not that of the stacks"
import re, sys, xml.dom.minidom
want = {}
for line in open(sys.argv[2]):
    stack, count = line.rstrip("\n").rsplit(" ", 1)
    names = tuple(re.sub(r" \(inlined\)$", "", n) for n in ("all;" + stack).split(";"))
    for i in range(len(names)):
        want[names[: i + 1]] = want.get(names[: i + 1], 0) + int(count)
path, seen = [], {}
for g in xml.dom.minidom.parse(sys.argv[1]).getElementsByTagName("g"):
    if not g.getAttribute("data-name"):
        continue
    path[int(g.getAttribute("data-y")):] = [g.getAttribute("data-name").replace(";", ":")]
    title = g.getElementsByTagName("title")[0].firstChild.data
    seen[tuple(path)] = int(re.search(r"(\d+) samples", title)[1])
    part = seen[tuple(path)] / seen[("all",)]
    assert abs(float(g.getAttribute("data-w")) - part) < 1e-6
assert len(seen) > 10 and all(want[p] == n for p, n in seen.items()), [(p, n, want.get(p)) for p, n in seen.items() if want.get(p) != n][:3]
assert all(n / want[("all",)] * 1180 < 0.11 for p, n in want.items() if p not in seen), "a wide frame is missing"
PY
status=0
python3 "$TOP/tests/browser/flamegraph.py" chain.svg truth::outer . || status=$?
# The places of the outermost ones on the right, 996 / 998 and 2 / 998, are more than a whole together as they are written.
printf 'a;b;d;e;f;g;h 996\na;c;i;j;k;l;m 2\n' >edge.folded
[ $status != 0 ] || { "$HEARTH" convert edge.folded edge.svg 2>/dev/null && python3 "$TOP/tests/browser/flamegraph.py" edge.svg c .; } || status=$?
[ $status != 77 ] || skip "no chromium and chromedriver here"
[ $status = 0 ] || exit $status
"$HEARTH" convert chain.otlp chain.html 2>/dev/null || fail "no page"
"$HEARTH" convert chain.otlp chain.folded 2>/dev/null || fail "no folded stacks"
printf 'a;</script><script>alert(1)</script>;&amp;"<!--;x 5\n' >hostile.folded
"$HEARTH" convert hostile.folded hostile.html 2>/dev/null && "$HEARTH" convert hostile.folded hostile.svg 2>/dev/null || fail "hostile names"
[ "$(grep -ao '</script' hostile.html | wc -l)" = 2 ] && ! grep -q '<!--' hostile.html || fail "a name ends the page's data"
python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' hostile.svg || fail "a name breaks the picture"
python3 "$TOP/tests/browser/flamegraph_page.py" chain.html chain.folded truth::outer .
