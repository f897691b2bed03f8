#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A file with symbols is dropped on the page's executables, and the function has its name.

usage: page_drop.py URL TOKEN FILE FUNCTION    the hearth at URL, which wants TOKEN, has samples of FILE's FUNCTION without names"""
import os
import sys

import webdriver
from page_driver import Page, check


def main():
    url, token, file, function = sys.argv[1:5]
    name = os.path.basename(file)
    status = "const row = [...document.querySelectorAll('.executables tbody tr')].find((r) => r.querySelector('b').innerText === arguments[0]); return row ? row.innerText : ''"
    with webdriver.Browser(1200, 900) as b:
        p = Page(b, int(url.rsplit(":", 1)[1]))
        b.go(url + "/#view=executables&from=first&to=now")
        p.log_in(token)
        p.until(status, "not among the executables", name)
        check("unnamed" in p.run(status, name), f"{name} has names already: {p.run(status, name)}")
        b.console()  # the form's 401
        p.run("document.querySelector('.drop').scrollIntoView()")
        x, y, w, h = p.rect(".drop")
        data = {"items": [], "files": [file], "dragOperationsMask": 1}
        for kind in ("dragEnter", "dragOver", "drop"):
            b.command("Input.dispatchDragEvent", type=kind, x=x + w / 2, y=y + h / 2, data=data)
        p.until("return / 1 addresses here/.test(document.querySelector('.drop').innerText)", f"not taken: {p.text('.drop')}")
        check(function in p.text(".drop .named"), f"what was named is not told: {p.text('.drop .named')}")
        p.until("return arguments[0] && !/unnamed/.test([...document.querySelectorAll('.executables tbody tr')].find((r) => r.querySelector('b').innerText === arguments[0]).innerText)", "still unnamed", name)
        p.go("view=top&from=first&to=now")
        p.until("return document.querySelector('#main').innerText.includes(arguments[0])", f"no {function}", function)
        p.quiet()


try:
    main()
except AssertionError as error:
    sys.exit(f"FAILED: {error}")
