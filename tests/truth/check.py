#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Judges folded stacks against what the truth programs say about themselves.

usage: check.py [--min PERCENT] [--least SAMPLES] FOLDED TRUTH...

FOLDED holds lines "comm;root;...;leaf COUNT". Each TRUTH is a file named after a program's comm with what the program printed:
lines "chain main f1 ... leaf", one for each chain that it may be in.

A sample of that comm is complete when its stack is, in this order: root frames (_start or __libc_start..., or for a thread what
libc starts threads with, for a goroutine runtime.goexit; then libc's unnamed functions, the Rust runtime and main in front of
a Rust main), one of the chains from its first function to its leaf without a gap, and then at most kernel functions. What is
verifiably outside of the chain is set aside and counted apart, up to a quarter of the samples: the kernel's exec and exit, and
stacks that have their root, or one in the dynamic linker, but no function of a chain except its first one, as when main looks at
the clock.

Prints a line a program (name, complete percent, samples, set aside) and its most frequent wrong stacks. Exit status 1 when a
program is below PERCENT (99), has less than SAMPLES (50) samples or too many set aside; 2 for wrong usage.
"""
import argparse
import collections
import os
import re
import sys

ROOT = re.compile(r"_start$|__libc_start\w*$")
GO_ROOT = re.compile(r"runtime\.(goexit|mcall|mstart|rt0_go)(\.abi0)?$")
THREAD_ROOT = re.compile(r"(__)?clone3?$|start_thread$|libc\S*\.so\S*\+0x[0-9a-f]+$")
UNDER_MAIN = re.compile(r"(__)?libc_start\w*$|libc\S*\.so\S*\+0x[0-9a-f]+$|main$|(std|core|alloc)::|<.*(std|core|alloc)::")
LINKER = re.compile(r"ld-linux\S*\+0x[0-9a-f]+$|_dl_\w+$|__tls_\w+$|__tunable\w*$|rtld\w*$")
NOT_RUNNING = re.compile(r"\w*(execve|do_exit|do_group_exit|begin_new_exec|ret_from_fork|schedule_tail)\w*$")
SUFFIX = re.compile(r" \[clone [^]]*\]|\.(cold|part|constprop|isra|llvm)\b.*$")
WORST = 3


def kernel_names():
    """All function names of the running kernel, or None when it does not tell."""
    try:
        with open("/proc/kallsyms", encoding="ascii", errors="replace") as f:
            return {SUFFIX.sub("", line.split()[2]) for line in f}
    except (OSError, IndexError):
        return None


def drop_groups(name, opening, closing, keep):
    """Removes balanced groups for which keep(text before, inside) is false."""
    out, depth, start = [], 0, 0
    for i, c in enumerate(name):
        if c == opening:
            if depth == 0:
                start = i
            depth += 1
        elif c == closing and depth:
            depth -= 1
            if depth == 0:
                inside = name[start + 1 : i]
                if keep("".join(out), inside):
                    out.append(opening + drop_groups(inside, opening, closing, keep) + closing)
        elif depth == 0:
            out.append(c)
    return "".join(out) if depth == 0 else name


def plain(name):
    """A function's name without parameters, return type, clone suffix, Rust hash and turbofish; no blanks are left."""
    name = SUFFIX.sub("", name)
    name = re.sub(r"::h[0-9a-f]{16}$", "", name)
    name = re.sub(r"\{\{closure\}\}|\{closure#\d+\}", "{closure}", name)
    name = drop_groups(name, "(", ")", lambda before, inside: before.endswith("operator") or inside == "anonymous namespace")
    name = name.replace("operator()", "operator\0")
    name = re.sub(r" (const|volatile)\b", "", name)
    name = drop_groups(name, "<", ">", lambda before, inside: not before.endswith("::"))
    name = re.sub(r"::(?=::|$)", "", name)  # what a dropped turbofish leaves
    depth, last = 0, 0
    for i, c in enumerate(name):  # a template's name starts with its return type
        depth += (c == "<") - (c == ">" and name[i - 1] != "-")
        if c == " " and depth == 0:
            last = i + 1
    return name[last:].replace(" ", "_").replace("operator\0", "operator()")


class Program:
    def __init__(self, path):
        self.comm = os.path.basename(path)
        with open(path, encoding="utf-8") as f:
            self.chains = [tuple(plain(w) for w in l.split()[1:]) for l in f if l.startswith("chain ")]
        if not self.chains:
            sys.exit(f"check.py: {path}: no line starts with 'chain '")
        self.inside = {f for chain in self.chains for f in chain[1:]}
        self.complete = self.samples = self.aside = 0
        self.wrong = collections.Counter()

    def take(self, stack, count, kernel):
        frames = [plain(f) for f in stack]
        if any(NOT_RUNNING.match(f) for f in frames) or self.is_elsewhere(frames):
            self.aside += count
            return
        self.samples += count
        if any(is_complete(frames, chain, kernel) for chain in self.chains):
            self.complete += count
        else:
            self.wrong[shorten(stack)] += count

    def is_elsewhere(self, frames):
        roots = (ROOT, GO_ROOT, LINKER)
        has_root = frames and (any(r.match(frames[0]) for r in roots) or is_thread_root(frames[:2]))
        return has_root and self.inside.isdisjoint(frames)

    def percent(self):
        return 100.0 * self.complete / self.samples if self.samples else 0.0


def is_thread_root(frames):
    return len(frames) == 2 and all(THREAD_ROOT.match(f) for f in frames)


def is_complete(frames, chain, kernel):
    try:
        at = next(i for i in range(len(frames)) if tuple(frames[i : i + len(chain)]) == chain)
    except StopIteration:
        return False
    root, inner = frames[:at], frames[at + len(chain) :]
    if not root:
        return False
    if ROOT.match(root[0]):
        rooted = all(UNDER_MAIN.match(f) for f in root[1:])
    elif GO_ROOT.match(root[0]):
        rooted = len(root) == 1
    else:  # a thread: libc's clone and start_thread
        rooted = chain[0] != "main" and is_thread_root(root)
    return rooted and (kernel is None or all(f in kernel or f.startswith("[") for f in inner))


def shorten(stack):
    """Runs of one frame as 'frame*N', so that a deep recursion fits a line."""
    out = []
    for frame in stack:
        if out and out[-1][0] == frame:
            out[-1][1] += 1
        else:
            out.append([frame, 1])
    return ";".join(f if n == 1 else f"{f}*{n}" for f, n in out)


def main():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("--min", type=float, default=99.0)
    p.add_argument("--least", type=int, default=50)
    p.add_argument("folded")
    p.add_argument("truth", nargs="+")
    args = p.parse_args()
    programs = {t.comm: t for t in map(Program, args.truth)}
    kernel = kernel_names()
    with open(args.folded, encoding="utf-8", errors="replace") as f:
        for line in f:
            stack, _, count = line.rstrip("\n").rpartition(" ")
            comm, *frames = stack.split(";")
            if comm in programs and count.isdigit():
                programs[comm].take(frames, int(count), kernel)
    bad = 0
    for t in programs.values():
        good = t.samples >= args.least and t.percent() >= args.min and t.aside <= (t.samples + t.aside) / 4
        bad |= not good
        print(f"{'ok  ' if good else 'FAIL'} {t.comm:16} {t.percent():6.2f} % of {t.samples} samples complete, {t.aside} set aside"
              + (f" (wants {args.least} samples)" if t.samples < args.least else ""))
        for stack, count in t.wrong.most_common(WORST):
            print(f"     {count:6} x {stack}")
    return bad


if __name__ == "__main__":
    sys.exit(main())
