#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The page in a browser, every interaction, over samples of which every number is known (mock_api.py's made_up()).

usage: page.py URL PICTURES [TEST...]    URL: a hearth, whose page this is; screenshots go into the folder PICTURES
                                         tests by name; "graph": those of the flame graph, "others": all but those;
                                         dark and narrow-dark, of which pictures are made, only when named

A message of the console that is no mere information fails the test, and what breaks the page's policy is one."""
import re
import sys
import threading
import time

import colours
import mock_api
import webdriver
from page_driver import BACKSPACE, DOWN, ENTER, ESCAPE, LEFT, PANE, RIGHT, ROW, SHIFT, UP, Page, check, close

# --- flame graph ---

def test_zoom(p):
    p.graph()
    check(p.text(".crumbs").startswith("all"), "the path does not begin with all")
    p.box(0.3, 1)
    check(p.text(".dock b") == "main" and "60.0 %" in p.text(".dock"), f"clicked main, got {p.text('.dock')}")
    check(p.text(".crumb[aria-current]") == "main" and "z" in p.hash(), "not zoomed to main")
    p.box(0.97, 2)
    check(p.text(".crumb[aria-current]") == "fib", f"zoomed main is not as wide as the canvas: {p.text('.crumbs')}")
    p.b.keys(BACKSPACE)
    p.until("return document.querySelector('.crumb[aria-current]').innerText === 'main'", "Backspace does not go one step out")
    p.run("history.back()")
    p.until("return document.querySelector('.crumb[aria-current]').innerText === 'fib'", "the browser's back does not zoom back")
    p.b.keys(ESCAPE)
    p.until("return document.querySelector('.crumb[aria-current]').innerText === 'all'", "Escape does not zoom out")
    time.sleep(0.3)
    p.b.keys("+")
    p.until("return /w=/.test(location.hash)", "+ does not go nearer")
    mark = p.rect(".minimap-window")
    check(close(mark[2] / p.rect(".minimap-frame")[2], 1 / 1.5, 0.03), f"the minimap shows another window: {mark}")
    p.drag("canvas.flame", 0.3, 0.6, 0.02, 0.02)
    time.sleep(0.4)
    check(p.rect(".minimap-window")[0] < mark[0] - 5, "dragging does not move the window")


def test_keys(p):
    p.graph()
    p.run("document.querySelector('canvas.flame').focus()")
    p.b.keys(DOWN + DOWN + DOWN)
    check(p.text(".dock b") == "serve_forever", f"three down is {p.text('.dock b')}")
    p.b.keys(RIGHT)
    check(p.text(".dock b") == "fib", f"right of it is {p.text('.dock b')}")
    p.b.keys(LEFT + UP + ENTER)
    p.until("return document.querySelector('.crumb[aria-current]').innerText === 'main'", "Enter does not zoom")
    p.b.keys("?")
    check("from box to box" in p.text("dialog"), "? shows no keys")
    p.b.keys(ESCAPE)
    check(not p.run("return document.querySelector('dialog').open"), "Escape does not close the keys")
    for key, view in zip("2345678901", ("top", "sandwich", "diff", "heat", "who", "executables", "truth", "log", "developer", None)):
        p.b.keys(key)
        if view:
            p.state("view", view)
    check("view" not in p.hash(), "1 is not the flame graph")


def test_search(p):
    p.graph()
    p.b.keys("/fib")
    p.until("return /3/.test(document.querySelector('.found').innerText)", "fib is not found three times")
    part = float(p.text(".found").split(" %")[0])  # the window's ends cut steps of the made up hour
    check(close(part, 5, 0.05), f"fib within fib is counted twice: {p.text('.found')}")
    p.b.keys(ENTER)
    check("1 of 3" in p.text(".found"), f"Enter: {p.text('.found')}")
    p.b.keys(ENTER + ENTER + ENTER)
    check("1 of 3" in p.text(".found"), "the matches do not go round")
    p.b.keys(ESCAPE + "memcpy, blk_")
    p.until("return /20\\.0 %/.test(document.querySelector('.found').innerText)", f"two terms: {p.text('.found')}")
    p.box(0.3, 1)
    p.until("return /of this/.test(document.querySelector('.found').innerText)", "no share of what is zoomed into")
    check("25.0 % of this" in p.text(".found"), f"15 of 60 below main: {p.text('.found')}")
    p.run("document.querySelector('.search input').focus()")
    p.b.keys(ESCAPE + "(")
    p.until("return /no regular/.test(document.querySelector('.found').innerText)", "( is no regular expression")
    p.b.keys(ESCAPE + "FIB")
    p.until("return /5.00/.test(document.querySelector('.found').innerText)", "case matters from the start")
    p.button("Aa")
    p.until("return /no match/.test(document.querySelector('.found').innerText)", "Aa changes nothing")


def test_steps(p):
    p.graph()
    for key, row, part, name, expect in (
            ("f", 3, 0.1, "focus", lambda: close(p.share("parse<std::vector<std::string> >"), 100)),
            ("F", 2, 0.57, "subtree", lambda: close(p.share("fib"), 100) and "parse" not in str(p.names())),
            ("m", 2, 0.1, "merge", lambda: "serve_forever" not in p.names() and close(p.share("parse<std::vector<std::string> >"), 30)),
            ("d", 2, 0.1, "drop", lambda: "serve_forever" not in p.names() and close(p.share("main"), 100 * 1 / 9)),
            ("c", 3, 0.1, "collapse", lambda: "next_token" not in p.names() and close(p.share("parse<std::vector<std::string> >"), 30)),
            ("C", 2, 0.1, "library", lambda: "[shop]" in p.names() and "serve_forever" not in p.names()),
            ("M", 2, 0.1, "hidelib", lambda: "main" not in p.names() and close(p.share("vfs_read"), 15)),
            ("r", 2, 0.57, "recursion", lambda: p.names().count("fib") == 1 and close(p.share("fib"), 5))):
        p.go("")
        p.box(part, row)
        p.b.keys(ESCAPE)
        p.b.keys(key)
        p.until("return /x=/.test(location.hash) && document.querySelector('.step') !== null", f"{key}: no step")
        check(name in p.run("return location.hash") and expect(), f"{key} ({name}): {p.run('return location.hash')} {p.names()}")
    p.b.keys("u")
    p.until("return !/x=/.test(location.hash)", "u takes nothing back")
    check(p.names().count("fib") == 3, "the tree is not as before")
    p.choose("Hide what is not of interest", "libc")
    p.until("return /preset/.test(location.hash)", "no preset")
    check("memcpy" not in p.names(), "libc is not hidden")
    p.click(".step button")
    p.until("return !/x=/.test(location.hash)", "a step's × takes nothing back")


def test_menu(p):
    p.graph()
    p.box(0.65, 1, button=2)
    check("main.main" in p.text(".menu-title"), f"the menu is of {p.text('.menu')}")
    p.button("Focus on function\nf", ".menu")
    p.until("return /x=focus%3Amain.main/.test(location.hash)", "the menu does not focus")
    check(close(p.share("vfs_read"), 100 / 6), "not all of it is search's")
    p.b.keys(".")
    check(p.run("return document.activeElement.role === 'menuitem'"), "the menu has no focus")
    p.b.keys(DOWN + DOWN + ESCAPE)
    check(not p.run("return document.querySelector('.menu')"), "Escape does not close the menu")


def test_durations(p):
    p.open()
    told = p.run("return import('/page/format.js').then((f) => [2639.8, -130, 7200, 172799, 200000].map(f.seconds).join())")
    check(told == "44 min 0 s,-2 min 10 s,2 h 0 min,48 h 0 min,2 d 8 h", f"durations: {told}")


def test_shapes(p):
    p.graph()
    p.b.keys("v")
    p.state("inv", "1")
    check(close(p.share("memcpy"), 10) and close(p.share("hash_v1") + p.share("hash_v2"), 15), "inverted, functions do not have their self weight")
    check(p.run(PANE + "const i = t.children(0).find((c) => t.name(c) === 'memcpy'); return t.children(i).map((c) => t.name(c)).sort().join()")
          == "github.com/acme/index.(*Tree).Find,parse<std::vector<std::string> >", "memcpy's callers are not below it")
    p.b.keys("vi")
    p.state("dir", "flame")
    x, y, w, h = p.rect("canvas.flame")
    p.b.click(x + 0.3 * w, y + h - ROW / 2)
    check(p.text(".dock b") == "all", f"the root is not at the bottom: {p.text('.dock')}")
    p.b.keys("i")
    p.choose("Group by", "comm")
    p.until("const p = hearth.view.pane; return p.names !== 0 && p.tree.name(1) === 'shop'", "not grouped by process")
    check("by=comm" in p.text("#foot") and close(p.share("shop"), 60), "shop is not 60 %")
    p.choose("Group by", "")
    p.b.keys("l")
    p.state("inline", "0")
    p.until("const p = hearth.view.pane; return !p.tree.functions.name.includes('next_token')", "inlined calls stay")
    check(close(p.share("parse<std::vector<std::string> >"), 30), "what was inlined is not its caller's")
    before = p.run("return document.querySelector('canvas.flame').toDataURL()")
    p.choose("Colour of boxes", "module")
    p.state("color", "module")
    check(p.run("return document.querySelector('canvas.flame').toDataURL()") != before, "no other colours by module")
    p.choose("Colour of boxes", "package")
    p.state("color", "package")


def test_tooltip(p):
    p.graph()
    p.box(0.1, 4, move=True)
    tip = p.text(".tooltip:not([hidden])")
    for part in ("next_token", "15.0 %", "shop", "parse.h", "ab12", "inlined call", "cores", "self", "total"):
        check(part in tip, f"the tooltip does not say {part}: {tip}")
    table = p.run("return document.querySelector('.pane table').innerText")
    check("serve_forever" in table and "55.0" in table, f"the table for screen readers lacks serve_forever: {table[:200]}")
    p.b.move(5, 5)
    check(not p.text(".tooltip:not([hidden])"), "the tooltip stays")


def test_live_keeps(p):
    """A new answer keeps zoom, selection and search."""
    p.graph("s=fib")
    p.box(0.3, 1)
    p.b.keys(DOWN)
    tree = p.run("window.before = hearth.view.pane.tree; return 1")
    p.until("return hearth.view.pane.tree !== window.before", "following, nothing new comes")
    check(tree and p.text(".crumb[aria-current]") == "main" and p.text(".dock b") == "serve_forever" and "5.0" in p.text(".found"), "a new answer loses the view")


# --- time ---

def test_timeline(p):
    p.graph()
    check("cores on average" in p.text("#timeline"), "no cores")
    p.drag(".timeline-frame canvas", 0.25, 0.5)
    p.until("return /sel=/.test(location.hash)", "dragging selects nothing")
    a, b = (float(x) for x in p.hash()["sel"].split("-"))
    check(close(b - a, 900, 40), f"a quarter of an hour is {b - a} s")
    p.until("const t = hearth.view.pane.tree; return t.total[0] > 16000 && t.total[0] < 20000", "the graph is not of the selection")
    check(not p.run("return document.querySelector('.pick').hidden"), "the selection is not shown")
    p.button("Zoom", "#timeline")
    p.until("return /from=17/.test(location.hash) && hearth.timeline.data.to - hearth.timeline.data.from < 1000", "Zoom does not make it the range")
    check(p.text(".live") == "Frozen", "a fixed range follows")
    p.b.keys("z")
    p.until("return document.querySelector('.live').innerText === 'Following'", "z does not follow again")
    p.b.keys("T" + LEFT)
    p.b.keys(LEFT + LEFT + LEFT, holding=SHIFT)
    p.b.keys(ENTER)
    p.until("return /sel=/.test(location.hash)", "keys select nothing")
    p.b.keys(ESCAPE)
    p.until("return !/sel=/.test(location.hash)", "Escape does not clear the selection")
    for text, value in (("15 m", "now-15m"), ("24 h", "now-24h"), ("All", "first")):
        p.button(text, "#range")
        p.state("from", value)
    p.choose("Timeline by", "comm")
    p.until("return /shop/.test(document.querySelector('.timeline-tools .keys').innerText)", "no series by process")


def test_kinds(p):
    p.graph()
    p.until("return hearth.timeline.lanes.size === 1", "no lane for off-CPU")
    x, y, w, h = p.rect(".timeline-frame canvas")
    p.b.click(x + w / 2, y + h - 24)
    p.state("kind", "off_cpu")
    p.until("return hearth.view.pane.tree.functions.name.includes('futex_wait')", "not the other kind's stacks")
    check("threads" in p.text("#timeline"), "off-CPU is counted in cores")
    p.choose("Kind of samples", "")
    p.until("return !/kind=/.test(location.hash)", "the kind cannot be chosen")


def test_freeze_and_share(p):
    p.graph("s=vfs&x=focus:main")
    p.b.keys("z")
    p.until("return document.querySelector('.live').innerText === 'Frozen' && /from=17/.test(location.hash)", "z does not freeze")
    p.until("return hearth.view.pane.tree && hearth.view.pane.restored !== undefined", "no graph")
    p.box(0.3, 1)
    time.sleep(0.6)
    p.run("navigator.clipboard.writeText = (t) => { window.copied = t; return Promise.resolve(); }")
    p.b.keys("L")
    link = p.until("return window.copied", "nothing was copied")
    seen = "return [document.querySelector('canvas.flame').toDataURL(), document.querySelector('.crumbs').innerText, document.querySelector('.found').innerText, hearth.view.pane.tree.total[0]]"
    p.b.move(5, 5)
    before = p.run(seen)
    p.b.go("about:blank")
    p.b.go(link)
    p.until("const v = window.hearth && hearth.view.pane; return Boolean(v && v.tree && v.chart.drawn && hearth.timeline.data)", "the link opens no graph")
    time.sleep(0.6)
    after = p.run(seen)
    check(before[1:] == after[1:], f"the link shows {after[1:]}, it was {before[1:]}")
    check(before[0] == after[0], "the link's picture is another")


def test_heat(p):
    p.open("view=heat")
    p.until("return Boolean(hearth.view.data)", "no heat map")
    check("a cell" in p.text("#main"), "no size of cells")
    p.drag(".heat-frame canvas", 0.3, 0.5, 0.8, 0.2)
    p.until("return /hs=/.test(location.hash) && Boolean(hearth.view.pane.tree)", "dragging makes no flame graph")
    a, b = (float(x) for x in p.hash()["hs"].split("-"))
    check(500 < b - a < 900, f"a fifth of an hour is {b - a} s")
    check(close(p.run(PANE + "return t.total[0]") / 20, b - a, 9), "the graph is not of the chosen time")
    p.button("Use in all views")
    p.until("return /sel=/.test(location.hash) && !/view=/.test(location.hash)", "it is not used in all views")
    p.open("view=heat")
    p.until("return Boolean(hearth.view.data)", "no heat map")
    p.run("document.querySelector('.heat-frame canvas').focus()")
    p.b.keys(RIGHT + UP + ENTER)
    p.until("return /hs=/.test(location.hash)", "keys choose no cell")


# --- other views ---

def test_top(p):
    p.open("view=top")
    row = "return [...document.querySelectorAll('.top tbody tr')].map((r) => [...r.cells].map((c) => c.innerText.trim()))"
    rows = p.until(row, "no rows")
    check(rows[0][3].startswith("github.com/acme/index.(*Tree).Find") and rows[0][0] == "20.0 %" and rows[0][1] == "25.0 %", f"first is {rows[0]}")
    check(p.run("return document.querySelectorAll('.top .strip path[d*=M]').length") == sum(r[0] != "0 %" for r in rows), "rows without a strip")
    p.button("Total", ".top")
    p.state("sort", "total")
    p.until("return document.querySelector('.top tbody tr').cells[3].innerText.startsWith('main')", "not sorted by total")
    p.b.keys("/hash")
    p.until("return document.querySelectorAll('.top tbody tr').length === 2", "the search filters nothing")
    check("15.0 %" in p.text(".found"), f"both hashes: {p.text('.found')}")
    p.b.keys(ESCAPE)
    p.run("document.activeElement.blur()")
    p.b.keys("jj" + ENTER)
    p.state("view", "sandwich")
    check(p.hash()["fn"].startswith("hash_v"), "the chosen row is not shown")


def test_sandwich(p):
    p.open("view=sandwich&fn=vfs_read")
    p.until("return Boolean(hearth.view.data && hearth.view.charts[1].tree)", "no sandwich")
    callers, callees = p.run("return hearth.view.charts.map((c) => Array.from(c.tree.fn, (f) => c.tree.functions.name[f]))")
    check(set(callers) == {"vfs_read", "serve_forever", "main", "main.main"} and set(callees) == {"vfs_read", "blk_mq_submit"}, f"{callers} {callees}")
    check("15.0 %" in p.text(".sandwich-facts"), p.text(".sandwich-facts"))
    x, y, w, h = p.run("const r = document.querySelectorAll('canvas.flame')[1].getBoundingClientRect(); return [r.left, r.top, r.width, r.height]")
    p.b.click(x + 0.3 * w, y + 1.5 * ROW)
    p.b.keys("s")
    p.state("fn", "blk_mq_submit")
    p.graph()
    p.box(0.3, 1)
    p.b.keys("s")
    p.state("view", "sandwich")
    p.open("view=sandwich")
    p.state("fn", "github.com/acme/index.(*Tree).Find")


def test_diff(p):
    p.open("view=diff&from=first&to=last")
    p.until("const v = hearth.view.pane; return Boolean(v.tree && v.chart.drawn)", "no difference")
    check(close(p.run(PANE + "return t.total[0] / t.total2[0]"), 1, 0.02), "the halves are not alike")
    color = "const p = hearth.view.pane, t = p.tree, i = t.functions.name.indexOf(arguments[0]), n = t.fn.indexOf(i), s = p.chart.placeOf(n); const r = devicePixelRatio; return [...document.querySelector('canvas.flame').getContext('2d').getImageData((s.x + s.w - 6) * r, (s.y + 2) * r, 1, 1).data]"
    less, more, same = (p.run(color, n) for n in ("hash_v1", "hash_v2", "memcpy"))
    check(less[2] > less[0] + 60 and more[0] > more[2] + 60 and abs(same[0] - same[2]) < 20, f"colours: less {less} more {more} same {same}")
    p.choose("Show as", "top")
    rows = p.until("return [...document.querySelectorAll('.diff .grid tbody tr')].map((r) => [...r.cells].map((c) => c.innerText.trim()))", "no table")
    check({rows[0][3], rows[1][3]} == {"hash_v1", "hash_v2"} and rows[0][0].lstrip("+-") == "15.00", f"{rows[:2]}")
    sign = "return [...document.querySelectorAll('.diff .grid tbody tr')].some((r) => r.cells[3].innerText === 'hash_v2' && r.cells[0].innerText === arguments[0])"
    check(p.run(sign, "+15.00"), "hash_v2 is not 15 points more")
    p.b.keys("x")
    p.until(sign, "x does not swap", "-15.00")
    p.open('view=diff&from=first&to=last&from1=first&to1=last&from2=first&to2=last&q1={version="1"}&q2={version="2"}')
    p.until("const v = hearth.view.pane; return Boolean(v.tree && v.chart.drawn)", "no difference by label")
    check(p.run(PANE + "return [t.total[t.fn.indexOf(t.functions.name.indexOf('hash_v2'))], t.total2[t.fn.indexOf(t.functions.name.indexOf('hash_v1'))]].join()") == "0,0", "labels do not tell A from B")
    p.choose("Width of boxes", "absolute")
    p.state("dm", "absolute")


def test_who(p):
    p.open("view=who")
    p.until("return document.querySelectorAll('#main tbody tr').length === 3", "not three processes")
    check("60.0 %" in p.text("#main tbody tr"), "shop is not first")
    p.button("Only", "#main")
    p.state("q", '{comm="shop"}')
    p.until("const p = hearth.view.pane; return p && p.tree && p.tree.functions.name.indexOf('main.main') < 0", "others are there still")
    check('comm="shop"' in p.text(".chips"), "no chip")
    p.click(".chip button")
    p.until("return !/q=/.test(location.hash)", "the chip's × does nothing")
    p.open("view=who&lb=thread.name")
    p.until("return /shop-work/.test(document.querySelector('#main').innerText)", "no threads")
    p.run("""[...document.querySelectorAll('#main tbody tr')].find((r) => /shop-io/.test(r.innerText)).querySelectorAll('button')[1].click()""")
    p.state("q", '{thread.name!="shop-io"}')
    p.open("view=who&lb=version")
    p.until("return /2/.test(document.querySelector('#main tbody').innerText)", "no values of another label")


def test_query(p):
    p.graph()
    p.b.keys("qservice")
    p.until("return /service.name/.test(document.querySelector('.offers').innerText)", "no label is offered")
    p.b.keys(DOWN + ENTER)
    p.until("return /search/.test(document.querySelector('.offers').innerText)", "no value is offered")
    p.b.keys("se")
    p.until("return document.querySelectorAll('.offers li').length === 1", "values are not completed")
    p.b.keys(DOWN + ENTER + ENTER)
    p.state("q", '{service.name="search"}')
    p.until("return hearth.view.pane.tree.name(1) === 'main.main'", "the graph is not of search alone")
    p.b.keys(ESCAPE + "q" + BACKSPACE + "nonsense=")
    p.b.keys(ENTER)
    check(p.run("return document.querySelector('#selector').classList.contains('wrong')"), "nonsense is taken")
    p.open('q={container="none"}')
    p.until("return /No samples of this selection/.test(document.querySelector('#main').innerText)", "nothing selected, nothing said")
    p.button("All series")
    p.until("return Boolean(hearth.view.pane.tree)", "All series does not help")
    p.b.go("about:blank")
    p.b.go(p.base + "#from=never")
    p.until("return /is no time/.test(document.querySelector('#main').innerText)", "the server's complaint is not shown")
    p.b.console()  # Chromium tells of the 400 there


def test_executables(p):
    p.open("view=executables")
    p.until("return /plugin.so/.test(document.querySelector('#main').innerText)", "no executables")
    check("install its debug package" in p.text("#main"), "no advice")
    drop = """const d = new DataTransfer(); d.items.add(new File([arguments[0]], "plugin.debug"));
        document.querySelector('.drop').dispatchEvent(new DragEvent('drop', { dataTransfer: d, bubbles: true }))"""
    p.run(drop, "no such thing")
    p.until("return /not taken: this is no ELF file/.test(document.querySelector('.drop').innerText)", "a refusal is not told")
    p.b.console()  # the 400
    p.run(drop, "\x7fELF")
    p.until("return /taken for build id 9999: 3 functions, of which 2 /.test(document.querySelector('.drop').innerText)", "the file is not sent")


def test_truth(p):
    p.graph()
    p.until("return /complete/.test(document.querySelector('#foot').innerText)", "no truth at the foot")
    p.click("#foot .pill")
    p.state("view", "truth")
    p.until("return /no rule/.test(document.querySelector('#main').innerText)", "no reasons")
    text = p.text("#main")
    check(re.search(r"99\.9\d %", text) and "97.5 %" in text and "of one CPU" in text and "ring full" in text, text)


def test_hearth(p):
    p.open("view=log")
    p.until("return document.querySelectorAll('.log li').length === 3", "not three messages")
    p.choose("Least level", "error")
    p.until("return document.querySelectorAll('.log li').length === 1", "levels do not filter")
    check("Permission denied" in p.text(".log"), "the error is not there")
    p.open("view=developer")
    p.until("return /hearth_samples_total/.test(document.querySelector('#main').innerText)", "no counters")
    check("bytes a sample" in p.text("#main") and "/api/v1/status" in p.text("#main"), "no store, no requests")
    p.b.keys("/lost")
    p.until("return !/hearth_samples_total/.test(document.querySelector('#main').innerText)", "counters cannot be searched")


def test_download(p):
    p.graph("q={comm=\"shop\"}")
    p.run("window.clicked = []; HTMLAnchorElement.prototype.click = function () { clicked.push(this.getAttribute('href')); }")
    p.b.keys("D")
    texts = p.run("return [...document.querySelectorAll('.menu button')].map((b) => b.innerText)")
    check({"OTLP", "pprof", "Folded stacks", "Flame graph as SVG"} <= set(texts), f"{texts}")
    p.button("pprof", ".menu")
    check(p.run("return clicked[0]").startswith("/api/v1/export?") and "format=pprof" in p.run("return clicked[0]") and "comm" in p.run("return clicked[0]"), "the selection is not in it")


def test_hostile_names(p):
    """Names that are markup stay text, and the policy would stop them anyway."""
    p.graph()
    for view in ("flame&by=comm", "top", "who", "executables", "log", "sandwich&fn=" + "%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E", "diff&from=first&to=last"):
        p.go("view=" + view)
        p.until("return Boolean(hearth.view.data || hearth.view.pane && hearth.view.pane.tree)", f"{view} shows nothing")
        check(p.run("return document.querySelectorAll('#main img, #main script, #main i:not([class]):not([style]), #foot b, .log i').length") == 0, f"{view}: a name became markup")
    p.quiet()
    p.run("const s = document.createElement('script'); s.textContent = 'window.broken = 1'; document.body.append(s); const i = document.createElement('img'); i.src = 'http://127.0.0.2:9/x.png'; document.body.append(i)")
    time.sleep(0.3)
    check(not p.run("return window.broken"), "an inline script runs")
    said = " ".join(text for _, text in p.b.console())
    check("script-src" in said and "img-src" in said, f"the policy stops nothing: {said}")


def test_colors(p):
    """Types of frames can be told apart by people who lack one kind of cone, and in grey."""
    p.graph()
    themes = p.b.async_run("""const done = arguments[arguments.length - 1];
        import("/page/colors.js").then(({ swatch, diffColor }) => {
          const probe = document.createElement("span"), out = [];
          document.body.append(probe);
          const rgb = (css) => { probe.style.color = css; return getComputedStyle(probe).color; };
          for (const dark of [false, true]) {
            out.push(Object.fromEntries(["native", "kernel", "go", "script", "jit", "unnamed"].map((k) => [k, rgb(swatch(k, dark))])));
            out.push({ less: rgb(diffColor(-1, dark)), more: rgb(diffColor(1, dark)) });
          }
          probe.remove();
          done(out);
        });""")
    for theme in themes:
        least = colours.least_distance(theme)
        check(least[0] >= 12, f"colours too much alike: {least}")


def test_themes(p):
    contrast = """
    const lum = (c) => { const [r, g, b] = c.match(/[\\d.]+/g).map((v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
    const probe = document.createElement('span'); document.body.append(probe);
    const rgb = (name) => { probe.style.color = `var(${name})`; return getComputedStyle(probe).color; };
    const out = {}; for (const [a, b] of [['--ink', '--page'], ['--ink', '--panel'], ['--quiet', '--page'], ['--quiet', '--panel'], ['--accent', '--panel'], ['--good', '--good-back'], ['--fair', '--fair-back'], ['--bad', '--bad-back']]) {
      const [x, y] = [lum(rgb(a)), lum(rgb(b))].sort((m, n) => n - m); out[`${a} on ${b}`] = (x + 0.05) / (y + 0.05); }
    probe.remove(); return out;"""
    p.graph()
    seen = set()
    for _ in range(3):
        ratios = p.run(contrast)
        low = {k: v for k, v in ratios.items() if v < 4.5}
        check(not low, f"too little contrast: {low}")
        seen.add(p.run("return getComputedStyle(document.body).backgroundColor"))
        p.b.keys("t")
        time.sleep(0.1)
    check(len(seen) == 2, f"t changes no colours: {seen}")
    p.run("localStorage.clear()")
    unnamed = p.run("""return [...document.querySelectorAll('button, a, input, select')].filter((e) => !(e.innerText || e.title || e.ariaLabel || '').trim()).map((e) => e.outerHTML)""")
    check(not unnamed, f"controls without a name: {unnamed}")


VIEWS = ("flame", "top", "sandwich&fn=memcpy", "diff&from=first&to=last", "heat", "who", "executables", "truth", "log", "developer")
GRAPH = ("zoom", "keys", "search", "steps", "menu", "shapes", "tooltip", "live_keeps")
TESTS = [f for name, f in list(globals().items()) if name.startswith("test_")]


def pictures(p, folder, name):
    p.open()
    for view in VIEWS:
        p.go("view=" + view)
        p.until("return Boolean(hearth.view.data || hearth.view.pane && hearth.view.pane.tree)", f"{view} shows nothing")
        time.sleep(0.3)
        p.no_sideways(f"{view}, {name}")
        p.b.picture(f"{folder}/{view.split('&')[0]}-{name}.png")
    p.quiet()


def serve(url, samples):
    server = mock_api.serve(page=url, samples=samples)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def main():
    url, folder, named = sys.argv[1].rstrip("/"), sys.argv[2], sys.argv[3:]
    every = [f.__name__.removeprefix("test_") for f in TESTS] + ["empty", "gone", "wide", "narrow", "4k"]
    wanted = GRAPH if named == ["graph"] else [n for n in every if n not in GRAPH] if named == ["others"] else named or every
    failed = 0
    server = serve(url, mock_api.made_up(time.time()))
    port = server.server_address[1]

    def attempt(name, page, test, *args):
        nonlocal failed
        if name not in wanted:
            return
        began = time.time()
        try:
            test(page, *args)
            page.quiet()
            print(f"passed {name} ({time.time() - began:.1f} s)")
        except AssertionError as error:
            failed += 1
            page.b.picture(f"{folder}/failed-{name}.png")
            page.b.console()
            print(f"FAILED {name}: {error}")

    with webdriver.Browser(1400, 900) as b:
        for test in TESTS:
            attempt(test.__name__.removeprefix("test_"), Page(b, port), test)
        attempt("empty", Page(b, serve(url, []).server_address[1]), test_of_nothing)
        gone = serve(url, mock_api.made_up(time.time()))
        attempt("gone", Page(b, gone.server_address[1]), lambda p: test_of_silence(p, gone))
        attempt("wide", Page(b, port), pictures, folder, "light")
    for name, size, dark in (("narrow", (390, 844), False), ("4k", (3840, 2160), True), ("dark", (1400, 900), True), ("narrow-dark", (390, 844), True)):
        if name not in wanted:
            continue
        with webdriver.Browser(*size, dark=dark) as b:
            b.screen(*size)
            attempt(name, Page(b, port), pictures, folder, name)
    sys.exit(1 if failed else 0)


def test_of_nothing(p):
    p.open()
    p.until("return /No samples yet/.test(document.querySelector('#main').innerText)", "an empty store is not told")
    check("sudo hearth" in p.text("#main") and f"--collector {p.base[:-1]}" in p.text("#main"), "no help")


def test_of_silence(p, server):
    p.graph()
    server.store = None  # from here on no request has an answer
    p.b.keys("R")
    p.until("return /does not answer/.test(document.querySelector('#main').innerText)", "silence is not told")
    p.b.console()  # Chromium tells of it too


if __name__ == "__main__":
    main()
