#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints a .speedscope.json, .firefox.json.gz or .perf.txt file as folded stacks, reading them as their own tools do.

usage: text_stacks.py FILE PERIOD_NS

One line a thread's name and stack: NAME;root;...;leaf COUNT."""
import collections
import gzip
import json
import re
import sys


def speedscope(path):
    with open(path, encoding="utf-8") as f:
        data = json.load(f)
    assert data["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    frames = [f["name"] for f in data["shared"]["frames"]]
    for p in data["profiles"]:
        assert p["type"] == "sampled" and p["unit"] == "nanoseconds"
        assert len(p["samples"]) == len(p["weights"]) and sum(p["weights"]) == p["endValue"] - p["startValue"]
        for stack, weight in zip(p["samples"], p["weights"]):
            yield re.sub(r" \(pid \d+(, tid \d+)?\)$", "", p["name"]), [frames[i] for i in stack], weight


def perf_script(path):
    with open(path, encoding="utf-8") as f:
        text = f.read()
    last = ""
    for event in text.split("\n\n"):
        head, *lines = event.strip("\n").split("\n")
        if not head:
            continue
        found = re.fullmatch(r"(\S.*?) +(-?\d+)/(-?\d+) +\[(\d{3})\] (\d+\.\d{9}): +(\d+) cpu-clock:", head)
        assert found, head
        assert found[5] >= last, "out of order"
        last = found[5]
        stack = []
        for line in lines:
            frame = re.fullmatch(r"\t *([0-9a-f]+) (.*) \(([^()]*)\)", line)
            assert frame, line
            unknown = "[unknown]" if frame[3] == "[unknown]" else f"{frame[3]} (no symbols)"
            stack.append(unknown if frame[2] == "[unknown]" else frame[2])
        yield found[1], stack[::-1], int(found[6])


def firefox(path):
    with gzip.open(path) as f:
        data = json.load(f)
    shared, text = data["shared"], data["shared"]["stringArray"]
    stacks, frames, funcs = shared["stackTable"], shared["frameTable"], shared["funcTable"]
    for name, table in [*shared.items(), *((f"thread {i}", t["samples"]) for i, t in enumerate(data["threads"]))]:
        if isinstance(table, dict):
            assert all(len(c) == table["length"] for c in table.values() if isinstance(c, list)), name
    assert all(p is None or p < i for i, p in enumerate(stacks["prefix"])), "a parent after its child"
    assert all(0 <= c < len(data["meta"]["categories"]) for c in frames["category"])
    assert all(r == -1 or shared["resourceTable"]["lib"][r] < len(data["libs"]) for r in funcs["resource"])
    for thread in data["threads"]:
        samples = thread["samples"]
        assert samples["time"] == sorted(samples["time"]) and min(samples["time"]) >= 0
        for stack, weight in zip(samples["stack"], samples["weight"]):
            names = []
            while stack is not None:
                names.append(text[funcs["name"][frames["func"][stacks["frame"][stack]]]])
                stack = stacks["prefix"][stack]
            yield thread["name"], names[::-1], weight


def main():
    path, period = sys.argv[1], int(sys.argv[2])
    stacks = collections.Counter()
    reader = firefox if path.endswith(".gz") else speedscope if path.endswith(".json") else perf_script
    for thread, names, weight in reader(path):
        weight *= period if reader is firefox else 1
        assert weight % period == 0, weight
        stacks[";".join(n.replace(";", ":") for n in (thread, *names))] += weight // period
    for stack, count in stacks.items():
        print(stack, count)


main()
