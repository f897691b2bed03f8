#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether the shop's traces lead to the code that they were spent in.

usage: judge.py URL"""
import json
import sys
import urllib.request


def ask(path):
    with urllib.request.urlopen(f"{sys.argv[1]}/api/v1/{path}") as answer:
        return json.load(answer)


def explained(trace, span):
    """Of a span's time, the part that its samples explain: on CPUs, waiting, waiting for a CPU; by links its children count."""
    ns = {k["type"]: k["weight_ns"] for k in trace["kinds"]}
    own = sum(v["weight"] * ns[k] for k, v in span["kinds"].items() if k in ("samples", "cpu", "off_cpu", "runnable"))
    if span.get("joined") == "link":
        own += sum(s["duration_ns"] for s in trace["spans"] if s.get("parent") == span["span_id"] and s["service"] == span["service"])
    return own / max(1, span["duration_ns"])


def main():
    traces = [t for t in ask("traces?from=first&to=last&limit=5000")["traces"] if t.get("name") == "GET /cart"]
    whole = [t for t in traces if t["spans"] >= 4]
    print(f"{len(traces)} traces of the front, {len(whole)} with spans of more services; the slowest {traces[0]['duration_ns'] / 1e6:.0f} ms, the fastest {traces[-1]['duration_ns'] / 1e6:.0f} ms")
    parts, joined = {}, {}
    for t in traces[:40]:
        trace = ask(f"trace/{t['trace_id']}")
        for s in trace["spans"]:
            if s.get("start"):
                key = f"{s['service']}: {s['name']}"
                parts.setdefault(key, []).append(explained(trace, s))
                joined.setdefault(key, []).append(s.get("joined", "none"))
    for key, values in sorted(parts.items()):
        ways = {w: joined[key].count(w) for w in set(joined[key])}
        print(f"{key}: {len(values)} spans, joined {ways}, explained {100 * sorted(values)[len(values) // 2]:.1f} % (median)")
    slow = ask(f"trace/{traces[0]['trace_id']}")
    price = next((s for s in slow["spans"] if s.get("service") == "price"), None)
    if not price:
        sys.exit("FAILED: the slowest trace has no span of price")
    graph = ask(f"span/{price['span_id']}/flamegraph")
    if not any("discount" in name for name in graph["functions"]["name"]):
        sys.exit(f"FAILED: {graph['joined']}: discount() is not in the slow span's flame graph: {graph['functions']['name'][:30]}")
    back = ask("traces?from=first&to=last&focus=discount&limit=5")["traces"]
    print(f"slow span of price joined by {graph['joined']}, {graph['events']} samples; traces of discount(): {[t['duration_ns'] // 1000000 for t in back]} ms")
    logs = ask("logs?from=first&to=last&severity=error")["logs"]
    where = ask(f"log/{logs[0]['id']}/where") if logs else {"joined": "no log"}
    print(f"{len(logs)} error lines; the last leads to {where}")
    print(f"{len(ask('exemplars?from=first&to=last&limit=5000')['exemplars'])} exemplars")
    if not logs or where["joined"] == "none":
        sys.exit("FAILED: no log line leads to samples")


main()
