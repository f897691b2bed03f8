#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""judge.py PROFILE.otlp.json SAID SECONDS LEAST [SLACK]: compares what a profile says of the threads of server.py with their own clocks.

Of each thread that lived nearly SECONDS and has LEAST samples or more: cpu + blocked + runnable is its life, within 2 % (and SLACK %, for
a machine that others use). Of the functions that took their own time: all kinds of time together, over all threads. Of the database's
answer: that it is told by its address. Of the lock: who waits for it, and who lets it go."""
import json
import sys

KINDS = ("samples", "off_cpu", "runnable")
profile, said, seconds, least = json.load(open(sys.argv[1])), sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
slack = 0.02 + (float(sys.argv[5]) / 100 if len(sys.argv) > 5 else 0)
d = profile["dictionary"]
strings = d["stringTable"]
names = [tuple(strings[d["functionTable"][line.get("functionIndex", 0)].get("nameStrindex", 0)] for line in l.get("lines", [])) for l in d["locationTable"]]
stacks = [[f for l in s.get("locationIndices", []) for f in names[l]] for s in d["stackTable"]]
texts = {}  # attributes of samples, by index: (key, value)
for i, a in enumerate(d["attributeTable"]):
    texts[i] = (strings[a.get("keyStrindex", 0)], a.get("value", {}).get("stringValue", a.get("value", {}).get("intValue")))


def samples():
    for resource in profile["resourceProfiles"]:
        for scope in resource["scopeProfiles"]:
            for p in scope["profiles"]:
                kind = strings[p["sampleType"].get("typeStrindex", 0)]
                for s in p.get("samples", []):
                    times = len(s["timestampsUnixNano"])
                    value = sum(int(v) for v in s["values"]) if s.get("values") else int(p.get("period", 1)) * times
                    yield kind, dict(texts[i] for i in s.get("attributeIndices", [])), stacks[s.get("stackIndex", 0)], value, times


def named(frames, name):
    return any(f == name or f.endswith("." + name) for f in frames)


# Who has the lock may have to wait for the interpreter's next, which others let go, or look again by a timer.
GIL = {"PyEval_SaveThread", "PyEval_RestoreThread", "drop_gil", "drop_gil.isra.0", "take_gil", "hrtimer_wakeup"}
failures = []


def check(is_right, text):
    if not is_right:
        failures.append(text)
        print("WRONG:", text)


def percent(part, whole):
    return 100 * part / whole if whole else 0.0


threads = {}  # tid: {kind: ns}, samples
functions = {}  # name: ns of all kinds
targets, waiting, releasing, locked, released = {}, 0, {}, 0, 0
for kind, attributes, stack, value, times in samples():
    t = threads.setdefault(int(attributes.get("thread.id", 0)), {"count": 0})
    if kind in KINDS:
        t[kind] = t.get(kind, 0) + value
        t["count"] += times
        for name in ("query", "lock_stock"):
            if named(stack, name):
                functions[name] = functions.get(name, 0) + value
    if kind == "off_cpu" and named(stack, "query") and attributes.get("syscall.name") in ("recvfrom", "read"):
        targets[attributes.get("wait.target", "-")] = targets.get(attributes.get("wait.target", "-"), 0) + value
    if kind == "off_cpu" and named(stack, "lock_stock"):
        locked += value
        waiting += value if str(attributes.get("wait.target", "")).startswith("futex ") else 0
    if kind == "waker":
        at = next((i for i, f in enumerate(stack) if f.startswith("[woken by ")), len(stack))
        if named(stack[at:], "lock_stock"):
            released += value
            who = next((n for n in ("refresh_prices", "reserve") if named(stack[:at], n)), None) or ("the interpreter's" if any(f in GIL for f in stack[:at]) else "-")
            releasing[who] = releasing.get(who, 0) + value

print(f"{'thread':>10} {'tid':>8} {'samples':>8} {'life s':>8} {'told s':>8} {'diff':>7} | {'cpu':>7} {'told':>7} | {'blocked':>8} {'told':>8} | {'runnable':>8} {'told':>8}")
judged, took = 0, {}
for line in open(said):
    words = line.split()
    if words[0] == "function":
        took[words[1]] = took.get(words[1], 0) + int(words[3])
        continue
    name, (tid, life, cpu, runnable) = words[1], map(int, words[2:])
    t = threads.get(tid, {"count": 0})
    told = sum(t.get(k, 0) for k in KINDS)
    blocked = life - cpu - runnable
    counts = life >= 0.95 * seconds * 1e9 and t["count"] >= least
    print(f"{name:>10} {tid:8} {t['count']:8} {life / 1e9:8.3f} {told / 1e9:8.3f} {percent(told, life) - 100:6.2f}% |"
          f" {cpu / 1e9:7.3f} {t.get('samples', 0) / 1e9:7.3f} | {blocked / 1e9:8.3f} {t.get('off_cpu', 0) / 1e9:8.3f} |"
          f" {runnable / 1e9:8.3f} {t.get('runnable', 0) / 1e9:8.3f}{'' if counts else '  (not judged)'}")
    if counts:
        judged += 1
        check(abs(told / life - 1) <= slack, f"{name} {tid}: cpu + blocked + runnable is {percent(told, life):.2f} % of its life")
print(f"{judged} threads judged")
check(judged >= 8, f"only {judged} threads have lived {seconds} s and have {least} samples")

for name, ns in sorted(took.items()):
    print(f"{name}: {ns / 1e9:.3f} s by its own clock, {functions.get(name, 0) / 1e9:.3f} s told ({percent(functions.get(name, 0), ns) - 100:+.2f} %)")
    check(abs(functions.get(name, 0) / ns - 1) <= slack + 0.02, f"{name}: {functions.get(name, 0) / 1e9:.3f} s told of {ns / 1e9:.3f} s")

database = {k: v for k, v in targets.items() if k.startswith("tcp 127.0.0.1:")}
print("query waits for", {k: round(v / 1e9, 3) for k, v in sorted(targets.items(), key=lambda i: -i[1])})
check(len(database) == 1 and sum(database.values()) >= 0.98 * sum(targets.values()), f"the database's address is not what query waits for: {targets}")

print(f"lock_stock: {percent(waiting, locked):.1f} % at a futex; a waker for {percent(released, locked):.1f} %, of these", {k: f"{percent(v, released):.1f} %" for k, v in releasing.items()})
check(waiting >= 0.98 * locked, "lock_stock waits for something else")
check(released >= 0.95 * locked, "who lets the lock go is not told")
check(releasing.get("-", 0) <= 0.05 * released, "the lock is let go elsewhere")
check(releasing.get("refresh_prices", 0) > 0.05 * released, "refresh_prices lets the lock go, which is not told")
sys.exit(bool(failures))
