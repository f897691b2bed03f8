#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The page of a recording: that it is whole and holds what the folded stacks say; then in a browser: drawn, zoomed, searched,
inverted, as a table, copied, light and dark, narrow and wide, and nothing asked from elsewhere.

usage: flamegraph_page.py FILE.html FOLDED FUNCTION PICTURES    screenshots go into the folder PICTURES"""
import html.parser
import json
import re
import sys
import time

import webdriver

ESCAPE, ROW = "\ue00c", 18


def check(condition, what):
    if not condition:
        sys.exit(f"FAILED: {what}")


class Page(html.parser.HTMLParser):
    """Checks that what is opened is closed, and keeps the scripts."""

    def __init__(self, text):
        super().__init__()
        self.open, self.scripts, self.links = [], {}, []
        self.feed(text)
        check(not self.open, f"never closed: {self.open}")

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.links += [v for k, v in attrs.items() if k in ("href", "src", "srcset", "data", "action")]
        if tag not in ("meta", "link", "input", "br"):
            self.open.append(tag)
        self.script = attrs.get("id", "code") if tag == "script" else None

    def handle_endtag(self, tag):
        check(self.open and self.open.pop() == tag, f"</{tag}> at {self.getpos()}")
        self.script = None

    def handle_data(self, data):
        if getattr(self, "script", None):
            self.scripts[self.script] = self.scripts.get(self.script, "") + data


def nodes(data):
    """(path, total, x of 1, depth), in the page's own order."""
    tree, path, rows = data["tree"], [], []
    for name, depth, own in zip(tree["name"], tree["depth"], tree["self"]):
        path[depth:] = [data["names"][name]]
        rows.append([tuple(path), own, 0.0, depth])
    for i in range(len(rows) - 1, 0, -1):
        parent = next(k for k in range(i - 1, -1, -1) if rows[k][3] == rows[i][3] - 1)
        rows[parent][1] += rows[i][1]
        rows[i].append(parent)
    begin = {}
    for i, row in enumerate(rows[1:], 1):
        parent = row[4]
        row[2] = begin.get(parent, rows[parent][2])
        begin[parent] = row[2] + row[1] / rows[0][1]
    return rows


def compare(rows, folded):
    want = {}
    for line in open(folded, encoding="utf-8"):
        stack, count = line.rstrip("\n").rsplit(" ", 1)
        names = tuple(("all;" + stack).split(";"))
        for i in range(len(names)):
            want[names[: i + 1]] = want.get(names[: i + 1], 0) + int(count)
    got = {tuple(n.replace(";", ":") for n in r[0]): r[1] for r in rows}
    check(got == want, f"not the tree of the stacks: {[(k, v, want.get(k)) for k, v in got.items() if want.get(k) != v][:3]}")


def text_of(b, name):
    return b.run("return document.getElementById(arguments[0]).textContent", name)


def colours(b):
    """How many different colours the canvas shows."""
    return b.run("""const c = document.getElementById("canvas"), p = c.getContext("2d").getImageData(0, 0, c.width, c.height).data,
        seen = new Set(); for (let i = 0; i < p.length; i += 4) if (p[i + 3]) seen.add(p[i] << 16 | p[i + 1] << 8 | p[i + 2]);
        return seen.size""")


def frame_at(b, row, zoomed=None):
    """The middle of a node on the screen."""
    rect = b.run("const r = document.getElementById('canvas').getBoundingClientRect(); return [r.x, r.y, r.width]")
    x, w = row[2], row[1]
    total = zoomed[1] if zoomed else row[5]
    left = (x - (zoomed[2] if zoomed else 0)) * row[5] / total
    return rect[0] + (left + w / total / 2) * rect[2], rect[1] + row[3] * ROW + ROW / 2


def drive(b, rows, function, pictures):
    whole = rows[0][1]
    for row in rows:
        row += [None] * (5 - len(row)) + [whole]
    row = max((r for r in rows if r[0][-1] == function), key=lambda r: r[1])
    time.sleep(0.1)
    check(colours(b) > 5, "hardly anything is drawn")
    b.picture(f"{pictures}/page.png")
    b.click(*frame_at(b, row))
    check(text_of(b, "info").startswith(function + ":"), f"below the pointer: {text_of(b, 'info')}")
    check(f"{100 * row[1] / whole:.2f} %" in text_of(b, "info"), f"{text_of(b, 'info')}: not {row[1]} of {whole}")
    check(not b.run("return document.getElementById('reset').hidden"), "it did not zoom")
    time.sleep(0.1)
    b.picture(f"{pictures}/page-zoomed.png")
    b.click(*[frame_at(b, row)[0], frame_at(b, rows[0])[1]])
    check(b.run("return document.getElementById('reset').hidden"), "a click on the root does not zoom out")
    b.click(*frame_at(b, row))
    b.keys(ESCAPE)
    check(b.run("return document.getElementById('reset').hidden"), "Escape does not set it back")

    b.keys("/" + re.escape(function))
    found = text_of(b, "found")
    hits = [r for r in rows if re.search(re.escape(function), r[0][-1], re.I) and r[3]]
    tops = [r for r in hits if not any(re.search(re.escape(function), n, re.I) for n in r[0][1:-1])]
    check(found == f"{100 * sum(r[1] for r in tops) / whole:.2f} % in {len(hits)} frames", f"found {found}, wanted {len(hits)}")
    time.sleep(0.1)
    b.picture(f"{pictures}/page-searched.png")
    b.keys(ESCAPE + "/(")
    check(text_of(b, "found") == "no regular expression", f"( found {text_of(b, 'found')}")
    b.keys(ESCAPE)

    b.run("document.querySelector('[data-view=callers]').click()")
    time.sleep(0.1)
    check(colours(b) > 3, "no callers")
    b.picture(f"{pictures}/page-callers.png")
    b.run("document.querySelector('[data-view=table]').click()")
    own = {}
    for r in rows:
        if r[3] > 1:
            own[r[0][-1]] = own.get(r[0][-1], 0) + r[1] - sum(k[1] for k in rows if k[3] == r[3] + 1 and k[0][:-1] == r[0])
    table = b.run("return [...document.querySelectorAll('#rows tr')].map((r) => [...r.cells].map((c) => c.textContent))")
    check(all(own[t[4]] == int(t[1].replace(",", "")) for t in table if t[4] in own), "the table has other figures")
    check([int(t[1].replace(",", "")) for t in table] == sorted((int(t[1].replace(",", "")) for t in table), reverse=True), "unsorted")
    b.picture(f"{pictures}/page-table.png")
    b.run("[...document.querySelectorAll('#rows td:last-child')].find((c) => c.textContent === arguments[0]).click()", function)
    check(text_of(b, "found").endswith("frames"), "a click in the table finds nothing")
    b.keys(ESCAPE + ESCAPE)


def fits(b, what, pictures):
    time.sleep(0.1)
    b.picture(f"{pictures}/page-{what}.png")
    wide = b.run("return [document.scrollingElement.scrollWidth, document.documentElement.clientWidth, "
                 "document.getElementById('canvas').clientWidth, document.getElementById('canvas').clientHeight]")
    check(wide[0] <= wide[1], f"{what}: it scrolls sideways: {wide}")
    check(abs(wide[2] - wide[1]) < 20 and wide[3] > 100, f"{what}: not fitted: {wide}")
    asked = b.run("return performance.getEntriesByType('resource').map((e) => e.name)")
    check(not asked, f"{what}: it asked for {asked}")


def main():
    path, folded, function, pictures = sys.argv[1:]
    page = Page(open(path, encoding="utf-8").read())
    check(page.links == ["data:,"], f"it points elsewhere: {page.links}")
    rows = nodes(json.loads(page.scripts["data"]))
    compare(rows, folded)
    with webdriver.Browser(1400, 900) as b:
        b.open(path)
        drive(b, rows, function, pictures)
        fits(b, "light", pictures)
        paint = b.run("return performance.getEntriesByType('paint')[0].startTime")
        print(f"{len(rows)} nodes, first paint after {paint:.0f} ms")
    with webdriver.Browser(500, 900, dark=True) as b:
        b.command("Emulation.setDeviceMetricsOverride", width=390, height=844, deviceScaleFactor=3, mobile=True)
        b.open(path)
        check(b.run("return getComputedStyle(document.body).backgroundColor") == "rgb(22, 24, 28)", "not dark")
        fits(b, "narrow-dark", pictures)
    with webdriver.Browser(3840, 2160) as b:
        b.open(path)
        fits(b, "4k", pictures)


if __name__ == "__main__":
    main()
