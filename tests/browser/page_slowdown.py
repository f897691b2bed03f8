#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A known slowdown, found by selecting its time into Diff over a hearth's own answers.

usage: page_slowdown.py URL PICTURES    the store of the hearth at URL holds one program, that burned in phase_f in the first half of its
                                        time and in phase_g in the second, and in steady_a and steady_b all the time"""
import sys
import time

import webdriver
from page_driver import PANE, Page, check, close

# Of each function: whether all its boxes are grey, and its share of A's and of B's time.
SEEN = PANE + """
    const mid = (p.coloring.palette.length - 1) / 2, out = {};
    for (let i = 0; i < t.n; i++) {
      const of = (out[t.name(i)] ||= { grey: true, a: 0, b: 0 });
      of.grey = of.grey && p.coloring.of[i] === mid;
      of.a += t.total[i] / t.total[0];
      of.b += t.total2[i] / t.total2[0];
    }
    return out;"""


def main():
    url, folder = sys.argv[1], sys.argv[2]
    with webdriver.Browser(1400, 900) as b:
        p = Page(b, int(url.rsplit(":", 1)[1]))
        p.open("from=first&to=last&live=")
        p.drag(".timeline-frame canvas", 0.56, 0.96)
        p.until("return /sel=/.test(location.hash)", "nothing is selected")
        b.keys("4")
        p.until("const v = hearth.view.pane; return Boolean(v && v.tree && v.answer.noise && v.chart.drawn)", f"nothing is judged: {p.text('#main')[:300]}")
        cut, sides = [float(x) for x in p.hash()["sel"].split("-")], [float(p.hash()[k]) for k in ("from1", "to1", "from2", "to2")]
        check(sides[2:] == cut and close(sides[0], 2 * cut[0] - cut[1], 0.1) and close(sides[1], cut[0], 0.1), f"B is not the selected {cut}, or A not the same length before it: {sides}")
        seen = p.run(SEEN)
        b.picture(f"{folder}/slowdown.png")
        f, g = seen["phase_f"], seen["phase_g"]
        check(f["a"] > 0.35 and f["b"] < 0.1 and g["a"] < 0.15 and g["b"] > 0.35, f"phase_f {f}, phase_g {g}")
        check(not f["grey"] and not g["grey"], "what changed is grey")
        for name in ("main", "steady_a", "steady_b"):
            check(seen[name]["grey"], f"{name} did not change, and is no grey: {seen[name]}")
        coloured = {name for name, of in seen.items() if not of["grey"] and name not in ("phase_f", "phase_g") and max(of["a"], of["b"]) > 0.02}
        check(not coloured, f"coloured beside them: {coloured}")
        p.choose("Show as", "top")
        rows = p.until("const v = hearth.view.data; return v.rows && v.noise && [...document.querySelectorAll('.diff .grid tbody tr')].map((r) => [r.cells[4].innerText, r.className])", "no table")
        check({rows[0][0], rows[1][0]} == {"phase_f", "phase_g"} and rows[0][1] == rows[1][1] == "", f"not the first rows: {rows[:3]}")
        check(dict(rows)["steady_a"] == dict(rows)["steady_b"] == "none", f"rows within noise: {rows}")
        time.sleep(0.2)
        p.quiet()
        b.picture(f"{folder}/slowdown-top.png")


try:
    main()
except AssertionError as error:
    sys.exit(f"FAILED: {error}")
