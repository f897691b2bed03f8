#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The page of a comparison: that it holds what the JSON of the same says; then in a browser: drawn, zoomed, searched, inverted, as a
table, light and dark and narrow, and nothing asked from elsewhere.

usage: diff_page.py FILE.html FILE.json FUNCTION PICTURES    FUNCTION takes more in B; screenshots go into the folder PICTURES"""
import json
import sys
import time

import colours
import webdriver
from flamegraph_page import ESCAPE, Page, check, colours as colours_drawn, fits, frame_at, nodes, text_of

PHONE = {"width": 390, "height": 844, "deviceScaleFactor": 3, "mobile": True}


def compare(data, truth):
    """The tree is that of the stacks of both sides, the table that of the functions."""
    look, whole = data["look"], truth["cpu_seconds"]["a"] if truth["unit"] == "seconds" else 1
    want = {}
    for s in truth["stacks"]:
        for i in range(len(s["stack"]) + 1):
            pair = want.setdefault(("all", *s["stack"][:i]), [0, 0])
            pair[0] += s["self"]["a"] / whole
            pair[1] += s["self"]["b"] / whole
    both = {r[0]: r[1] / look["unit"] for r in nodes(data)}
    second = {r[0]: r[1] / look["unit"] for r in nodes({**data, "tree": {**data["tree"], "self": data["tree"]["second"]}})}
    check(both.keys() == want.keys(), f"other stacks: {list(both.keys() ^ want.keys())[:3]}")
    wrong = [(k, both[k], second[k], w) for k, w in want.items() if abs(both[k] - sum(w)) > 1e-6 or abs(second[k] - w[1]) > 1e-6]
    check(not wrong, f"other figures: {wrong[:3]}")
    of = {(f["name"], f["module"]): [[f[k][m] for m in ("a", "b", "band", "changed")] for k in ("self", "total")] for f in truth["functions"]}
    got = {(data["names"][n], look["modules"][m]): [own, total] for n, m, own, total in look["functions"]}
    check(got == of, "the table is another")


def tell_apart(look):
    """Less, more and noise are three colours for everybody, whatever their shade."""
    for step in range(len(look["more"])):
        least = colours.least_distance({"more": look["more"][step], "less": look["less"][step], "noise": look["same"]})
        check(least[0] >= 9, f"too much alike, at step {step}: {least}")
    least = colours.least_distance({"more": look["more"][3], "less": look["less"][3]})
    check(least[0] >= 40, f"the strongest are too much alike: {least}")


def pixel(b, x, y):
    rect = b.run("const r = document.getElementById('canvas').getBoundingClientRect(); return [r.x, r.y]")
    r, g, blue = b.run("""const c = document.getElementById("canvas"), k = devicePixelRatio;
        return [...c.getContext("2d").getImageData(arguments[0] * k, arguments[1] * k, 1, 1).data].slice(0, 3)""", x - rect[0], y - rect[1])
    return f"#{r:02x}{g:02x}{blue:02x}"


def drive(b, data, function, pictures):
    rows, look = nodes(data), data["look"]
    for row in rows:
        row += [None] * (5 - len(row)) + [rows[0][1]]
    row = max((r for r in rows if r[0][-1] == function), key=lambda r: r[1])
    time.sleep(0.1)
    check(colours_drawn(b) > 4, "hardly anything is drawn")
    b.picture(f"{pictures}/diff.png")
    check(text_of(b, "legend").startswith("less in B") and "more in B" in text_of(b, "legend"), f"legend: {text_of(b, 'legend')}")
    x, y = frame_at(b, row)
    check(pixel(b, x, y + ROW_EDGE) in look["more"], f"{function} is {pixel(b, x, y + ROW_EDGE)}, not red")
    b.click(x, y)
    said = text_of(b, "info")
    check(said.startswith(function + ": A ") and "noise ±" in said and ": +" in said, f"below the pointer: {said}")
    check(not b.run("return document.getElementById('reset').hidden"), "it did not zoom")
    b.keys(ESCAPE)
    check(b.run("return document.getElementById('reset').hidden"), "Escape does not set it back")
    b.keys("/^" + function + "$")
    check(text_of(b, "found").startswith("A ") and " B " in text_of(b, "found"), f"found: {text_of(b, 'found')}")
    b.keys(ESCAPE)
    b.run("document.querySelector('[data-view=callers]').click()")
    time.sleep(0.1)
    check(colours_drawn(b) > 4, "no callers")
    b.picture(f"{pictures}/diff-callers.png")
    table(b, data, function)
    b.picture(f"{pictures}/diff-table.png")
    b.run("document.querySelector('[data-view=flame]').click()")


ROW_EDGE = -7  # above the letters


def table(b, data, function):
    b.run("document.querySelector('[data-view=table]').click()")
    cells = b.run("return [...document.querySelectorAll('#rows tr')].map((r) => [...r.cells].map((c) => [c.textContent, c.className]))")
    names, look = data["names"], data["look"]
    check(len(cells) == min(1000, len(look["functions"])), f"{len(cells)} functions")
    check(cells[0][8][0].startswith(function + " (") and cells[0][2][1] == "more" and cells[0][2][0].startswith("▲ +"), f"first: {cells[0]}")
    by_name = {f"{names[f[0]]} ({look['modules'][f[1]]})": f for f in look["functions"]}
    for row in cells:
        own = by_name.get(row[8][0], [0, 0, None])[2]
        if own:
            check(abs(float(row[3][0].strip("±").split()[0]) - own[2] * (1 if look["seconds"] else 100)) < 0.006, f"noise of {row}")
            check((row[2][1] == "noise") == (not own[3]), f"{row} is said to have changed")
    ranks = [(row[2][1] != "noise", abs(float(row[2][0].split()[-2].strip("+−▲▼")))) for row in cells]
    check(ranks == sorted(ranks, reverse=True), "not sorted by change")
    b.run("document.querySelector('[data-by=b]').click()")
    totals = [float(t.split()[0]) for t in b.run("return [...document.querySelectorAll('#rows tr')].map((r) => r.cells[5].textContent)")]
    check(totals == sorted(totals, reverse=True), "not sorted by B")
    b.run("document.querySelector('[data-by=self]').click()")


def readable(b, what):
    """Text of changes against the page."""
    for name in ("--more", "--less", "--quiet", "--ink"):
        text, page = b.run("""const s = document.createElement('span'); document.body.append(s);
            const of = (n) => { s.style.color = `var(${n})`; return getComputedStyle(s).color; };
            const out = [of(arguments[0]), of('--page')]; s.remove(); return out;""", name)
        check(colours.contrast(text, page) >= 4.5, f"{what}: {name} has contrast {colours.contrast(text, page):.1f}")


def main():
    path, truth, function, pictures = sys.argv[1:]
    page = Page(open(path, encoding="utf-8").read())
    check(page.links == ["data:,"], f"it points elsewhere: {page.links}")
    data = json.loads(page.scripts["data"])
    compare(data, json.load(open(truth, encoding="utf-8")))
    tell_apart(data["look"])
    with webdriver.Browser(1400, 900) as b:
        b.open(path)
        drive(b, data, function, pictures)
        readable(b, "light")
        fits(b, "diff-light", pictures)
    with webdriver.Browser(500, 900, dark=True) as b:
        b.command("Emulation.setDeviceMetricsOverride", **PHONE)
        b.open(path)
        readable(b, "dark")
        fits(b, "diff-narrow-dark", pictures)
        b.run("document.querySelector('[data-view=table]').click()")
        b.picture(f"{pictures}/diff-table-narrow-dark.png")
        wide = b.run("return [document.scrollingElement.scrollWidth, document.documentElement.clientWidth]")
        check(wide[0] <= wide[1], f"the table scrolls the page sideways: {wide}")
        complaints = [e for e in b.console() if e[0] not in ("DEBUG", "INFO")]
        check(not complaints, f"console: {complaints}")


main()
