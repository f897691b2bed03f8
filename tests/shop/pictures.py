#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pictures of the ways between signals and code over the shop: FOLDER/shop-*.png.

usage: pictures.py URL FOLDER"""
import json
import sys
import time
import urllib.request

import webdriver
from page_driver import Page

ALL = "from=first&to=last&live="


def main():
    url, folder = sys.argv[1], sys.argv[2]
    with urllib.request.urlopen(f"{url}/api/v1/traces?from=first&to=last&focus=discount&limit=1") as answer:
        slow = json.load(answer)["traces"][0]["trace_id"]
    with webdriver.Browser(1400, 900) as b:
        p = Page(b, int(url.rsplit(":", 1)[1]))
        p.open(f"view=trace&{ALL}")
        time.sleep(1)
        b.picture(f"{folder}/shop-traces.png")
        p.go(f'view=trace&{ALL}&q={{trace_id="{slow}"}}')
        p.until("return document.querySelectorAll('.fall .fill').length > 2", "no waterfall")
        b.picture(f"{folder}/shop-trace.png")
        p.row("GET /price")
        p.flame("a span")
        time.sleep(1)
        b.picture(f"{folder}/shop-span.png")
        p.go(f"view=trace&{ALL}&focus=discount")
        time.sleep(1)
        b.picture(f"{folder}/shop-back.png")
        p.go(f"view=trace&tv=logs&{ALL}")
        first = p.rows("logs")[0]
        b.picture(f"{folder}/shop-logs.png")
        p.row(first)
        p.flame("a log line")
        time.sleep(1)
        b.picture(f"{folder}/shop-log.png")
        p.go(f"view=trace&tv=exemplars&{ALL}")
        p.until("return document.querySelectorAll('.exemplars circle').length > 0", "no exemplars")
        at = p.run("""const rs = [...document.querySelectorAll('.exemplars circle')].map((c) => c.getBoundingClientRect()).sort((a, b) => a.top - b.top);
            const box = document.querySelector('.exemplars').getBoundingClientRect(); return [rs[0].left, box.bottom - 60]""")
        b.drag(at[0] - 60, at[1], at[0] + 15, at[1])
        time.sleep(0.5)
        b.picture(f"{folder}/shop-spike.png")
        p.run("const x = [...document.querySelectorAll('.toolbar button')].find((e) => e.innerText === 'What changed'); x && x.click()")
        time.sleep(2)
        b.picture(f"{folder}/shop-diff.png")


main()
