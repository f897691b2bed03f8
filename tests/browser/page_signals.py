#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""From a trace, a log line and a spike to the code, and back, over a hearth that has what tests/system/signals.py makes.

usage: page_signals.py URL PICTURES"""
import sys
import time

import webdriver
from page_driver import ENTER, Page, check

SLOW = "00000000000000000000000000000005"
ALL = "from=first&to=last&live="


def traces(p, b, folder):
    p.open(f"view=trace&{ALL}")
    listed = p.rows("traces")
    check(len(listed) == 20 and all("420 ms" in r for r in listed[:4]) and "60 ms" in listed[4], f"not the slowest first: {listed[:5]}")
    p.quiet()
    b.picture(f"{folder}/signals-traces.png")
    p.go(f'view=trace&{ALL}&q={{trace_id="{SLOW}"}}')
    p.until("return document.querySelectorAll('.fall .fill').length === 3", "no waterfall of three spans")
    says = p.run("return [...document.querySelectorAll('.fall')].map((f) => f.title)")
    check("CPU time 400 ms" in says[0] and "in its child spans 40 ms" in says[0] and "exactly" in says[0], says)
    mail = next(s for s in says if "by time" in s)
    check("CPU time 20 ms" in mail and "Waiting 20 ms" in mail and "not explained" not in mail, says)
    check(p.run("return [...document.querySelectorAll('.toolbar a')].map((a) => a.href)") == [f"https://traces.example/trace/{SLOW}"], "no way to the other tool")
    p.quiet()
    b.picture(f"{folder}/signals-trace.png")
    p.row("GET /cart")
    got = p.flame("a span with links")
    check("render" in got["functions"] and "send" not in got["functions"] and got["total"] == 400e6, got)
    b.picture(f"{folder}/signals-span.png")


def back(p):
    """From a function to the traces that were slow in it."""
    p.graph(ALL)
    p.run("const t = hearth.view.pane.tree, i = [...t.fn].findIndex((f) => t.functions.name[f] === 'render'); hearth.view.pane.menu(i, 300, 300)")
    p.run("[...document.querySelectorAll('.menu button')].find((b) => b.innerText.startsWith('Slowest traces')).click()")
    p.until("return /focus=/.test(location.hash) && /view=trace/.test(location.hash)", "the menu leads nowhere")
    listed = p.rows("traces of a function")
    check(len(listed) == 20 and "400 ms" in listed[0], f"not the traces of render: {listed[:3]}")
    p.b.keys("j" + ENTER)
    p.until("return document.querySelectorAll('.fall .fill').length === 3", "Enter does not lead to a trace")


def by_time(p, b, folder):
    p.open(f'view=trace&{ALL}&q={{trace_id="{SLOW}"}}')
    p.rows("spans")
    p.row("POST /mail")
    got = p.flame("a span without links")
    check("send" in got["functions"] and "render" not in got["functions"] and got["total"] == 20e6, got)
    check("by time" in p.text("#said"), f"not said: {p.text('#said')}")
    check("thread.id" in p.run("return decodeURIComponent(location.hash)"), p.run("return location.hash"))
    b.picture(f"{folder}/signals-by-time.png")


def logs(p, b, folder):
    p.open(f"view=trace&tv=logs&{ALL}")
    listed = p.rows("logs")
    check(len(listed) == 4 and "slow request 19" in listed[0] and "error" in listed[0] and "shop" in listed[0], listed)
    b.picture(f"{folder}/signals-logs.png")
    p.go(f"view=trace&tv=logs&lt=request%204&{ALL}")
    p.until("return document.querySelectorAll('#main tbody tr').length === 1", "the text chooses nothing")
    p.row("slow request 4")
    got = p.flame("a log line")
    check(got["total"] == 400e6, got)  # of its trace
    p.go(f"view=trace&tv=logs&lt=request%204&{ALL}")
    p.rows("logs")
    p.run("[...document.querySelectorAll('#main tbody button')].find((b) => b.innerText === 'Process').click()")
    got = p.flame("a log line's process")
    check(got["total"] > 400e6 and "send" not in got["functions"], got)
    p.go(f"view=trace&tv=logs&lt=request%204&{ALL}")
    p.rows("logs")
    p.run("[...document.querySelectorAll('#main tbody button')].find((b) => b.innerText === 'Trace').click()")
    p.until("return document.querySelectorAll('.fall .fill').length === 3", "a log line does not lead to its trace")


def metrics(p, b, folder):
    p.open(f"view=trace&tv=exemplars&{ALL}")
    p.until("return document.querySelectorAll('.exemplars circle.linked').length === 20", f"no exemplars: {p.text('#main')[:200]}")
    at = p.run("""const rs = [...document.querySelectorAll('.exemplars circle')].map((c) => c.getBoundingClientRect()), top = Math.min(...rs.map((r) => r.top));
        const r = rs.filter((x) => x.top < top + 3).sort((a, b) => a.left - b.left)[2], box = document.querySelector('.exemplars').getBoundingClientRect();
        return [r.left + r.width / 2, r.top + r.height / 2, box.bottom - 60]""")
    b.drag(at[0] - 40, at[2], at[0] + 10, at[2])
    p.until("return document.querySelector('.exemplars .cut') !== null", "no range can be drawn")
    b.picture(f"{folder}/signals-metrics.png")
    p.run("[...document.querySelectorAll('.toolbar button')].find((x) => x.innerText === 'What changed').click()")
    p.until("return /view=diff/.test(location.hash) && Boolean(hearth.view.pane.tree)", "a spike does not lead to a difference")
    time.sleep(0.3)
    b.picture(f"{folder}/signals-diff.png")
    p.open(f"view=trace&tv=exemplars&{ALL}")
    p.until("return document.querySelectorAll('.exemplars circle.linked').length === 20", "no exemplars")
    b.click(at[0], at[1])
    p.until("return document.querySelectorAll('.fall .fill').length === 3", "a point does not lead to its trace")


def main():
    url, folder = sys.argv[1], sys.argv[2]
    with webdriver.Browser(1400, 800) as b:
        p = Page(b, int(url.rsplit(":", 1)[1]))
        traces(p, b, folder)
        back(p)
        by_time(p, b, folder)
        logs(p, b, folder)
        metrics(p, b, folder)
        p.quiet()


try:
    main()
except AssertionError as error:
    sys.exit(f"FAILED: {error}")
