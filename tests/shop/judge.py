#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether the shop's traces lead to the code that they were spent in, and how much of their time is explained.

usage: judge.py URL

Samples come each PERIOD_MS, so a span has up to one too many or too few: half a period is the largest deviation of one, and half a
period times the root of their number that of the sum of many. Twice that is allowed beside the bars. Where it is more than ALLOWED,
nothing can be said."""
import json
import sys
import urllib.request

PERIOD_MS = 1000 / 997
LEAST, MOST, ALLOWED = 98, 102, 2  # percent of a span's time
LEAST_COLLECTED = 90  # where Go's collector sets goroutines aside


def ask(path):
    with urllib.request.urlopen(f"{sys.argv[1]}/api/v1/{path}") as answer:
        return json.load(answer)


def explained(trace, span):
    """The nanoseconds of a span that its samples explain: on CPUs, waiting, waiting for a CPU; by links its children count."""
    ns = {k["type"]: k["weight_ns"] for k in trace["kinds"]}
    own = sum(v["weight"] * ns[k] for k, v in span["kinds"].items() if k in ("samples", "cpu", "off_cpu", "runnable"))
    if span.get("joined") == "link":
        own += sum(s["duration_ns"] for s in trace["spans"] if s.get("parent") == span["span_id"] and s["service"] == span["service"])
    return own


def is_explained(key, spans):
    """@spans: (explained ns, duration ns, joined) of each."""
    took = sum(s[1] for s in spans)
    percent, noise = 100 * sum(s[0] for s in spans) / max(1, took), 100e6 * PERIOD_MS * len(spans) ** 0.5 / max(1, took)
    ways = {way: sum(s[2] == way for s in spans) for way in {s[2] for s in spans}}
    least = LEAST_COLLECTED if key.startswith("price-collected") else LEAST
    judged = noise <= ALLOWED
    good = not judged or least - noise <= percent <= MOST + noise
    print(f"{key}: {len(spans)} spans of {took / 1e6 / len(spans):.1f} ms, joined {ways}, explained {percent:.1f} % (+-{noise:.1f}): "
          f"{'bar ' + str(least) + ' %: ' + ('ok' if good else 'FAILED') if judged else 'too few to say'}")
    return good, judged


def main():
    traces = [t for t in ask("traces?from=first&to=last&limit=5000")["traces"] if t.get("name") == "GET /cart"]
    whole = [t for t in traces if t["spans"] >= 4]
    print(f"{len(traces)} traces of the front, {len(whole)} with spans of more services; the slowest {traces[0]['duration_ns'] / 1e6:.0f} ms, the fastest {traces[-1]['duration_ns'] / 1e6:.0f} ms")
    parts = {}
    for t in traces[:200]:
        trace = ask(f"trace/{t['trace_id']}")
        for s in trace["spans"]:
            if s.get("start"):
                parts.setdefault(f"{s['service']}: {s['name']}", []).append((explained(trace, s), s["duration_ns"], s.get("joined", "none")))
    results = [(key, *is_explained(key, spans)) for key, spans in sorted(parts.items())]
    bad = [key for key, good, _ in results if not good]
    said = {key.split(":")[0] for key, _, judged in results if judged}
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
    if bad:
        sys.exit(f"FAILED: samples do not explain the time of {', '.join(bad)}")
    if not {"front", "price"} <= said:
        sys.exit(f"FAILED: there is too little of front or price to say anything of; judged were {sorted(said)}")


main()
