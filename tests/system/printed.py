#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads what `serve --print` wrote: the samples of all distinct profiles must be as many as the agent delivered, and the truth
program's chain must be among their stacks.    printed.py TEXT DELIVERED TRUTH"""
import re
import sys


def profiles(path):
    """Yields (profile id, number of samples, function names of each stack, leaf first)."""
    ident, events, stacks = None, 0, []
    with open(path, encoding="utf-8", errors="replace") as f:
        for line in f:
            line = line.rstrip("\n")
            if line.startswith("  ProfileID: "):
                ident, events, stacks = line.split(": ", 1)[1], 0, []
            elif line.startswith("------------------- New Sample"):
                stacks.append([])
            elif re.match(r"  Timestamp\[\d+\]: ", line):
                events += 1
            elif line.startswith("Instrumentation: ") and stacks:
                found = re.search(r", Function: (.*), File: ", line)
                stacks[-1].append(found.group(1) if found else "")
            elif line.startswith("------------------- End Profile"):
                yield ident, events, stacks


def main():
    path, delivered, truth = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    with open(truth, encoding="utf-8") as f:
        chain = f.readline().split()[:0:-1]  # leaf first
    distinct, twice, with_chain = {}, 0, 0
    for ident, events, stacks in profiles(path):
        twice += ident in distinct
        distinct[ident] = events
        with_chain += sum(any(s[i : i + len(chain)] == chain for i in range(len(s))) for s in stacks)
    received = sum(distinct.values())
    print(f"{len(distinct)} profiles ({twice} came twice), {received} samples of {delivered} delivered, {with_chain} stacks with the chain")
    if not re.fullmatch(r"[0-9a-f]{32}", next(iter(distinct), "")):
        return "FAILED: no profile with an id"
    if received != delivered:
        return f"FAILED: {delivered} samples delivered, {received} arrived"
    return 0 if with_chain else "FAILED: the chain did not arrive"


sys.exit(main())
