# SPDX-License-Identifier: Apache-2.0
"""The page in headless Chromium: what a frame costs while a flame graph of 100,000 boxes is zoomed, out of the browser's trace; the
memory of its renderer; first paint; the page's size."""
import gzip
import glob
import os
import re
import subprocess
import sys
import threading
import time

from measure import QUICK, fail, figure, note, running

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tests/browser"))
import mock_api  # noqa: E402
import webdriver  # noqa: E402

BOXES, GLIDES = 100_000, (8 if QUICK else 40)


def part(values, p):
    return sorted(values)[min(len(values) - 1, int(len(values) * p))] if values else float("nan")


def frames_of(events, mark):
    """Wall and CPU milliseconds of each task of a main thread that drew a frame of an animation after console.timeStamp(mark):
    script, style, layout, paint."""
    since = min(e["ts"] for e in events if e.get("name") == "TimeStamp" and e["args"]["data"]["message"] == mark)
    drawn = [e for e in events if e.get("name") == "FireAnimationFrame" and e["ts"] > since]
    threads = {(e["pid"], e["tid"]) for e in drawn}
    tasks = [e for e in events if e.get("ph") == "X" and (e["pid"], e["tid"]) in threads and e["name"] in ("RunTask", "ThreadControllerImpl::RunTask")]
    return [(t["dur"] / 1000, t.get("tdur", t["dur"]) / 1000) for t in tasks
            if any(e["pid"] == t["pid"] and t["ts"] <= e["ts"] < t["ts"] + t["dur"] for e in drawn)]


def renderer_mb(browser):
    """Memory of the browser's largest renderer, shared pages in proportion."""
    sizes = [float("nan")]
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                line = f.read()
            if b"--type=renderer" in line and browser.folder.name.encode() in line:
                with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as f:
                    sizes.append(sum(int(x.split()[1]) for x in f if x.startswith("Pss:")) / 1024)
        except OSError:
            pass
    return max(sizes[1:], default=sizes[0])


def zoomed(url):
    server = mock_api.serve(page=url, samples=mock_api.made_up(time.time()), boxes=BOXES)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with webdriver.Browser(1400, 900, trace="devtools.timeline,disabled-by-default-devtools.timeline,toplevel") as b:
        b.go(f"http://127.0.0.1:{server.server_address[1]}/#live=&from=first&to=last")
        while not b.run("return Boolean(window.hearth && hearth.view.pane && hearth.view.pane.tree && hearth.view.pane.chart.drawn)"):
            time.sleep(0.1)
        paint = b.run("return performance.getEntriesByName('first-contentful-paint').map((e) => e.startTime)[0]")
        boxes, drawn = b.run("return [hearth.view.pane.tree.n, hearth.view.pane.chart.drawn]")
        time.sleep(2)
        b.run("console.timeStamp('zooming')")
        for k in range(GLIDES):
            # Down into the widest boxes, level by level, and out again.
            b.run("""const p = hearth.view.pane, t = p.tree; let i = 0;
                for (let d = 0; d < arguments[0]; d++) { const c = t.children(i); i = c[arguments[0] % Math.min(3, c.length)] ?? i; } p.zoom(i);""", [0, 2, 4, 7, 1, 5, 9, 3][k % 8])
            time.sleep(0.35)
        memory = renderer_mb(b)
        frames = frames_of(b.traced(), "zooming")
    note(f"{boxes} boxes, {drawn} of them drawn at first; {len(frames)} frames")
    return frames, memory, paint


def page(host):
    with running([host.hearth, "serve", "--http-address", "127.0.0.1:0", "--grpc-address", "127.0.0.1:0", "--sink", "null"], stderr=subprocess.PIPE, text=True) as started:
        found = re.search(r"listening on (http://[^ ]+)", started[0].stderr.readline())
        if not found:
            fail("hearth serve does not listen")
        frames, memory, paint = zoomed(found[1])
    wall, cpu = [f[0] for f in frames], [f[1] for f in frames]
    size = sum(len(gzip.compress(open(f, "rb").read(), 9)) for f in glob.glob("backend/page/*")) / 1000
    figure("zooming 100,000 boxes, CPU time of a frame, p95", "ms", part(cpu, 0.95), bar=16, absolute=True)
    figure("the same by the clock, p95", "ms", part(wall, 0.95), bar=16, absolute=True)
    figure("memory of the renderer with them", "MB", memory, bar=200, absolute=True)
    figure("first paint", "ms", paint, bar=300, absolute=True)
    figure("all files of the page, packed", "kB", size, bar=150, absolute=True)
