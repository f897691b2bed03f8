# SPDX-License-Identifier: Apache-2.0
"""Tests of the page's Diff and of old links, which page.py runs."""
from page_driver import PANE, check, close


def test_diff(p):
    p.open("view=diff&from=first&to=last")
    p.until("const v = hearth.view.pane; return Boolean(v.tree && v.chart.drawn)", "no difference")
    check(close(p.run(PANE + "return t.total[0] / t.total2[0]"), 1, 0.02), "the halves are not alike")
    color = "const p = hearth.view.pane, t = p.tree, i = t.functions.name.indexOf(arguments[0]), n = t.fn.indexOf(i), s = p.chart.placeOf(n); const r = devicePixelRatio; return [...document.querySelector('canvas.flame').getContext('2d').getImageData((s.x + s.w - 6) * r, (s.y + 2) * r, 1, 1).data]"
    less, more, same = (p.run(color, n) for n in ("hash_v1", "hash_v2", "memcpy"))
    check(less[2] > less[0] + 60 and more[0] > more[2] + 60 and abs(same[0] - same[2]) < 20, f"colours: less {less} more {more} same {same}")
    p.choose("Show as", "top")
    rows = p.until("return hearth.view.data.rows && hearth.view.data.noise && [...document.querySelectorAll('.diff .grid tbody tr')].map((r) => [...r.cells].map((c) => c.innerText.trim()))", "no table")
    check({rows[0][4], rows[1][4]} == {"hash_v1", "hash_v2"} and rows[0][0].lstrip("+-") == "15.00", f"{rows[:2]}")
    sign = "return [...document.querySelectorAll('.diff .grid tbody tr')].some((r) => r.cells[4].innerText === 'hash_v2' && r.cells[0].innerText === arguments[0])"
    check(p.run(sign, "+15.00"), "hash_v2 is not 15 points more")
    p.b.keys("x")
    p.until(sign, "x does not swap", "-15.00")
    p.open('view=diff&from=first&to=last&from1=first&to1=last&from2=first&to2=last&q1={version="1"}&q2={version="2"}')
    p.until("const v = hearth.view.pane; return Boolean(v.tree && v.chart.drawn)", "no difference by label")
    check(p.run(PANE + "return [t.total[t.fn.indexOf(t.functions.name.indexOf('hash_v2'))], t.total2[t.fn.indexOf(t.functions.name.indexOf('hash_v1'))]].join()") == "0,0", "labels do not tell A from B")
    p.choose("Width of boxes", "absolute")
    p.state("dm", "absolute")


def test_diff_empty_side(p):
    """The store has an hour; A is before it."""
    hour = p.run("return Date.now() / 1000 - 3600")
    p.open(f"view=diff&from={hour - 7200:.0f}&to={hour + 3500:.0f}&live=&from1={hour - 7200:.0f}&to1={hour - 3600:.0f}&from2={hour + 60:.0f}&to2={hour + 1800:.0f}")
    p.until("return /A has no samples/.test(document.querySelector('#main').innerText)", f"an empty A is not told: {p.text('#main')}")
    check(p.run("return document.querySelectorAll('.sides .side-query').length") == 2, "the controls of the sides are gone")
    p.button("Compare the halves of what there is")
    p.until("const v = hearth.view; return v.pane.tree && v.pane.el.isConnected && v.data.total > 0 && v.data.total2 > 0", "the halves are no halves of what there is")
    check(close(p.run("return hearth.view.data.total / hearth.view.data.total2"), 1, 0.1), "the halves are not alike")
    p.open(f"view=diff&from={hour - 7200:.0f}&to={hour + 3500:.0f}&live=")
    p.until("const d = hearth.view.data; return d && d.total > 0 && d.total2 > 0", "without a choice one half is empty")
    p.open(f"view=diff&from={hour - 7200:.0f}&to={hour - 3600:.0f}&live=")
    p.until("return /Neither A nor B has samples/.test(document.querySelector('#main').innerText)", "two empty sides are not told")


def times(p):
    """A's and B's ends, as the address has them."""
    return [float(p.hash()[k]) for k in ("from1", "to1", "from2", "to2")]


def test_diff_selection(p):
    """A time dragged over in the timeline is B, the same length before it A; both can be dragged there, and so in other views."""
    timeline = ".timeline-frame canvas"
    p.open("view=diff&from=now-1h")
    p.until("return Boolean(hearth.view.pane.tree)", "no difference")
    p.drag(timeline, 0.6, 0.8)
    p.until("return hearth.view.data && Math.abs(hearth.view.data.to2 - hearth.view.data.from2 - 720) < 40", "the dragged time is not asked for")
    a, b, c, d = times(p)
    check(close(d - c, 720, 40) and close(b - a, d - c, 0.01) and close(b, c, 0.01), f"B is not the time, or A not the same length before it: {times(p)}")
    check(p.run("return document.querySelector('.pick').hidden") and p.run("return document.querySelectorAll('.mark').length") == 2, "a third time is shown beside A and B")
    p.drag(timeline, 0.7, 0.8, 0.1, 0.1)  # B by its name
    p.until("return Math.abs(+new URLSearchParams(location.hash.slice(1)).get('from2') - arguments[0] - 360) < 40", "B cannot be moved", c)
    check(close(times(p)[3] - times(p)[2], d - c, 0.01) and times(p)[:2] == [a, b], f"moving B changes more than its place: {times(p)}")
    x, _, w, _ = p.rect(timeline)
    edge = (p.rect(".mark.A")[0] - x) / w
    p.drag(timeline, edge, edge - 0.1)  # A by its edge
    p.until("return arguments[0] - new URLSearchParams(location.hash.slice(1)).get('from1') > 320", "A's edge cannot be dragged", a)
    check(times(p)[1] == b and close(a - times(p)[0], 360, 40), f"dragging A's edge: {times(p)}")
    # A time selected in another view comes along, also when A and B were others before.
    p.go("from=now-1h&from1=1&to1=2&from2=3&to2=4")
    p.until("return Boolean(hearth.timeline.data)", "no timeline")
    p.drag(timeline, 0.5, 0.75)
    p.until("return /sel=/.test(location.hash)", "nothing is selected")
    p.b.keys("4")
    p.until("return /from2=/.test(location.hash)", "Diff ignores the selected time")
    cut = [float(x) for x in p.hash()["sel"].split("-")]
    check([round(x) for x in times(p)[2:]] == [round(x) for x in cut] and close(times(p)[0], cut[0] - (cut[1] - cut[0]), 1), f"{times(p)} of the selected {cut}")


def test_diff_noise(p):
    """What the server's judge calls noise is grey; the figures stand beside it."""
    p.open('view=diff&from=first&to=last&from1=first&to1=last&from2=first&to2=last&q1={service.name="shop"}&q2={comm=~"shop|search"}')
    p.until("const v = hearth.view.pane; return Boolean(v.tree && v.answer.noise && v.chart.drawn)", "nothing is judged")
    grey = p.run("const p = hearth.view.pane, t = p.tree, mid = (p.coloring.palette.length - 1) / 2; return Object.fromEntries(Array.from(t.fn, (f, i) => [t.functions.name[f], p.coloring.of[i] === mid]))")
    check(grey["fib"] and not grey["serve_forever"] and not grey["main.main"], f"grey are {[k for k in grey if grey[k]]}")
    check("2 of 14 functions changed" in p.text(".legend"), f"the legend: {p.text('.legend')}")
    p.choose("Show as", "top")
    p.until("return Boolean(hearth.view.data.rows && hearth.view.data.noise)", "no table")
    rows = dict(p.run("return [...document.querySelectorAll('.diff .grid tbody tr')].map((r) => [r.cells[4].innerText, r.className])"))
    check(rows["blk_mq_submit"] == "" and rows["main"] == "none", f"rows within noise: {rows}")


def test_old_links(p):
    """A link from when the page called the executable comm shows what it showed."""
    p.graph("by=comm&tby=comm")
    check("by=exe" in p.text("#foot") and close(p.share("shop"), 60), f"not by executable: {p.text('#foot')}")
    p.graph('q={comm="shop"}')  # all threads of it
    check(close(p.run("return hearth.view.pane.answer.events / 10800"), 1, 0.05), "comm takes no process")
    p.graph('q={comm="shop-io"}')
    check(close(p.run("return hearth.view.pane.answer.total / hearth.timeline.data.total"), 1, 0.01) and p.run("return hearth.view.pane.answer.events") < 6000, "comm is not the name of a thread")
