#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""judge.py PROFILE.otlp.json TRUTH MESSAGES: every sample of the threads of chains.c, taken by programs that interrupt each other, has
a stack of its own thread and kind, and each call that was probed was taken or is said not to be."""
import collections
import json
import re
import sys

profile, messages = json.load(open(sys.argv[1])), open(sys.argv[3]).read()
d = profile["dictionary"]
strings = d["stringTable"]
OWN = re.compile(r"(run|deep|spin|hot|wait)_(\d+)$")

truth, calls = {}, 0  # tid: (pid, number)
for line in open(sys.argv[2]):
    tid, pid, number, count = map(int, line.split())
    truth[tid] = (pid, number)
    calls += count


def attributes(indices):
    out = {}
    for i in indices:
        a = d["attributeTable"][i]
        value = a.get("value", {})
        out[strings[a.get("keyStrindex", 0)]] = next(iter(value.values()), None)
    return out


def frames(stack):
    """Functions of user space, innermost first."""
    out = []
    for l in d["stackTable"][stack].get("locationIndices", []):
        location = d["locationTable"][l]
        if attributes(location.get("attributeIndices", [])).get("profile.frame.type") == "kernel":
            continue
        out += [strings[d["functionTable"][line["functionIndex"]].get("nameStrindex", 0)] for line in location.get("lines", [])] or ["?"]
    return out


stacks = [frames(i) for i in range(len(d["stackTable"]))]
wrong, counted = [], collections.Counter()


def verdict(kind, a, pid, stack, times):
    """What is wrong, or None; counts what is seen."""
    tid = int(a.get("thread.id", 0))
    own = [m for m in map(OWN.match, stack) if m]
    if tid not in truth:
        return None if not own else f"functions {stack} in thread {tid}, which is none of ours"
    truth_pid, number = truth[tid]
    name = a.get("thread.name", "")
    whole = "hearth.stack.truncated" not in a
    counted[kind, "whole" if whole else "cut"] += times
    if pid != truth_pid:
        return f"thread {tid} of process {truth_pid} is told of {pid}"
    if name.startswith("chain ") and name != f"chain {number}":
        return f"thread {tid} is {name}, not chain {number}"
    if any(int(m.group(2)) != number for m in own):
        return f"thread {number} has the stack {stack}"
    inner = [m.group(1) for m in own]
    deep = inner.count("deep")
    if whole and own and (deep and not (inner[-1] == "run" and inner[-1 - deep : -1] == ["deep"] * deep) or inner[-1] != "run"):
        return f"a stack that none has: {stack}"
    if whole and inner and inner[0] in ("spin", "hot", "wait") and deep != number + 3:
        return f"{deep} times deep_{number}: {stack}"
    if deep > number + 3:
        return f"{deep} times deep_{number}: {stack}"
    if kind == "events":
        if stack[0] != f"hot_{number}":
            return f"an event in {stack}"
        if not a.get("probe.name", "").endswith(f":hot_{number}"):
            return f"an event of {a.get('probe.name')} in {stack}"
        if int(a.get("probe.arg0", -1)) != tid:
            return f"an event with the argument {a.get('probe.arg0')} in thread {tid}"
    if kind == "off_cpu" and a.get("thread.state") == "sleeping" and a.get("syscall.name") == "clock_nanosleep" and own:
        counted["sleeps"] += times
        if inner[0] != "wait":
            return f"a sleep in {stack}"
    return None


for resource in profile["resourceProfiles"]:
    pid = int(attributes_of.get("process.pid", 0)) if (attributes_of := {a["key"]: next(iter(a["value"].values()), None) for a in resource["resource"].get("attributes", [])}) else 0
    for scope in resource["scopeProfiles"]:
        for p in scope["profiles"]:
            kind = strings[p["sampleType"].get("typeStrindex", 0)]
            for s in p.get("samples", []):
                why = verdict(kind, attributes(s.get("attributeIndices", [])), pid, stacks[s.get("stackIndex", 0)], len(s["timestampsUnixNano"]))
                if why:
                    wrong.append(f"{kind}: {why}")

for key, count in sorted(counted.items(), key=str):
    print(key, count)
for why in wrong[:20]:
    print("WRONG:", why)
if len(wrong) > 20:
    print(f"and {len(wrong) - 20} more")
failed = bool(wrong)
for kind in ("samples", "off_cpu", "events"):
    if counted[kind, "whole"] < 100 or 20 * counted[kind, "whole"] < counted[kind, "cut"]: # caches are cold: many are cut
        print(f"too few whole stacks of {kind}")
        failed = True
taken = re.search(r"events: (\d+) samples taken", messages)
missed = re.search(r"(\d+) not sampled", messages)
print(f"{calls} calls, {taken.group(1)} taken, {missed.group(1)} not sampled")
if not calls - int(missed.group(1)) <= int(taken.group(1)) <= calls:
    print("calls are not accounted for")
    failed = True
sys.exit(failed)
