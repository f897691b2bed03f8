# SPDX-License-Identifier: Apache-2.0
"""The page in a browser as tests handle it: opened, waited for, clicked, typed into, read."""
import time

ESCAPE, ENTER, BACKSPACE, LEFT, UP, RIGHT, DOWN, SHIFT = "\ue00c", "\ue007", "\ue003", "\ue012", "\ue013", "\ue014", "\ue015", "\ue008"
ROW = 19  # of the flame graph, px
PANE = "const p = hearth.view.pane || hearth.view, t = p.tree;"


def check(condition, what):
    if not condition:
        raise AssertionError(what)


def close(a, b, by=0.6):
    return abs(a - b) <= by


class Page:
    """The page of one browser, and a server with samples."""

    def __init__(self, browser, port):
        self.b, self.base = browser, f"http://127.0.0.1:{port}/"

    def run(self, script, *args):
        return self.b.run(script, *args)

    def open(self, hash_="", is_first=False):
        """At an address; of an hour unless that says another range. is_first: as it is when nobody said anything."""
        if not is_first and "from=" not in hash_:
            hash_ = "from=now-1h" + ("&" + hash_ if hash_ else "")
        self.b.go("about:blank")
        self.b.go(self.base + ("#" + hash_ if hash_ else ""))
        self.until("return Boolean(window.hearth && hearth.status && hearth.timeline.data)", "the page does not start")

    def log_in(self, token):
        """At the form that stands where a token is asked for."""
        self.until("return Boolean(document.querySelector('#token'))", "no form asks for a token")
        self.b.keys(token + ENTER)

    def go(self, hash_):
        """Another address of the page that is open: sooner than opening it anew."""
        self.run("location.hash = arguments[0]", hash_ or "#")
        time.sleep(0.3)

    def until(self, script, what, *args):
        end = time.time() + 15
        while time.time() < end:
            got = self.run(script, *args)
            if got:
                return got
            time.sleep(0.05)
        raise AssertionError(f"{what}; console: {self.b.console()}")

    def graph(self, hash_="", by="none"):
        """The flame graph, not grouped unless that is asked for."""
        self.open(f"{hash_}&by={by}".lstrip("&"))
        self.until("const p = hearth.view.pane; return Boolean(p && p.tree && p.chart.drawn)", "no flame graph is drawn")

    def rows(self, what):
        """The texts of the page's table, once it has any."""
        self.until("return document.querySelectorAll('#main tbody tr').length > 0", f"no {what}: {self.text('#main')[:300]}")
        return self.run("return [...document.querySelectorAll('#main tbody tr')].map((tr) => tr.innerText)")

    def row(self, text):
        self.run("[...document.querySelectorAll('#main tbody tr')].find((tr) => tr.innerText.includes(arguments[0])).click()", text)

    def flame(self, what):
        """The functions and the total of the flame graph that a click leads to."""
        self.until("const p = hearth.view.pane; return /view=flame|^#(?!.*view=)/.test(location.hash) && Boolean(p && p.tree)", f"{what} does not lead to a flame graph: {self.run('return location.hash')}")
        return self.run("const t = hearth.view.pane.tree; return { functions: [...t.fn].map((f) => t.functions.name[f]), total: t.total[0] }")

    def text(self, css):
        return self.run("const e = document.querySelector(arguments[0]); return e ? e.innerText : ''", css)

    def hash(self):
        return dict(p.split("=", 1) for p in self.run("return location.hash.slice(1)").split("&") if p)

    def rect(self, css):
        return self.run("const r = document.querySelector(arguments[0]).getBoundingClientRect(); return [r.left, r.top, r.width, r.height]", css)

    def click(self, css):
        self.run("document.querySelector(arguments[0]).scrollIntoView({block: 'nearest', inline: 'nearest'})", css)
        x, y, w, h = self.rect(css)
        self.b.click(x + w / 2, y + h / 2)

    def button(self, text, within="body"):
        """Clicks the button with this text."""
        at = self.run("""const b = [...document.querySelectorAll(arguments[0] + ' button')].find((e) => e.innerText.trim() === arguments[1]);
            if (!b) return null; b.scrollIntoView({block: 'nearest', inline: 'nearest'}); const r = b.getBoundingClientRect(); return [r.left + r.width / 2, r.top + r.height / 2]""", within, text)
        check(at, f"no button '{text}'")
        self.b.click(*at)

    def choose(self, title, value):
        self.run("""const s = [...document.querySelectorAll('select')].find((e) => e.title === arguments[0]); s.value = arguments[1];
            s.dispatchEvent(new Event('change'))""", title, value)

    def box(self, part, depth, button=0, move=False):
        """Clicks the place at a part of the flame graph's width, in a row of it."""
        x, y, w, _ = self.rect("canvas.flame")
        at = (x + part * w, y + depth * ROW + ROW / 2)
        if move:
            self.b.move(*at)
        else:
            self.b.click(*at, button=button)
        time.sleep(0.25)

    def names(self):
        return self.run(PANE + "return Array.from(t.fn, (f) => t.functions.name[f])")

    def total(self, name):
        """What all boxes of this name weigh, those within another of it left out."""
        return self.run(PANE + "let s = 0, until = 0; for (let i = 0; i < t.n; i++) if (i >= until && t.name(i) === arguments[0]) { s += t.total[i]; until = t.end[i]; } return s", name)

    def share(self, name):
        return 100 * self.total(name) / self.run(PANE + "return t.total[0]")

    def state(self, key, value):
        self.until("return new URLSearchParams(location.hash.slice(1)).get(arguments[0]) === arguments[1]", f"the address has no {key}={value}: {self.run('return location.hash')}", key, value)

    def drag(self, css, x0, x1, y0=0.5, y1=0.5):
        x, y, w, h = self.rect(css)
        self.b.drag(x + x0 * w, y + y0 * h, x + x1 * w, y + y1 * h)

    def quiet(self):
        """No complaint in the console since the last call."""
        wrong = [e for e in self.b.console() if e[0] not in ("DEBUG", "INFO") and "willReadFrequently" not in e[1]]  # the tests read pictures
        check(not wrong, f"the console has {wrong}")

    def no_sideways(self, what):
        wide = self.run("const e = document.scrollingElement; return [e.scrollWidth, e.clientWidth, e.scrollHeight, e.clientHeight]")
        check(wide[0] <= wide[1] and wide[2] <= wide[3], f"{what} is larger than the window: {wide}")
