#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""wakers.py PROFILE.otlp.json TRUTH: compares what a profile says of who woke the threads of wakers.c, and of what they waited for, with what these say."""
import json
import sys

profile = json.load(open(sys.argv[1]))
d = profile["dictionary"]
strings = d["stringTable"]


def attributes(indices):
    out = {}
    for i in indices:
        a = d["attributeTable"][i]
        out[strings[a.get("keyStrindex", 0)]] = a["value"].get("stringValue", a["value"].get("intValue"))
    return out


def functions(sample):
    """Those of a stack, innermost first."""
    out = []
    for l in d["stackTable"][sample.get("stackIndex", 0)].get("locationIndices", []):
        lines = d["locationTable"][l].get("lines", [])
        out += [strings[d["functionTable"][line.get("functionIndex", 0)].get("nameStrindex", 0)] for line in lines] or ["?"]
    return out


samples = {}  # by (tid, kind): (value, attributes, functions)
for resource in profile["resourceProfiles"]:
    for scope in resource["scopeProfiles"]:
        for p in scope["profiles"]:
            kind = strings[p["sampleType"].get("typeStrindex", 0)]
            for s in p.get("samples", []):
                a = attributes(s.get("attributeIndices", []))
                value = sum(int(v) for v in s.get("values", [])) or len(s["timestampsUnixNano"])
                samples.setdefault((int(a.get("thread.id", 0)), kind), []).append((value, a, functions(s)))

failed = False
print(f"{'thread':>10} {'waited s':>9} {'off_cpu':>9} {'target':>7} {'waker':>9} {'thread':>7} {'function':>8}")
for line in open(sys.argv[2]):
    name, tid, waited, waker, function, target = line.split(maxsplit=5)
    tid, waited, target = int(tid), int(waited), target.strip()
    blocked, woken = samples.get((tid, "off_cpu"), []), samples.get((tid, "waker"), [])
    if name == "take":  # it also sleeps on its own now and then
        blocked, woken = ([s for s in l if s[1].get("syscall.name") == "futex"] for l in (blocked, woken))
    told, told_woken = sum(s[0] for s in blocked), sum(s[0] for s in woken)
    on_target = sum(s[0] for s in blocked if s[1].get("wait.target", "-") == target)
    right_thread = right_function = 0
    for value, a, stack in woken:
        at = next((i for i, f in enumerate(stack) if f.startswith("[woken by ")), len(stack))
        if waker == "-":
            right_thread += value if stack[at : at + 1] == ["[woken by an interrupt]"] else 0
            right_function += value if "hrtimer_wakeup" in stack[:at] else 0
        else:
            right_thread += value if stack[at : at + 1] == [f"[woken by {waker}]"] and a.get("waker.thread.name") == waker else 0
            right_function += value if function in stack[:at] and name in stack[at:] else 0
    print(f"{name:>10} {waited / 1e9:9.3f} {told / 1e9:9.3f} {100 * on_target / max(told, 1):6.1f}% {told_woken / 1e9:9.3f}"
          f" {100 * right_thread / max(told_woken, 1):6.1f}% {100 * right_function / max(told_woken, 1):7.1f}%")
    print(f"known: {'--wakers ' + name + ', waits for another':44} {waited / 1e9:14.3f} {told / 1e9:14.3f} {'s':6} {100 * (told / waited - 1):+8.2f} %")
    # What it waited by its own clock has the time for a CPU in it, and its own; a loaded machine has much of that.
    if not 0.5 * waited < told < 1.05 * waited + 5e7:
        print(f"{name}: {told / 1e9:.3f} s told of {waited / 1e9:.3f} s")
        failed = True
    for what, part, whole in (("what it waited for", on_target, told), ("the waker's thread", right_thread, told_woken),
                              ("the waker's function", right_function, told_woken), ("a waker", told_woken, told)):
        if part < 0.9 * whole:
            print(f"{name}: {what} is told of {part / 1e9:.3f} s of {whole / 1e9:.3f} s")
            failed = True
sys.exit(failed)
