#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Judges what tests/code/stops or tests/beam/stops found by what the program said of itself.

usage: judge_stops.py [--min PERCENT] [--file NAME,...] [--whole-names] [--own PREFIX] TRUTH STOPS

TRUTH is what the program prints (tests/script/calls.js, calls.erl), STOPS what stops prints. --file: the program's own (calls.js). Frames of other files may stand between, as node's own do.
--own: the program's own frames are those whose names begin so.
Exit status 1 when fewer than PERCENT (100) of the stops with frames of the program are right, or none has one."""
import argparse
import collections
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../script"))
import judge  # noqa: E402


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--min", type=float, default=100)
    parser.add_argument("--file", default="calls.js")
    parser.add_argument("--whole-names", action="store_true")
    parser.add_argument("--own")
    parser.add_argument("truth")
    parser.add_argument("stops")
    args = parser.parse_args()
    truth = judge.Truth(args.truth, False, args.whole_names)
    right, without, without_line, frames_seen = 0, 0, 0, collections.Counter()
    wrong, no_line = collections.Counter(), collections.Counter()
    for text in open(args.stops, errors="replace"):
        frames = [frame.split("\x1f") for frame in text.rstrip("\n").split("\t") if frame]
        is_own = [f[0].startswith(args.own) if args.own else os.path.basename(f[2]) in args.file.split(",") for f in frames]
        script = [(f[0].replace(" ", "_"), int(f[1])) if own else None for f, own in zip(frames, is_own)]
        holes = [f[0] for f in frames if f[0].startswith("[no ")]
        if not any(script):
            without += 1
            continue
        why = truth.judge(script) or (f"hole: {holes[0]}" if holes else None)
        for frame in script:
            if frame:
                frames_seen[frame[0]] += 1
                no_line[frame[0]] += not frame[1]
        if why:
            wrong[why, ";".join(f"{f[0]}:{f[1]}" for f in frames)] += 1
        else:
            right += 1
    for (why, text), count in wrong.most_common(8):
        print(f"{count} x {why}:\n    {text[:1500]}")
    total = right + sum(wrong.values())
    share = 100 * right / total if total else 0
    missing = sorted(name for name in truth.frames if not frames_seen[name])
    print(f"{share:.2f} % of {total} stops right, {without} without frames of the program, "
          f"{sum(no_line.values())} of {sum(frames_seen.values())} frames without a line {dict(no_line.most_common(4))}; never seen: {' '.join(missing)}")
    sys.exit(0 if right and share >= args.min else 1)


main()
