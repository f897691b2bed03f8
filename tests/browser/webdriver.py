# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium, driven by the WebDriver protocol (W3C) as chromedriver speaks it."""
import base64
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the specification's name for a reference to an element
QUIET = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--no-default-browser-check"]


def pointer(x, y):
    return {"type": "pointerMove", "x": int(x), "y": int(y), "duration": 0}


class Browser:
    """with Browser(1400, 900) as b: ..."""

    def __init__(self, width, height, dark=False, trace=""):
        """trace: categories of Chromium's tracing; see traced()"""
        if not shutil.which("chromedriver") or not shutil.which("chromium"):
            print("no chromium and chromedriver here")
            sys.exit(77)
        self.size, self.dark, self.trace = (width, height), dark, trace

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, text=True)
        for line in self.driver.stdout:
            found = re.search(r"successfully on port (\d+)", line)
            if found:
                break
        self.base = f"http://127.0.0.1:{found[1]}"
        args = QUIET + [f"--user-data-dir={self.folder.name}", f"--window-size={self.size[0]},{self.size[1]}"]
        if self.dark:
            args.append("--force-dark-mode")
        options = {"goog:chromeOptions": {"binary": shutil.which("chromium"), "args": args}, "goog:loggingPrefs": {"browser": "ALL"}}
        if self.trace:
            options["goog:loggingPrefs"]["performance"] = "ALL"
            options["goog:chromeOptions"]["perfLoggingPrefs"] = {"traceCategories": self.trace}
        answer = self.call("POST", "/session", {"capabilities": {"alwaysMatch": options}})
        self.session = f"/session/{answer['sessionId']}"
        return self

    def __exit__(self, *_):
        try:
            self.call("DELETE", self.session)
        finally:
            self.driver.terminate()
            self.driver.wait()
            time.sleep(0.2)
            shutil.rmtree(self.folder.name, ignore_errors=True)
            self.folder._finalizer.detach()

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data=data, method=method, headers={"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            sys.exit(f"{method} {path}: {error.read().decode()[:500]}")

    def open(self, path):
        self.go("file://" + os.path.abspath(path))

    def go(self, url):
        self.call("POST", self.session + "/url", {"url": url})

    def console(self):
        """What the page's console got since the last call: [(level, text)...], broken rules of the CSP among them."""
        return [(e["level"], e["message"]) for e in self.call("POST", self.session + "/se/log", {"type": "browser"})]

    def run(self, script, *args):
        return self.call("POST", self.session + "/execute/sync", {"script": script, "args": list(args)})

    def async_run(self, script, *args):
        """As run(), but the answer is what the script gives to its last argument, a function."""
        return self.call("POST", self.session + "/execute/async", {"script": script, "args": list(args)})

    def traced(self):
        """Events of the trace since the last call, as Chromium's trace format has them. chromedriver takes them in when another
        page is opened, so this leaves the page."""
        self.go("about:blank")
        log = [json.loads(e["message"])["message"] for e in self.call("POST", self.session + "/se/log", {"type": "performance"})]
        return [m["params"] for m in log if m["method"] == "Tracing.dataCollected"]

    def keys(self, text, holding=""):
        """Typed one after the other, as a person does."""
        actions = [{"type": kind, "value": c} for c in text for kind in ("keyDown", "keyUp")]
        if holding:
            actions = [{"type": "keyDown", "value": holding}] + actions + [{"type": "keyUp", "value": holding}]
        self.act("key", actions)

    def act(self, kind, actions):
        self.call("POST", self.session + "/actions", {"actions": [{"type": kind, "id": kind, "actions": actions}]})

    def click(self, x, y, button=0, count=1):
        self.act("pointer", [pointer(x, y), *[{"type": "pointerDown", "button": button}, {"type": "pointerUp", "button": button}] * count])

    def hold(self, x, y):
        """Presses the button there, and leaves it so until release()."""
        self.act("pointer", [pointer(x, y), {"type": "pointerDown", "button": 0}])

    def release(self, x, y):
        self.act("pointer", [pointer(x, y), {"type": "pointerUp", "button": 0}])

    def move(self, x, y):
        self.act("pointer", [pointer(x, y)])

    def drag(self, x0, y0, x1, y1):
        between = [pointer(x0 + (x1 - x0) * k / 5, y0 + (y1 - y0) * k / 5) for k in range(1, 6)]
        self.act("pointer", [pointer(x0, y0), {"type": "pointerDown", "button": 0}, *between, {"type": "pointerUp", "button": 0}])

    def command(self, name, /, **params):
        """A command of the browser's own protocol (CDP)."""
        return self.call("POST", self.session + "/goog/cdp/execute", {"cmd": name, "params": params})

    def screen(self, width, height):
        """A window's least width is more than a phone's: what the page sees is set apart."""
        self.command("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)

    def picture(self, path):
        with open(path, "wb") as f:
            f.write(base64.b64decode(self.call("GET", self.session + "/screenshot")))
