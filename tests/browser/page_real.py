#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every view of the page over a hearth's own answers: that they understand each other.

usage: page_real.py URL TOKEN FUNCTION PERCENT PICTURES    FUNCTION has PERCENT of what the store of the hearth at URL holds, which asks for TOKEN"""
import re
import sys
import time

import webdriver
from page_driver import Page, check, close

SHOWN = {"top": ".top tbody tr", "sandwich": ".sandwich canvas", "diff": ".diff canvas", "heat": ".heat canvas", "who": "#main tbody tr",
         "executables": ".executables tbody tr", "truth": ".gauge", "log": ".log li .level", "developer": "#main tbody tr"}


def main():
    url, token, function, percent, folder = sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4]), sys.argv[5]
    with webdriver.Browser(1400, 900) as b:
        p = Page(b, int(url.rsplit(":", 1)[1]))
        b.go(p.base)
        p.log_in(token)
        p.until("return Boolean(window.hearth)", "not let in")
        b.console()  # the 401 that brought the form
        p.graph("from=first&to=last")
        check(function in p.names(), f"{function} is not in the flame graph: {sorted(set(p.names()))[:50]}")
        b.keys("/^" + re.escape(function) + "$")
        p.until("return /%/.test(document.querySelector('.found').innerText)", "nothing is found")
        found = float(re.match(r"([\d.]+) %", p.text(".found"))[1])
        check(close(found, percent, 0.1), f"{function} has {found} %, not {percent}")
        p.quiet()
        b.picture(f"{folder}/real-flame.png")
        for view, css in SHOWN.items():
            p.go(f"view={view}&from=first&to=last&fn={function}")
            p.until("return document.querySelector(arguments[0]) !== null && Boolean(hearth.view.data || hearth.view.pane && hearth.view.pane.tree)", f"{view} shows nothing: {p.text('#main')[:200]}", css)
            time.sleep(0.2)
            p.quiet()
            b.picture(f"{folder}/real-{view}.png")
        for by in ("thread.name", "tid", "cpu"):
            p.go(f"from=first&to=last&by={by}")
            p.until("const t = hearth.view.pane && hearth.view.pane.tree; return Boolean(t) && t.functions.type[t.fn[1]] === 'label'", f"not grouped by {by}")
        p.go("view=developer")
        p.until("return /v1development/.test(document.querySelector('#main').innerText)", "the request that brought it is not there")
        p.quiet()


try:
    main()
except AssertionError as error:
    sys.exit(f"FAILED: {error}")
