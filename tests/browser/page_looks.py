# SPDX-License-Identifier: Apache-2.0
"""Tests of how the page looks, which page.py runs: colours, contrast, a narrow page, what is said while it asks."""
import time

import colours
from page_driver import ESCAPE, PANE, ROW, check, close


def test_colors(p):
    """Types of frames can be told apart by people who lack one kind of cone, and in grey."""
    p.graph()
    themes = p.b.async_run("""const done = arguments[arguments.length - 1];
        import("/page/colors.js").then(({ TYPES, swatch, diffColor }) => {
          const probe = document.createElement("span"), out = [];
          document.body.append(probe);
          const rgb = (css) => { probe.style.color = css; return getComputedStyle(probe).color; };
          for (const dark of [false, true]) {
            const types = Object.fromEntries(Object.keys(TYPES).map((k) => [k, rgb(swatch(k, dark))]));
            out.push({ types, change: { less: rgb(diffColor(-1, dark)), more: rgb(diffColor(1, dark)) } });
          }
          probe.remove();
          done(out);
        });""")
    for theme in themes:
        types = {k: v for k, v in theme["types"].items() if k not in ("label", "marker")} # their texts tell them
        common = {k: types[k] for k in ("native", "kernel", "go", "python", "java", "unnamed")}
        for least, wanted in ((colours.least_distance(types), 9), (colours.least_distance(common), 12), (colours.least_distance(theme["change"]), 12)):
            check(least[0] >= wanted, f"colours too much alike: {least}")


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


UNREADABLE = """
    const rgb = (c) => { const v = c.match(/[\\d.]+/g).map(Number); if (c.startsWith('color(')) v.forEach((x, i) => { if (i < 3) v[i] = x * 255; }); return v.length < 4 ? [...v, 1] : v; };
    const lum = (c) => { const [r, g, b] = c.map((v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
    const e = document.elementFromPoint(arguments[0], arguments[1]).closest('button, select, a'); if (!e) return null; const s = getComputedStyle(e), layers = [];
    for (let up = e; up; up = up.parentElement) { const b = rgb(getComputedStyle(up).backgroundColor); if (b[3] > 0) layers.push(b); if (b[3] === 1) break; }
    const under = layers.reduceRight((below, [r, g, b, a]) => [r, g, b].map((v, i) => v * a + below[i] * (1 - a)), [255, 255, 255]);
    const [x, y] = [lum(rgb(s.color)), lum(under)].sort((m, n) => n - m), ratio = (x + 0.05) / (y + 0.05);
    return [e.matches(arguments[2]), ratio, `${e.innerText || e.title} (${s.color} on ${under.map(Math.round)})`];"""


CONTROLS = """return [...document.querySelectorAll(arguments[0])].filter((e) => { const r = e.getBoundingClientRect();
    return r.width && r.top >= 0 && r.bottom <= innerHeight && document.elementFromPoint(r.left + r.width / 2, r.top + r.height / 2) === e; }).map((e) => {
    const r = e.getBoundingClientRect(); return [r.left + r.width / 2, r.top + r.height / 2]; });"""


def test_hovered(p):
    """What is below the pointer can be read, pressed or not."""
    p.open()
    for _ in range(2):
        for view in ("flame&inv=1&case=1", "diff", "who", "health"):
            p.go("from=first&to=last&live=&view=" + view)
            p.until("return Boolean(hearth.view.data || hearth.view.pane && hearth.view.pane.tree)", f"{view} shows nothing")
            found = p.run(CONTROLS, "button, select, #views a")
            seen = 0
            for x, y in found:
                p.b.move(round(x), round(y))
                is_hovered, ratio, what = p.run(UNREADABLE, x, y, ":hover") or (False, 21, "")
                seen += is_hovered
                check(ratio >= 4.5, f"{view}: {ratio:.1f} to 1 {'under the pointer' if is_hovered else ''}: {what}")
            check(seen > 12, f"{view}: the pointer was over {seen} controls of {len(found)}")
        p.b.move(700, 5)
        p.b.keys("t")
        time.sleep(0.1)
    p.run("localStorage.clear()")


def test_held(p):
    """A button can be read while the mouse's is held down on it, also where it is one that stays pressed."""
    for theme in ("light", "dark"):
        for view in ("flame&inv=1&case=1", "health"):
            p.open("from=first&to=last&live=&view=" + view)
            p.run("document.documentElement.dataset.theme = arguments[0]; hearth.repaint()", theme)
            p.until("return Boolean(hearth.view.data || hearth.view.pane && hearth.view.pane.tree)", f"{view} shows nothing")
            pressed = p.run(CONTROLS, "button[aria-pressed=true]:not(:disabled)")
            check(len(pressed) > 1, f"{view}: only {len(pressed)} are pressed")
            for x, y in p.run(CONTROLS, "button:not(:disabled)"):
                for _ in range(3):  # an answer that comes meanwhile may have the button drawn anew
                    p.b.hold(round(x), round(y))
                    is_held, ratio, what = p.run(UNREADABLE, x, y, ":active")
                    p.b.release(700, 2)  # beside it: nothing is clicked
                    if is_held:
                        break
                check(is_held and ratio >= 4.5, f"{view}, {theme}: {ratio:.1f} to 1 while held down ({is_held}): {what}")
    p.run("delete document.documentElement.dataset.theme")


def test_foot(p):
    """What the foot says is amber where less than 95 % of stacks are complete, red below 80 %."""
    p.graph()
    p.until("return Boolean(document.querySelector('#foot .pill'))", "no truth at the foot")
    told = p.b.async_run("""const done = arguments[1]; import("/page/view_truth.js").then(({ truthPill }) => done(arguments[0].map((complete) => {
          const old = document.querySelector("#foot .pill"), e = truthPill({ complete, events: 1000, counters: {} });
          old.replaceWith(e);
          const s = getComputedStyle(e), probe = document.createElement("i");
          e.append(probe);
          const named = ["good", "fair", "bad"].filter((n) => { probe.style.color = `var(--${n})`; probe.style.backgroundColor = `var(--${n}-back)`;
            const q = getComputedStyle(probe); return q.color === s.color && q.backgroundColor === s.backgroundColor; });
          probe.remove();
          return [e.innerText, named.join()];
        })))""", [1000, 951, 950, 949, 900, 800, 799, 0])
    wanted = [["100.0 %", "good"], ["95.1 %", "good"], ["95.0 %", "good"], ["94.9 %", "fair"], ["90.0 %", "fair"], ["80.0 %", "fair"], ["79.9 %", "bad"], ["0 %", "bad"]]
    check([[text.split(" complete")[0], tone] for text, tone in told] == wanted, f"the foot: {told}")


def pixel(p, chart, x, y):
    """The colour at a place of a canvas, in CSS pixels."""
    return p.run("const c = document.querySelectorAll('canvas.flame')[arguments[0]], r = devicePixelRatio; return [...c.getContext('2d').getImageData(arguments[1] * r, arguments[2] * r, 1, 1).data].slice(0, 3)", chart, x, y)


def test_centre(p):
    """The function that a sandwich is about has a colour that no other box has."""
    for theme in ("light", "dark"):
        p.open("view=sandwich&fn=vfs_read")
        p.run("document.documentElement.dataset.theme = arguments[0]; hearth.repaint()", theme)
        p.until("return Boolean(hearth.view.data && hearth.view.charts[1].drawn)", "no sandwich")
        height = p.run("return hearth.view.charts[0].canvas.clientHeight")
        centres = [pixel(p, 0, 300, height - 3), pixel(p, 1, 300, 3)]
        others = [pixel(p, 0, 300, height - ROW - 3), pixel(p, 1, 300, ROW + 3)]
        check(centres[0] == centres[1], f"{theme}: callers and callees have it in two colours: {centres}")
        for other in others:
            check(sum(abs(a - b) for a, b in zip(centres[0], other)) > 150, f"{theme}: {centres[0]} beside {other}")
    p.run("delete document.documentElement.dataset.theme")


def test_heat_ranks(p):
    """One heavy moment does not make all others alike."""
    p.open("view=heat")
    p.until("return Boolean(hearth.view.data)", "no heat map")
    shades = p.run("""const v = hearth.view, d = v.data; d.weights = d.weights.map((_, i) => [1, 2, 4, 0][i % 4]); d.weights[8] = 1e6; v.show(d); v.cursor = -1; v.draw();
        const c = v.canvas.getContext('2d'), r = devicePixelRatio, [w, h] = v.size(), cell = (k) => [...c.getImageData((46 + (Math.floor(k / d.rows) + 0.3) * w / d.columns) * r, (h - (k % d.rows + 0.5) * h / d.rows) * r, 1, 1).data];
        return [100, 101, 102].map(cell)""")
    far = [sum(abs(a - b) for a, b in zip(x, y)) for x, y in zip(shades, shades[1:])]
    check(min(far) > 30, f"weights of 1, 2 and 4 look alike: {shades}")


def test_asking(p):
    """A new question shows a small answer first; one that takes long is said to be asked."""
    p.graph("from=first&to=last&live=")
    p.until("return /max_nodes=20000/.test(document.querySelector('#foot .question').innerText) && !document.querySelector('#main').classList.contains('busy')", "no whole answer")
    p.run("""window.asked = []; window.busyAt = 0; const real = window.fetch, main = document.querySelector('#main');
        new MutationObserver(() => { if (!busyAt && main.classList.contains('busy')) busyAt = performance.now(); }).observe(main, { attributes: true });
        window.fetch = (url, ...more) => { if (!/flamegraph|top/.test(url)) return real(url, ...more);
          asked.push([url, performance.now()]); return (asked.length > 1 ? new Promise((done) => window.answer = done) : Promise.resolve()).then(() => real(url, ...more)); }""")
    p.choose("Group by", "cpu")
    p.until("return hearth.view.pane.tree.type(1) === 'label' && asked.length > 1", "nothing is shown before the whole answer")
    check(p.run("return asked.map(([u]) => new URL(u).searchParams.get('max_nodes')).join()") == "2000,20000", f"asked: {p.run('return asked')}")
    p.until("return document.querySelector('#main').classList.contains('busy')", "nobody says that it is being asked")
    check("asking" in p.run("return getComputedStyle(document.querySelector('#main'), '::before').content"), "asking is not said")
    after = p.run("return busyAt - asked[0][1]")
    check(after > 290, f"it is said after {after:.0f} ms")
    p.run("answer()")
    p.until("return !document.querySelector('#main').classList.contains('busy')", "it is asked for ever")


def on_a_phone(p):
    p.b.go(p.base)
    p.until("return document.querySelectorAll('.top tbody tr').length > 5", "Top is not what opens first")
    p.state("view", "top")
    p.no_sideways("Top")
    p.click("#views a")
    p.until("return Boolean(hearth.view.pane && hearth.view.pane.tree)", "no flame graph")
    check(p.hash()["view"] == "flame" and "max_nodes=2000&" in p.text("#foot .question") + "&", f"not 2,000 boxes, or a reload shows another view: {p.hash()} {p.text('#foot')}")
    p.open("view=diff")
    p.until("return Boolean(hearth.view.pane && hearth.view.pane.tree && hearth.view.pane.chart.drawn)", "no difference")
    shown = "return [...document.querySelectorAll('.diff select, .diff .side input, .diff button.toggle')].filter((e) => e.getClientRects().length && !e.closest('.search')).length"
    check(p.run(shown) == 0, "the controls of Diff are not folded")
    graph = p.rect(".flame-scroll")
    check(graph[1] < 420, f"the graph begins at {graph[1]}")
    p.button("Controls")
    check(p.run(shown) > 5, "the controls of Diff cannot be had")
    p.no_sideways("Diff")
    p.open("view=executables")
    p.until("return Boolean(document.querySelector('.executables .file b'))", "no executables")
    right = p.run("const b = document.querySelector('.executables .file b'); b.textContent = 'lib' + 'x'.repeat(80) + '.so'; return b.closest('table').getBoundingClientRect().right")
    file = p.rect(".executables .file")
    check(right <= 390 and file[2] > 120 and file[3] < 150, f"a long name makes the table of executables end at {right}, its cell is {file}")
    wide = p.run("const e = document.querySelector('.executables').closest('.scroll'); return [e.scrollWidth, e.clientWidth]")
    check(wide[0] <= wide[1], f"the executables' page is wider than the screen: {wide}")
    p.open("view=sandwich&fn=nosuch")
    p.until("return /No sample of nosuch in this range/.test(document.querySelector('#main').innerText)", "nothing is said of a function that is not there")
    check("Callers" not in p.text("#main"), "pictures of nothing")
