#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Where a token is asked for: the form, the cookie, the session's end.

usage: page_login.py URL TOKEN PICTURES    URL: a hearth that wants TOKEN and no other

A link from another site's page is followed too: this server is the other site."""
import http.server
import sys
import threading
import time

import webdriver
from page_driver import Page, check

FORM = "return Boolean(document.querySelector('#token'))"
IS_IN = "return Boolean(window.hearth && hearth.status && hearth.timeline.data)"
# status of a request of the page's own
STATUS = "const [path, method, done] = arguments; fetch(path, { method }).then((a) => done(a.status))"


class Elsewhere(http.server.BaseHTTPRequestHandler):
    """A page of another site with a link to us."""

    def do_GET(self):
        body = f"<!doctype html><meta charset=utf-8><link rel=icon href='data:,'><a href='{self.server.link}'>link</a>".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def main():
    url, token, folder = sys.argv[1], sys.argv[2], sys.argv[3]
    elsewhere = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere)
    elsewhere.link = url + "/#view=truth"
    threading.Thread(target=elsewhere.serve_forever, daemon=True).start()
    with webdriver.Browser(1200, 800) as b:
        p = Page(b, int(url.rsplit(":", 1)[1]))
        b.go(url + "/#view=top&from=first&to=last")
        p.until(FORM, "the page is shown without a token")
        b.picture(f"{folder}/login.png")
        wrong = [e for e in b.console() if "401" not in e[1]]
        check(not wrong, f"the form's console has {wrong}")
        p.log_in("not-" + token)
        p.until("return /no token of this hearth/.test(document.querySelector('#said').innerText)", "a wrong token is not told")
        p.log_in(token)
        p.until(IS_IN, f"not let in: {p.text('body')}")
        p.state("view", "top")
        b.console()  # the 401s
        check("hearth" not in b.run("return document.cookie"), "scripts see the cookie")
        cookie = [c for c in b.command("Network.getCookies", urls=[url])["cookies"] if c["name"].startswith("hearth-")]
        check(len(cookie) == 1 and cookie[0]["httpOnly"] and cookie[0]["sameSite"] == "Strict" and not cookie[0]["session"], f"cookies: {cookie}")
        check(0 < cookie[0]["expires"] - time.time() <= 7 * 24 * 3600 + 5, f"it lives until {cookie[0]['expires']}")
        check(b.async_run(STATUS, "/api/v1/status", "GET") == 200, "the API does not take the cookie")
        p.quiet()
        # From elsewhere: a link leads there all the same, what scripts ask does not.
        b.go(f"http://localhost:{elsewhere.server_port}/")
        check(b.async_run("""const [url, done] = arguments; fetch(url, { credentials: "include", mode: "no-cors" }).then(() => 0, () => 0).then(() =>
            fetch(url, { credentials: "include" })).then((a) => done("answered " + a.status), () => done("refused"))""", url + "/api/v1/status") == "refused", "a page of elsewhere may ask")
        b.console()
        p.click("a")
        p.until(IS_IN, f"a link from elsewhere ends at: {p.text('body')}")
        p.state("view", "truth")
        b.console()  # the form's 401 on the way
        # Over.
        p.button("Log out", "#tools")
        p.until(FORM, "not logged out")
        b.go(url + "/")
        p.until(FORM, "logged in again after logging out")
        b.command("Network.setCookie", name=cookie[0]["name"], value=cookie[0]["value"], url=url)
        b.go(url + "/")
        p.until(FORM, "a session that was ended lives on")
        # A session that ends while the page is open leads to the form, and from it back to the same view.
        p.log_in(token)
        p.until(IS_IN, "not let in again")
        p.go("view=log")
        b.command("Network.clearBrowserCookies")
        p.until(FORM, "the page does not ask again when its session is over")
        p.log_in(token)
        p.until(IS_IN, "not let in a third time")
        p.state("view", "log")


try:
    main()
except AssertionError as error:
    sys.exit(f"FAILED: {error}")
