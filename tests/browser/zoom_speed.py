#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a frame costs while a flame graph of many boxes is zoomed, out of Chromium's trace; the page's memory; its first paint.

usage: zoom_speed.py URL [BOXES]    URL: a hearth, whose page this is; BOXES: 100000

A frame's cost is all that the page's main thread does in the task in which it is drawn: script, style, layout, paint."""
import os
import sys
import threading
import time

import mock_api
import webdriver

GLIDES = 24


def part(values, p):
    return sorted(values)[min(len(values) - 1, int(len(values) * p))] if values else float("nan")


def frames_of(events, mark):
    """Wall and CPU milliseconds of each task of a main thread that drew a frame of an animation after console.timeStamp(mark)."""
    since = min(e["ts"] for e in events if e.get("name") == "TimeStamp" and e["args"]["data"]["message"] == mark)
    drawn = [e for e in events if e.get("name") == "FireAnimationFrame" and e["ts"] > since]
    threads = {(e["pid"], e["tid"]) for e in drawn}
    tasks = [e for e in events if e.get("ph") == "X" and (e["pid"], e["tid"]) in threads and e["name"] in ("RunTask", "ThreadControllerImpl::RunTask")]
    out = []
    for task in tasks:
        if any(e["pid"] == task["pid"] and task["ts"] <= e["ts"] < task["ts"] + task["dur"] for e in drawn):
            out.append((task["dur"] / 1000, task.get("tdur", task["dur"]) / 1000))
    return out


def memory_mb(browser):
    """Resident memory of the browser's largest renderer, and JavaScript's heap in it."""
    sizes = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                line = f.read()
            if b"--type=renderer" in line and browser.folder.name.encode() in line:
                with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as f:
                    sizes.append(sum(int(x.split()[1]) for x in f if x.startswith("Pss:")) / 1024)
        except OSError:
            pass
    heap = {m["name"]: m["value"] for m in browser.command("Performance.getMetrics")["metrics"]}["JSHeapUsedSize"] / 1e6
    return max(sizes, default=float("nan")), heap


def main():
    url, boxes = sys.argv[1].rstrip("/"), int(sys.argv[2]) if len(sys.argv) > 2 else 100000
    server = mock_api.serve(page=url, samples=mock_api.made_up(time.time()), boxes=boxes)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with webdriver.Browser(1400, 900, trace="devtools.timeline,disabled-by-default-devtools.timeline,toplevel") as b:
        b.go(f"http://127.0.0.1:{server.server_address[1]}/#live=&from=first&to=last")
        while not b.run("return Boolean(window.hearth && hearth.view.pane && hearth.view.pane.tree && hearth.view.pane.chart.drawn)"):
            time.sleep(0.1)
        paint = b.run("return performance.getEntriesByName('first-contentful-paint').map((e) => e.startTime)[0]")
        shown = b.run("return [hearth.view.pane.tree.n, hearth.view.pane.chart.drawn, hearth.view.pane.tree.deepest]")
        b.command("Performance.enable")
        time.sleep(2)
        b.run("console.timeStamp('zooming'); return 1")
        for k in range(GLIDES):
            # Down into the widest boxes, level by level, and out again.
            b.run("""const p = hearth.view.pane, t = p.tree; let i = 0;
                for (let d = 0; d < arguments[0]; d++) { const c = t.children(i); i = c[arguments[0] % Math.min(3, c.length)] ?? i; } p.zoom(i);""", [0, 2, 4, 7, 1, 5, 9, 3][k % 8])
            time.sleep(0.35)
        resident, heap = memory_mb(b)
        frames = frames_of(b.traced(), "zooming")
    wall, cpu = [f[0] for f in frames], [f[1] for f in frames]
    print(f"{shown[0]} boxes, {shown[2]} deep, {shown[1]} of them drawn at first; first paint {paint:.0f} ms")
    print(f"{len(frames)} frames: CPU p50 {part(cpu, 0.5):.1f} ms, p95 {part(cpu, 0.95):.1f} ms; wall p50 {part(wall, 0.5):.1f} ms, p95 {part(wall, 0.95):.1f} ms, worst {max(wall, default=0):.1f} ms")
    print(f"memory of the renderer {resident:.0f} MB, of these JavaScript's {heap:.0f} MB")


if __name__ == "__main__":
    main()
