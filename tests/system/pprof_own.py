#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Judges hearth's profile of itself, by way of protobuf's own decoder: all samples are of processes that are hearth's, by what /proc had
of them, and some are of its agent.

usage: pprof_own.py PROFILE.pb.gz AGENT FAMILY OTHERS

FAMILY is a file with a pid of hearth's processes a line, OTHERS with those of another hearth. Helpers that lived too shortly to be
in either may have half of the samples. Exit status 77 where protoc or python3-protobuf is missing."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
sys.dont_write_bytecode = True
import pprof_stacks


def main():
    p = pprof_stacks.load(sys.argv[1])
    text = p.string_table
    with open(sys.argv[3]) as f:
        family = {int(line) for line in f}
    with open(sys.argv[4]) as f:
        others = {int(line) for line in f}
    counts, names, threads = {}, set(), set()
    for s in p.sample:
        labels = {text[l.key]: text[l.str] or l.num for l in s.label}
        counts[labels["process.pid"]] = counts.get(labels["process.pid"], 0) + s.value[0]
        names.add(labels["process.executable.name"])
        threads.add(labels.get("thread.name", "?"))
    functions = {text[f.name] for f in p.function}
    print(f"{sum(counts.values())} samples, by pid {counts}, of {sorted(threads)}, {p.duration_nanos / 1e9:.1f} s")
    wrong = []
    if not counts.get(int(sys.argv[2])):
        wrong.append("no sample of the agent")
    unseen = sum(n for pid, n in counts.items() if pid not in family)
    if set(counts) & others or names - {"hearth"} or unseen > sum(counts.values()) / 2:
        wrong.append(f"samples of others: {set(counts) - family}, {names}; hearth is {sorted(family)}")
    if [(text[t.type], text[t.unit]) for t in p.sample_type] != [("samples", "count"), ("cpu", "nanoseconds")]:
        wrong.append("another kind")
    if "main" not in functions:
        wrong.append(f"no main among {len(functions)} functions")
    for what in wrong:
        print(f"WRONG: {what}")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
