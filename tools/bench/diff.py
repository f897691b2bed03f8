#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How often `hearth diff` is right: nothing shown of equal programs, a function that is 5 % slower found. Root.

Records RUNS captures each of two builds of tests/diff/blocks.c (or takes those that are in FOLDER already), and compares
many choices of them: the tries are drawn from fewer recordings, so they are not independent of each other.
  diff.py BUILD FOLDER [RUNS [TRIES]]
"""
import json
import os
import random
import subprocess
import sys

SECONDS_OF_ROUNDS = 1000  # about 18 s of CPU time on the machine the figures in docs/diff.md are from


def record(hearth, folder, runs):
    """a.N.otlp and b.N.otlp in turn, so that what the machine does meanwhile falls on both."""
    for name, more in (("a", 0), ("b", 5)):
        os.makedirs(f"{folder}/{name}", exist_ok=True)
        subprocess.run(["gcc", "-O2", "-g", f"-DMORE={more}", "-o", f"{folder}/{name}/blocks", "tests/diff/blocks.c"], check=True)
    for i in range(1, runs + 1):
        for name in "ab":
            out = f"{folder}/{name}.{i}.otlp"
            if not os.path.exists(out):
                subprocess.run([hearth, "record", "-q", "-F", "999", "-o", out, "--", f"{folder}/{name}/blocks",
                                str(SECONDS_OF_ROUNDS)], check=True)


def compare(hearth, a, b):
    done = subprocess.run([hearth, "diff", "--format", "json", *a, "--", *b], check=True, capture_output=True)
    return json.loads(done.stdout)


def changed(result):
    return {f["name"] for f in result["functions"] if f["self"]["changed"] or f["total"]["changed"]}


def main():
    build, folder = sys.argv[1:3]
    runs = int(sys.argv[3]) if len(sys.argv) > 3 else 12
    tries = int(sys.argv[4]) if len(sys.argv) > 4 else 100
    hearth = f"{build}/hearth"
    record(hearth, folder, runs)
    a, b = ([f"{folder}/{name}.{i}.otlp" for i in range(1, runs + 1)] for name in "ab")
    random.seed(1)
    for count in (1, 3):
        silent = found = 0
        for _ in range(tries):
            same = random.sample(random.choice((a, b)), 2 * count)
            result = compare(hearth, same[:count], same[count:])
            silent += not result["changed_functions"] and not result["changed_stacks"]
            found += "hash_keys" in changed(compare(hearth, random.sample(a, count), random.sample(b, count)))
        print(f"{count} against {count}: equal programs, nothing shown: {silent} of {tries}; 5 % slower function found: {found} of {tries}",
              flush=True)


if __name__ == "__main__":
    main()
