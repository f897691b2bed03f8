#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Judges files and lines of .NET's frames in a capture by the stacks that the program printed (Lines.cs).

usage: judge_lines.py [--min PERCENT] [--least STACKS] [--without PERCENT] [--late LINES] CAPTURE PROGRAM TRUTH

A stack within Lines.Spin, called by Lines.Call, is right when its frames with a file have the files and lines of one that was printed.
A frame without a line is no error, but no more than --without (15) percent of frames may be so. What is below code of the runtime itself
(it called the handler of an exception) is not judged: the runtime leaves that out. .NET Core 3.1 tells where a call returns to, not where it
is: with --late a line may be up to LINES before the one that was printed, and where nothing was printed a frame may have any. Exit status 1 when fewer than PERCENT (99.9) of the
stacks are right, or fewer than --least (100) are there; 77 without Python's protobuf."""
import argparse
import collections
import functools
import os
import sys

import judge


def read_truth(path):
    stacks = set()
    for words in (line.split() for line in open(path)):
        if words[:1] == ["stack"]:
            end = words.index("STOP") if "STOP" in words else len(words)
            pairs = (word.rsplit(":", 1) for word in words[1:end])
            stacks.add(tuple((file, int(line)) for file, line in pairs))
    return stacks


def frames_of(frames):
    """Files, lines and names of those that called Lines.Call, innermost first, and whether there are more than these."""
    found = []
    for kind, name, path, line in reversed(frames):
        if kind != "dotnet" or name.startswith("System.Runtime.EH."):
            return found, True
        if "MethodBaseInvoker" in name:
            break
        if path:
            found.append((os.path.basename(path), line, name))
    return found, False


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--min", type=float, default=99.9)
    parser.add_argument("--least", type=int, default=100)
    parser.add_argument("--without", type=float, default=15)
    parser.add_argument("--late", type=int, default=0)
    parser.add_argument("capture")
    parser.add_argument("program")
    parser.add_argument("truth")
    args = parser.parse_args()
    truth = read_truth(args.truth)

    @functools.lru_cache(None)
    def is_told(key, is_prefix):
        def goes_on(stack, i, k):
            if i == len(key):
                return is_prefix or k == len(stack)
            file, line = key[i]
            if k < len(stack) and stack[k][0] == file and (not line or 0 <= stack[k][1] - line <= args.late) and goes_on(stack, i + 1, k + 1):
                return True
            return (not line or args.late) and goes_on(stack, i + 1, k)  # a handler is a frame of its own, within its method's
        return any(goes_on(stack, 0, 0) for stack in truth if stack or not key)

    right, frames_cnt, without, wrong = 0, 0, 0, collections.Counter()
    for count, frames, _ in judge.Stacks(args.capture).of(args.program):
        names = [name for _, name, _, _ in frames]
        at = len(names) - 1 - names[::-1].index("Lines.Call") if "Lines.Call" in names else 0
        if at < 1 or names[at + 1:at + 2] != ["Lines.Spin"]:
            continue
        found, is_prefix = frames_of(frames[:at])
        frames_cnt += count * len(found)
        without += count * sum(not line for _, line, _ in found)
        if is_told(tuple((file, line) for file, line, _ in found), is_prefix):
            right += count
        else:
            wrong[";".join(f"{name} {file}:{line}" for file, line, name in found)] += count
    for text, count in wrong.most_common(8):
        print(f"{count} x {text[:1500]}")
    total = right + sum(wrong.values())
    share, part = 100 * right / max(total, 1), 100 * without / max(frames_cnt, 1)
    print(f"lines: {share:.2f} % of {total} stacks right, {frames_cnt} frames with a file, {part:.1f} % of them without a line")
    sys.exit(0 if total >= args.least and share >= args.min and part <= args.without and frames_cnt else 1)


main()
