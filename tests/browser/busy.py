#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Keeps a headless Chromium busy with busy.html, from a server on the loopback interface.

usage: busy.py SECONDS"""
import functools
import http.server
import os
import sys
import threading
import time

import webdriver


class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def main():
    folder = os.path.dirname(os.path.realpath(__file__))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with webdriver.Browser(1000, 700) as b:
        b.go(f"http://127.0.0.1:{server.server_port}/busy.html")
        time.sleep(float(sys.argv[1]))
        if not b.run("return sink") > 0:
            sys.exit(f"FAILED: the page did nothing: {b.console()}")


main()
