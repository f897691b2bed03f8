#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The page in a browser, every interaction, over samples of which every number is known (mock_api.py's made_up()).

usage: page.py URL PICTURES [TEST...]    URL: a hearth, whose page this is; screenshots go into the folder PICTURES
                                         tests by name; "graph": those of the flame graph, "looks": of how it looks, "others": all but those;
                                         dark and narrow-dark, of which pictures are made, only when named

A message of the console that is no mere information fails the test, and what breaks the page's policy is one."""
import re
import sys
import threading
import time

import mock_api
import page_diff
import page_looks
import page_steps
import page_words
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
    p.b.keys("hk")
    check(p.text(".dock b") == "main", f"h and k lead to {p.text('.dock b')}")
    p.b.keys("jlkj" + LEFT + UP + ENTER)
    p.until("return document.querySelector('.crumb[aria-current]').innerText === 'main'", "Enter does not zoom")
    p.b.keys("?")
    check("from box to box" in p.text("dialog"), "? shows no keys")
    p.b.keys(ESCAPE)
    check(not p.run("return document.querySelector('dialog').open"), "Escape does not close the keys")
    for key, view in zip("2345671", ("top", "sandwich", "diff", "heat", "who", "health", None)):
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
    p.b.keys(ESCAPE)
    check(p.run("return document.activeElement.tagName") == "CANVAS" and p.hash().get("s") == "fib", "Escape does not leave the search box as it is")
    p.b.keys(ESCAPE)
    p.until("return !/s=/.test(location.hash)", "Escape in the graph does not clear the search")
    p.b.keys("/memcpy, blk_")
    p.until("return /20\\.0 %/.test(document.querySelector('.found').innerText)", f"two terms: {p.text('.found')}")
    p.box(0.3, 1)
    p.until("return /of this/.test(document.querySelector('.found').innerText)", "no share of what is zoomed into")
    check("25.0 % of this" in p.text(".found"), f"15 of 60 below main: {p.text('.found')}")
    for wrong, says in (("(", "( is not closed: write \\("), ("?", '"?" repeats what stands before it'), ("a[", "[ is not closed"), ("x\\", "at the end"), (")", ") closes nothing")):
        p.b.keys(ESCAPE + ESCAPE + "/" + BACKSPACE + wrong)
        p.until("return document.querySelector('.found').innerText.includes(arguments[0])", f"{wrong} is not explained: {p.text('.found')}", says)
    p.b.keys(ESCAPE + ESCAPE + "/" + BACKSPACE + "FIB")
    p.until("return /5.00/.test(document.querySelector('.found').innerText)", "case matters from the start")
    p.button("Aa")
    p.until("return /no match/.test(document.querySelector('.found').innerText)", "Aa changes nothing")


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


def test_legend(p):
    """The legend of a graph that is cut says what Top says by type."""
    read = "return [...document.querySelectorAll('.legend > *')].map((e) => e.innerText.trim())"
    p.open("view=top&rows=1000")
    p.until("return document.querySelectorAll('.top tbody tr').length > 5", "no table")
    rows = p.run("return hearth.view.data.rows.map((r) => [r.name, r.type, r.self])")
    whole = p.run("return hearth.view.data.total")
    kinds = {}
    for name, kind, own in rows:
        title = "unnamed" if "+0x" in name else {"go": "Go", "cpython": "Python"}.get(kind, kind)
        kinds[title] = kinds.get(title, 0) + own
    wanted = {title: 100 * own / whole for title, own in kinds.items() if own}
    check(close(wanted["kernel"], 15, 0.1) and close(wanted["unnamed"], 5, 0.1) and len(wanted) == 5, f"Top by type: {wanted}")
    for view in ("view=top&rows=1000", "nodes=4", "nodes=4&inv=1", "nodes=100000"):
        p.open(view) if "top" in view else p.graph(view)
        told = dict(re.match(r"(\w+)\s+([\d.]+) %$", text).groups() for text in p.until(read, f"{view}: no legend"))
        check(told.keys() == wanted.keys() and all(close(float(told[k]), wanted[k], 0.1) for k in wanted), f"{view}: the legend has {told}, Top {wanted}")
    p.graph("nodes=4")
    p.box(0.3, 1)
    p.b.keys("f")  # a step, of which the server knows nothing
    p.until("return [...document.querySelectorAll('.legend > *')].some((e) => /cut away/.test(e.innerText))", "what is cut away is not told")


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
    p.choose("Group by", "cpu")
    p.until("const p = hearth.view.pane; return p.tree.type(1) === 'label' && p.tree.name(1) === '0'", "not grouped by CPU")
    check("by=cpu" in p.text("#foot"), "the question has no group")
    p.choose("Group by", "none")
    p.b.keys("I")
    p.state("inline", "0")
    p.until("const p = hearth.view.pane; return !p.tree.functions.name.includes('next_token')", "inlined calls stay")
    check(close(p.share("parse<std::vector<std::string> >"), 30), "what was inlined is not its caller's")
    before = p.run("return document.querySelector('canvas.flame').toDataURL()")
    p.choose("Colour of boxes", "module")
    p.state("color", "module")
    check(p.run("return document.querySelector('canvas.flame').toDataURL()") != before, "no other colours by module")
    p.choose("Colour of boxes", "package")
    p.state("color", "package")


def test_processes(p):
    """The graph is grouped by process where there is more than one; what stood in old links is found still."""
    p.graph(by="")
    check(p.run(PANE + "return t.children(0).map((c) => t.type(c) + t.name(c)).join()") == "labelshop,labelsearch,label<b>python</b>" and close(p.share("shop"), 60), "not a box for each process")
    p.box(0.3, 1)
    p.state("by", "exe")
    check(p.text(".crumb[aria-current]") == "shop", "the process is not zoomed into")
    p.graph('q={service.name="shop"}', by="")
    check(p.names()[1] == "main" and p.run(PANE + "return t.n") == p.run(PANE + "return p.answer.nodes.parent.length - 1"), "a process alone has a box of its name")
    p.graph()
    p.box(0.3, 1)
    p.state("by", "none")
    old = p.hash()["z"]
    p.open(f"z={old}")
    p.until("return document.querySelector('.crumb[aria-current]')?.innerText === 'main'", "a link to a box from before there were groups is lost")
    p.choose("Hide what is not of interest", "kernel")
    p.until("return /by=none/.test(location.hash)", "the graph is grouped otherwise than it was")


def test_double_click(p):
    p.graph()
    for _ in range(2):
        p.box(0.3, 1)
        x, y, w, _ = p.rect("canvas.flame")
        p.b.click(x + 0.3 * w, y + 2.5 * ROW, count=2)
        p.until("return document.querySelector('.crumb[aria-current]').innerText === 'all' && !/z=/.test(location.hash)", "a double click does not show all")


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
    for text, value in (("6 h", "now-6h"), ("24 h", "now-24h"), ("All", "first")):
        p.button(text, "#range")
        p.state("from", value)
    p.choose("Timeline by", "exe")
    p.until("return /shop/.test(document.querySelector('.timeline-tools .keys').innerText)", "no series by process")


def test_kinds(p):
    p.graph()
    p.until("return hearth.timeline.lanes.size === 1", "no lane for off-CPU")
    x, y, w, h = p.rect(".timeline-frame canvas")
    p.b.click(x + w / 2, y + h - 24)
    p.state("kind", "off_cpu")
    p.until("return hearth.view.pane.tree.functions.name.includes('futex_wait')", "not the other kind's stacks")
    p.until("return document.querySelector('#timeline').innerText.includes('threads')", "off-CPU is counted in cores")
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
    # Strips come with the whole answer, after the small one; their column has its place from the start.
    p.until("return document.querySelectorAll('.top .strip path[d*=M]').length === arguments[0]", "rows without a strip", sum(r[0] != "0 %" for r in rows))
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


def test_who(p):
    p.open("view=who")
    p.until("return document.querySelectorAll('#main tbody tr').length === 3", "not three processes")
    check("60.0 %" in p.text("#main tbody tr"), "shop is not first")
    p.button("Only", "#main")
    p.state("q", '{exe="shop"}')
    p.until("const p = hearth.view.pane; return p && p.tree && p.tree.functions.name.indexOf('main.main') < 0", "others are there still")
    check('exe="shop"' in p.text(".chips"), "no chip")
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
    time.sleep(0.3)  # it asks again once it knows the store
    p.b.console()  # Chromium tells of the 400 there


def test_executables(p):
    p.open("view=executables")
    check(p.text("#views [aria-current]") == "Health" and p.text(".health [aria-pressed=true]") == "Executables", "an old link to executables does not lead to Health")
    p.until("return /plugin.so/.test(document.querySelector('#main').innerText)", "no executables")
    check("install its debug package" in p.text("#main"), "no advice")
    drop = """const d = new DataTransfer(); d.items.add(new File([arguments[0]], "plugin.debug"));
        document.querySelector('.drop').dispatchEvent(new DragEvent('drop', { dataTransfer: d, bubbles: true }))"""
    p.run(drop, "no such thing")
    p.until("return /not taken: this is no ELF file/.test(document.querySelector('.drop').innerText)", "a refusal is not told")
    p.b.console()  # the 400
    p.run(drop, "\x7fELF")
    p.until("return /taken for build id 9999: 3 functions, of which 2 /.test(document.querySelector('.drop').innerText)", "the file is not sent")
    check("plug_in › step (inlined)" in p.text(".drop .named"), "nothing says what was named")


def test_truth(p):
    p.graph()
    p.until("return /complete/.test(document.querySelector('#foot').innerText)", "no truth at the foot")
    p.click("#foot .pill")
    p.state("view", "health")
    p.until("return /no rule/.test(document.querySelector('#main').innerText)", "no reasons")
    text = p.text("#main")
    check(re.search(r"99\.9\d %", text) and "97.5 %" in text and "Time in code with a name\n95.0 %" in text and "of one CPU" in text and "ring full" in text, text)
    check(re.search(r"5.?000\s+100\.0 %\s+php\s+1.?000\s+99\.0 %\s+python\s+torn 10", text), f"script stacks by runtime: {text}")


def test_hearth(p):
    p.open("view=log")
    p.until("return document.querySelectorAll('.log li').length === 3", "not three messages")
    p.choose("Least level", "error")
    p.until("return document.querySelectorAll('.log li').length === 1", "levels do not filter")
    check("Permission denied" in p.text(".log"), "the error is not there")
    p.button("Developer", ".health")
    p.state("hv", "developer")
    p.until("return /hearth_samples_total/.test(document.querySelector('#main').innerText)", "no counters")
    p.until("return /75.0 %\\s*blocks/.test(document.querySelector('#main').innerText)", "no bytes by table")
    check("12 different ones" in p.text("#main"), f"not how often stacks repeat: {p.text('.facts')}")
    p.run("document.querySelectorAll('.developer details summary').forEach((s) => s.click())")
    check("status 200" in p.text(".developer"), "the requests are no tree")
    check("User-Agent: Mozilla" in p.text(".developer .headers"), f"a request has no headers: {p.text('.developer details')}")
    check("bytes a sample" in p.text("#main") and "/api/v1/status" in p.text("#main"), "no store, no requests")
    p.b.keys("/lost")
    p.until("return !/hearth_samples_total/.test(document.querySelector('#main').innerText)", "counters cannot be searched")


def test_download(p):
    p.graph("q={comm=\"shop\"}")
    p.run("window.clicked = []; HTMLAnchorElement.prototype.click = function () { clicked.push(this.getAttribute('href')); }")
    p.b.keys("D")
    texts = p.run("return [...document.querySelectorAll('.menu button')].map((b) => b.innerText)")
    check({"OTLP", "pprof", "Folded stacks", "Flame graph as SVG", "Flame graph as a page", "Firefox Profiler"} <= set(texts), f"{texts}")
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


VIEWS = ("flame", "top", "sandwich&fn=memcpy", "diff&from=first&to=last", "heat", "who", "truth", "executables", "log", "developer")
GRAPH = ("zoom", "keys", "search", "steps", "presets", "menu", "shapes", "processes", "double_click", "tooltip", "live_keeps")
LOOKS = [*(n.removeprefix("test_") for n in vars(page_looks) if n.startswith("test_")), "wide", "phone", "narrow", "4k"]
TESTS = [f for names in (globals(), vars(page_diff), vars(page_looks), vars(page_steps), vars(page_words)) for name, f in list(names.items()) if name.startswith("test_")]


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
    every = [f.__name__.removeprefix("test_") for f in TESTS] + ["empty", "first_minute", "clear", "gone", "wide", "phone", "narrow", "4k"]
    groups = {"graph": GRAPH, "looks": LOOKS, "others": [n for n in every if n not in GRAPH and n not in LOOKS]}
    wanted = groups.get(" ".join(named), named or every)
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
        now = time.time()
        young = [s._replace(time=s.time + 1.5) for s in mock_api.made_up(now) if s.time > now - 32]
        attempt("first_minute", Page(b, serve(url, young).server_address[1]), test_first_minute)
        attempt("clear", Page(b, serve(url, mock_api.made_up(time.time())).server_address[1]), test_of_clearing)
        gone = serve(url, mock_api.made_up(time.time()))
        attempt("gone", Page(b, gone.server_address[1]), lambda p: test_of_silence(p, gone))
        attempt("wide", Page(b, port), pictures, folder, "light")
    if "phone" in wanted:
        with webdriver.Browser(390, 844) as b:
            b.screen(390, 844)
            attempt("phone", Page(b, port), page_looks.on_a_phone)
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
    empty = p.text("#main")
    check("sudo hearth" in empty and f"--collector {p.base[:-1]}" in empty, "no help")
    p.go("view=truth")
    p.until("return /No samples in this range/.test(document.querySelector('#main').innerText)", "Truth says nothing of a range without samples")
    check("All stacks" not in p.text("#main") and not p.run("return document.querySelector('.gauge .bar')"), f"shares of nothing: {p.text('#main')}")


def test_first_minute(p):
    """A store that was empty half a minute ago: the range is what there is, averages are over it, and halves have samples."""
    p.open(is_first=True)
    p.until("const p = hearth.view.pane; return Boolean(p && p.tree && p.chart.drawn)", "no flame graph is drawn")
    age = p.run("const d = hearth.timeline.data; return d.to - d.from")
    check(28 < age < 45, f"the first range is {age} s, the samples came for half a minute")
    check(re.search(r"(^|\D)(0\.9\d|1\.[01]\d) cores on average", p.text("#timeline")), f"20 of 20 samples a second are a core, not: {p.text('#timeline')[:200]}")
    check("0.9" in p.text(".dock") or "1.0" in p.text(".dock") or "1.1" in p.text(".dock"), f"the root of the graph: {p.text('.dock')}")
    check(p.run("return document.querySelector('#range [aria-pressed=true]').innerText") == "15 m", "no range is pressed")
    empty = p.run("const w = hearth.timeline.data.series[0].weights, n = w.length; let k = 0; while (k < n && !w[k]) k++; return k / n")
    check(empty < 0.1, f"the timeline begins with {100 * empty:.0f} % of nothing")
    p.go("view=diff")
    p.until("const d = hearth.view.data; return d && d.total > 0 && d.total2 > 0", "Diff compares with nothing")
    p.go("view=heat")
    p.until("return Boolean(hearth.view.data)", "no heat map")
    check(p.run("const d = hearth.view.data, c = d.weights.slice(0, d.rows * Math.ceil(d.columns / 4)); return c.some((w) => w)"), "the heat map does not fit the samples")
    p.graph("from=now-1h")
    check(re.search(r"(^|\D)(0\.9\d|1\.[01]\d) cores on average", p.text("#timeline")), f"an hour is asked for, and the average is over all of it: {p.text('#timeline')[:200]}")
    p.go("view=top&from=now-1h")
    p.until("return document.querySelectorAll('.top tbody tr').length > 5", "no table")
    title = p.run("return [...document.querySelectorAll('.top tbody tr')].find((r) => /Find/.test(r.innerText)).cells[0].title")
    check(re.search(r"0\.(1[89]|2\d) cores", title), f"a function of 20 % has {title}")


def test_of_clearing(p):
    """Stored data can be cleared from the page, which asks before."""
    p.open("view=developer")
    p.until("return /hearth_samples_total/.test(document.querySelector('#main').innerText)", "no counters")
    for answer, left in (("Keep them", True), ("Clear", False)):
        p.until("return Boolean(document.querySelector('.developer .facts dt'))", "no store")
        p.button("Clear stored data…")
        p.until("return /cannot be undone/.test(document.querySelector('dialog.ask')?.innerText)", "nobody asks")
        p.button(answer, "dialog.ask")
        p.until("return !document.querySelector('dialog.ask')", "the question stays")
        p.until("return /stacks\\s+none/.test(document.querySelector('.developer .facts').innerText) !== arguments[0]", f"after {answer}, stacks: {p.text('.facts')}", left)
        p.b.keys("1")
        p.until("return document.querySelector('#main').innerText.includes('No samples yet') !== arguments[0]", f"after {answer}: {p.text('#main')[:200]}", left)
        p.b.keys("7")


def test_of_silence(p, server):
    p.graph()
    server.store = None  # from here on no request has an answer
    p.b.keys("R")
    p.until("return /does not answer/.test(document.querySelector('#main').innerText)", "silence is not told")
    p.b.console()  # Chromium tells of it too


if __name__ == "__main__":
    main()
