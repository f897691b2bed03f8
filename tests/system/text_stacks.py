#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints a .speedscope.json or .perf.txt file as folded stacks, reading them as their own tools do.

usage: text_stacks.py FILE PERIOD_NS

One line a thread's name and stack: NAME;root;...;leaf COUNT."""
import collections
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
    last = 0.0
    for event in text.split("\n\n"):
        head, *lines = event.strip("\n").split("\n")
        if not head:
            continue
        found = re.fullmatch(r"(\S.*?) +(-?\d+)/(-?\d+) +\[(\d{3})\] (\d+\.\d{6}): +(\d+) cpu-clock:", head)
        assert found, head
        assert float(found[5]) >= last, "out of order"
        last = float(found[5])
        stack = []
        for line in lines:
            frame = re.fullmatch(r"\t *([0-9a-f]+) (.*) \(([^()]*)\)", line)
            assert frame, line
            unknown = f"0x{frame[1]}" if frame[3] == "[unknown]" else f"{frame[3]}+0x{frame[1]}"
            stack.append(unknown if frame[2] == "[unknown]" else frame[2])
        yield found[1], stack[::-1], int(found[6])


def main():
    path, period = sys.argv[1], int(sys.argv[2])
    stacks = collections.Counter()
    for thread, names, weight in (speedscope if path.endswith(".json") else perf_script)(path):
        assert weight % period == 0, weight
        stacks[";".join(n.replace(";", ":") for n in (thread, *names))] += weight // period
    for stack, count in stacks.items():
        print(stack, count)


main()
