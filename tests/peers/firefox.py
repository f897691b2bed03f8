#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Loads a .firefox.json.gz file into Firefox Profiler's command line and compares, function by function over all threads, how
many samples it counts there with folded stacks.

usage: firefox.py PROFILER_CLI FILE.firefox.json.gz FOLDED"""
import collections
import json
import os
import subprocess
import sys
import tempfile


def main():
    cli, path, folded = sys.argv[1:]
    with tempfile.TemporaryDirectory() as home:  # where it keeps its sessions
        env = dict(os.environ, HOME=home, XDG_RUNTIME_DIR=home)

        def run(*args):
            return subprocess.run([cli, *args], env=env, check=True, capture_output=True, text=True, timeout=60).stdout

        run("load", path)
        try:
            threads = json.loads(run("thread", "list", "--json", "--limit", "100000"))["threads"]
            counts = collections.Counter()
            for thread in threads:
                said = json.loads(run("thread", "functions", "--include-idle", "--json", "--limit", "1000000", "--thread",
                                      thread["threadHandle"]))
                for f in said["functions"]:
                    counts[f["name"]] += round(f["selfSamples"])
        finally:
            run("stop", "--all")
    want = collections.Counter()
    for line in open(folded, encoding="utf-8"):
        stack, count = line.rstrip("\n").rsplit(" ", 1)
        if ";" in stack:
            want[stack.rsplit(";", 1)[1]] += int(count)
    got = collections.Counter({n.replace(";", ":"): c for n, c in counts.items() if c})
    if got != want:
        sys.exit(f"FAILED: {[(n, got[n], want[n]) for n in {*got, *want} if got[n] != want[n]][:10]}")
    print(f"{len(threads)} threads, {len(want)} functions, {sum(want.values())} samples")


main()
