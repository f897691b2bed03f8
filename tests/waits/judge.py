#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""judge.py PROFILE.otlp.json TRUTH MEAN_MS MESSAGES: compares what a profile says of the threads of waits.c with what these say. Waits that
were lost are named in the messages, with their time, which may be missing anywhere: one of a long wait is more than a bar has room for."""
import json
import math
import re
import sys

profile, truth, mean_ns = json.load(open(sys.argv[1])), sys.argv[2], float(sys.argv[3]) * 1e6
d = profile["dictionary"]
strings = d["stringTable"]


def attributes(indices):
    out = {}
    for i in indices:
        a = d["attributeTable"][i]
        value = a["value"]
        out[strings[a.get("keyStrindex", 0)]] = value.get("stringValue", value.get("intValue"))
    return out


def functions(sample):
    for l in d["stackTable"][sample.get("stackIndex", 0)].get("locationIndices", []):
        for line in d["locationTable"][l].get("lines", []):
            f = d["functionTable"][line.get("functionIndex", 0)]
            yield strings[f.get("nameStrindex", 0)]


sums, where, states = {}, {}, {}
for resource in profile["resourceProfiles"]:
    for scope in resource["scopeProfiles"]:
        for p in scope["profiles"]:
            kind = strings[p["sampleType"].get("typeStrindex", 0)]
            for s in p.get("samples", []):
                a = attributes(s.get("attributeIndices", []))
                tid = int(a.get("thread.id", 0))
                values = [int(v) for v in s.get("values", [])] or [int(p.get("period", 1))] * len(s["timestampsUnixNano"])
                value = sum(values)
                sums[tid, kind] = sums.get((tid, kind), 0) + value
                waits = [f for f in functions(s) if f.startswith("wait_")] or ["-"]  # none: not walked to its end, as those of a young program
                where.setdefault((tid, kind), {})
                where[tid, kind][waits[0]] = where[tid, kind].get(waits[0], 0) + value
                key = (tid, kind, a.get("thread.state"), a.get("syscall.name"))
                states[key] = states.get(key, 0) + value

taken_s, lost_s = (sum(float(m[i]) for m in re.findall(r"(?:off_cpu|runnable): .*; ([\d.]+) s = [\d.]+ s \+ ([\d.]+) s", open(sys.argv[4]).read())) for i in (0, 1))
by_name = {}  # nanoseconds off the CPUs by their own clocks, and told
failed, all_wall, all_told, all_blocked, all_told_blocked = False, 0, 0, 0, 0
print(f"{'thread':>8} {'wall s':>8} {'told s':>8} {'diff':>7} | {'blocked':>8} {'told':>8} | {'runnable':>8} {'told':>8} | {'cpu':>8} {'told':>8}")
for line in open(truth):
    name, tid, wall, cpu, runnable = line.split()
    tid, wall, cpu, runnable = int(tid), int(wall), int(cpu), int(runnable)
    blocked = wall - cpu - runnable
    told = {k: sums.get((tid, k), 0) for k in ("off_cpu", "runnable", "samples")}
    total = sum(told.values())
    all_wall, all_told = all_wall + wall, all_told + total
    away, told_away = by_name.get(name, (0, 0))
    by_name[name] = (away + wall - cpu, told_away + told["off_cpu"] + told["runnable"])
    print(f"{name:>8} {wall / 1e9:8.3f} {total / 1e9:8.3f} {100 * (total / wall - 1):6.2f}% | {blocked / 1e9:8.3f} {told['off_cpu'] / 1e9:8.3f} |"
          f" {runnable / 1e9:8.3f} {told['runnable'] / 1e9:8.3f} | {cpu / 1e9:8.3f} {told['samples'] / 1e9:8.3f}")
    # Waits shorter than the mean have a deviation of sqrt(sum * mean) at most; longer ones have none. The kernel's schedstat is wrong now
    # and then (it does not count what a thread waits that was preempted on its way to sleep), so only the sum is held against each thread.
    is_long = name in ("doze", "forever", "lock", "poll")
    room = 0.01 * wall + 2e7 + 5 * math.sqrt(max(runnable + (0 if is_long else blocked), mean_ns) * mean_ns)
    room += lost_s * 1e9
    more = told["off_cpu"] + told["runnable"] - blocked - runnable
    if abs(more) > room:
        print(f"{name}: {more / 1e9:.3f} s more told than it was off its CPU, where {room / 1e9:.3f} s may be")
        failed = True
    all_blocked, all_told_blocked = all_blocked + blocked, all_told_blocked + told["off_cpu"]
    inside = where.get((tid, "off_cpu"), {})
    wrong = sum(v for f, v in inside.items() if f not in ("wait_" + name, "-"))
    if wrong > 3 * mean_ns or inside.get("wait_" + name, 0) < 0.5 * sum(inside.values()):
        print(f"{name}: waits in {inside}")
        failed = True
for name, (away, told) in by_name.items():
    print(f"known: {'--off-cpu ' + name + ', off its CPU':44} {away / 1e9:14.3f} {told / 1e9:14.3f} {'s':6} {100 * (told / away - 1):+8.2f} %")
print(f"{'all':>8} {all_wall / 1e9:8.3f} {all_told / 1e9:8.3f} {100 * (all_told / all_wall - 1):6.2f}%")
print(f"{lost_s:.3f} s lost of {taken_s:.3f} s taken")
if lost_s > 0.03 * taken_s:
    print("too much is lost")
    failed = True
if abs(all_told / all_wall - 1) > 0.05:
    print("all threads together: wall time is not cpu + blocked + runnable")
    failed = True
if abs(all_told_blocked - all_blocked) > 0.1 * all_wall:
    print(f"{all_told_blocked / 1e9:.3f} s told of {all_blocked / 1e9:.3f} s blocked")
    failed = True
calls = {s[3] for s in states if s[1] == "off_cpu"}
for call in ("futex", "read", "poll", "clock_nanosleep"):
    if call not in calls:
        print(f"no wait in {call}, only in {sorted(c or '-' for c in calls)}")
        failed = True
if not any(s[1] == "runnable" and s[2] in ("woken", "preempted") for s in states):
    print("nobody waits for a CPU")
    failed = True
sys.exit(failed)
