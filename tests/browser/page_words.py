# SPDX-License-Identifier: Apache-2.0
"""Tests of words in the page's question, which page.py runs."""
from page_driver import BACKSPACE, ENTER, check


def ask(p, text):
    p.run("const i = document.querySelector('#selector'); i.focus(); i.select()")
    p.b.keys(BACKSPACE + text + ENTER)


def test_word(p):
    """A bare word is a process, a container or a function; the page says which."""
    p.graph("from=first&to=last")  # all of it, however long the tests before took
    for typed, q, told, part in (("SEArch", "SEArch", "SEArch: exe search", 30), ("c0f", "c0f", "c0f: container c0ffee", 60), ("VFS_", "VFS_", "VFS_: functions with it in their name", 15),
                                 ('exe="shop" vfs', '{exe="shop"} vfs', "vfs: functions with it in their name", 10), ('"shop-w"', "shop-w", "shop-w: comm shop-work", 30)):
        ask(p, typed)
        p.state("q", q)
        p.until("return document.querySelector('.chips').innerText.includes(arguments[0])", f"{typed}: the chips are {p.text('.chips')}", told)
        p.until("return Math.abs(100 * hearth.view.pane.answer.total / 72000 - arguments[0]) < 1", f"{typed}: not {part} %", part)
        check(not p.run("return document.querySelector('#selector').classList.contains('wrong')"), f"{typed} is refused")
    ask(p, "two words")
    check(p.run("return document.querySelector('#selector').classList.contains('wrong')"), "two words without quotes are taken")
    check("in quotes where it has spaces" in p.text(".chips"), f"nothing says why two words are not taken: {p.text('.chips')}")
    p.b.keys(BACKSPACE)
    check(p.text(".chips").startswith("shop-w:"), f"the sentence stays while typing goes on: {p.text('.chips')}")
    p.run("document.activeElement.blur()")
    for view in ("top", "heat", "who", "sandwich&fn=main", "diff"):
        p.open(f"view={view}&q=search&from=first&to=last")
        p.until("return /search: exe search/.test(document.querySelector('.chips').innerText)", f"{view} does not say what the word is")
    p.open('q={exe="shop"} vfs')
    p.until("return /vfs: functions/.test(document.querySelector('.chips').innerText)", "a link with a word shows none")
    p.run("[...document.querySelectorAll('.chip')].find((c) => c.innerText.startsWith('vfs')).querySelector('button').click()")
    p.state("q", '{exe="shop"}')


def test_nearest(p):
    """An empty answer offers what there is."""
    p.open('q={exe="shpo", cpu!=""} main')
    p.until("return /Did you mean/.test(document.querySelector('#main').innerText)", "nothing is offered")
    p.button("exe shop")
    p.state("q", '{cpu!="", exe="shop"} main')
    p.until("return hearth.view.pane.tree && hearth.view.pane.answer.total > 0", "what was offered has nothing")
    ask(p, "serch")
    p.until("return /Did you mean/.test(document.querySelector('#main').innerText)", "nothing is offered for a word")
    p.button("service search")
    p.state("q", '{service="search"}')
    p.open('view=diff&from=first&to=last&q1={exe="shop"}&q2={exe="serach"}')
    p.until("return /B has no samples/.test(document.querySelector('#main').innerText)", "an empty B is not told")
    p.button("exe search")
    p.state("q2", '{exe="search"}')
    p.until("return hearth.view.data.total2 > 0", "what was offered for B has nothing")
