#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A flame graph in a browser: drawn, zoomed, searched, set back, fitted to the window.

usage: flamegraph.py FILE.svg FUNCTION PICTURES    FUNCTION is in the picture; screenshots go into the folder PICTURES"""
import re
import sys
import xml.dom.minidom

import webdriver

ESCAPE = "\ue00c"
SEEN = """
const shown = [...document.getElementById("frames").children].filter((g) => g.style.display !== "none");
return shown.map((g) => { const r = g.querySelector("rect").getBoundingClientRect();
  return [g.dataset.name, r.x, r.y, r.width, g.className.baseVal, g.querySelector("text").textContent]; });"""


def check(condition, what):
    if not condition:
        sys.exit(f"FAILED: {what}")


def text_of(browser, name):
    return browser.run("return document.getElementById(arguments[0]).textContent", name)


def main():
    path, function, pictures = sys.argv[1:]
    drawn = [g for g in xml.dom.minidom.parse(path).getElementsByTagName("g") if g.getAttribute("data-name")]
    with webdriver.Browser(1400, 800) as b:
        b.open(path)
        every = b.run(SEEN)
        check(len(every) == len(drawn) > 10 and every[0][0] == "all", f"{len(every)} frames, {len(drawn)} in the file")
        room = b.run("return document.documentElement.clientWidth")
        check(abs(every[0][3] - (room - 20)) < 2, f"the whole is {every[0][3]} wide, the window {room}")
        check(b.run("return document.scrollingElement.scrollWidth <= document.scrollingElement.clientWidth"), "it scrolls sideways")
        inside = [f for f in every if f[1] < 9 or f[1] + f[3] > room - 9]
        check(not inside, f"outside of the picture: {inside[:3]}")
        b.picture(f"{pictures}/flamegraph.png")

        frame = max((f for f in every if f[0] == function), key=lambda f: f[3])
        b.click(frame[1] + frame[3] / 2, frame[2] + 8)
        check(function in text_of(b, "info") and "%" in text_of(b, "info"), f"below the pointer: {text_of(b, 'info')}")
        zoomed = b.run(SEEN)
        there = [f for f in zoomed if f[0] == function and f[2] == frame[2]]
        check(there and abs(there[0][3] - every[0][3]) < 1 and there[0][5] == function, f"{function} is not as wide as all: {there}")
        check(len(zoomed) < len(every) and all("around" in f[4] for f in zoomed if f[2] < frame[2]), "the zoom shows others")
        b.picture(f"{pictures}/zoomed.png")
        b.keys(ESCAPE)
        check(b.run(SEEN) == every, "Escape does not set it back")

        b.keys("/" + re.escape(function)[:40])
        hits = [f for f in b.run(SEEN) if "found" in f[4]]
        check(hits and all(re.search(re.escape(function)[:40], f[0], re.I) for f in hits), "the search marks others")
        percent = float(re.match(r"([\d.]+) %", text_of(b, "found"))[1])
        check(100 * frame[3] / every[0][3] - 0.1 <= percent <= 100.01, f"{percent} % found, {function} alone has more")
        b.picture(f"{pictures}/searched.png")
        b.keys(ESCAPE)
        check(not any("found" in f[4] for f in b.run(SEEN)), "marks stay")
        b.keys("/(")
        check(text_of(b, "found") == "no regular expression", f"( found {text_of(b, 'found')}")
    with webdriver.Browser(500, 800, dark=True) as b:
        b.open(path)
        room = b.run("return document.documentElement.clientWidth")
        check(abs(b.run(SEEN)[0][3] - (room - 20)) < 2, "not fitted to a narrow window")
        b.picture(f"{pictures}/narrow-dark.png")


main()
