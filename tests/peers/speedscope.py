#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Loads files into speedscope's own page, in a browser, and looks for a function in its table of functions.

usage: speedscope.py RELEASE FUNCTION PICTURES FILE...    RELEASE is speedscope's dist/release; a picture a file goes into PICTURES"""
import functools
import http.server
import os
import sys
import threading
import time
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../browser"))
sys.dont_write_bytecode = True
import webdriver


class Handler(http.server.SimpleHTTPRequestHandler):
    def translate_path(self, path):
        name = urllib.parse.unquote(urllib.parse.urlsplit(path).path)
        return self.files.get(name) or super().translate_path(path)

    def log_message(self, *_):
        pass


def look(b, base, name, function, picture):
    b.call("POST", b.session + "/url", {"url": "about:blank"})
    b.call("POST", b.session + "/url", {"url": f"{base}/index.html#profileURL={urllib.parse.quote(f'{base}/{name}', safe='')}&title={name}"})
    seen = ""
    for _ in range(100):
        time.sleep(0.1)
        seen = b.run("return document.body.innerText")
        if name in seen and "Sandwich" in seen:
            break
    else:
        sys.exit(f"FAILED: speedscope does not load {name}: {seen[:300]!r}")
    b.keys("3")
    time.sleep(0.3)
    seen = b.run("return document.body.innerText")
    b.picture(picture)
    if function not in seen:
        sys.exit(f"FAILED: {name}: no {function} in speedscope's table: {seen[:500]!r}")


def main():
    release, function, pictures, *files = sys.argv[1:]
    Handler.files = {"/" + os.path.basename(f): os.path.abspath(f) for f in files}
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=release)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with webdriver.Browser(1200, 800) as b:
            for f in files:
                name = os.path.basename(f)
                look(b, f"http://127.0.0.1:{server.server_port}", name, function, f"{pictures}/{name}.png")
                print(f"{name}: loaded")
        server.shutdown()


main()
