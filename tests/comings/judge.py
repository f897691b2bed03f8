#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Judges every sample of the programs of this folder: usage: judge.py [--least N] PRINTED TRUTH...

PRINTED is what 'report --format print' wrote. Each TRUTH holds lines "chain COMM EXECUTABLE FUNCTION...", root first, as the
programs print them. Each sample of a thread named COMM must belong to EXECUTABLE and have a complete stack: a root (_start, or
libc's thread start), then nameless or start-up functions of libc, then the chain or the first part of it. What else such a
thread does must be called from a part of the chain or from the start-up code, and be no function of any chain; only libc's, the
dynamic linker's and the vDSO's functions may lack names. A sample without a user stack
must be in the kernel's exec or exit. N (5) samples of each COMM must show its whole chain.

Exit status 1 when any sample is wrong."""
import argparse
import collections
import re
import sys

NATIVE = re.compile(r"Instrumentation: native(?:, Function: (.*), File: .*, Line: \d+, Column: \d+|: Function: (0x[0-9a-f]+), File: (.*))$")
ROOT = re.compile(r"_start$|_dl_start(_user)?$|ld-linux-x86-64\.so\.2\+0x[0-9a-f]+$")
THREAD_ROOT = re.compile(r"(__)?clone3?$|start_thread$|libc\.so\.6\+0x[0-9a-f]+$")
STARTS_MAIN = re.compile(r"(__)?libc_start\w*$|libc\.so\.6\+0x[0-9a-f]+$")
SYSTEM = re.compile(r"(ld-linux-x86-64\.so\.2|libc\.so\.6|\[vdso\])\+0x[0-9a-f]+$")
CLOCK = re.compile(r"(__)?(vdso_)?clock_gettime\w*$|(libc\.so\.6|ld-linux-x86-64\.so\.2|\[vdso\])\+0x[0-9a-f]+$")
COPIED = re.compile(r"do_wp_page|wp_page_copy|copy_strings|dup_mmap|copy_process")  # a page shared with a child gets a copy
NAMELESS = re.compile(r"\+0x[0-9a-f]+$")
LEAVING = re.compile(r"\w*(execve|do_exit|do_group_exit|begin_new_exec|ret_from_fork|schedule_tail|exit_to_user|task_work)\w*$")
WORST = 4


def frame_of(line):
    found = NATIVE.match(line)
    if not found:
        return None
    name, addr, path = found.groups()
    return name or f"{path.rsplit('/', 1)[-1]}+{addr}"


def samples(path):
    """Yields (count, executable, comm, pid, why it is truncated, user frames and kernel frames from the root)."""
    exe = pid = ""
    sample = None
    with open(path, encoding="utf-8", errors="replace") as f:
        for line in f:
            line = line.rstrip("\n")
            if line.startswith("--------------- New Resource"):
                exe = pid = ""
            elif line.startswith("------------------- New Sample"):
                sample = {"count": 0, "comm": "", "cut": "", "user": [], "kernel": []}
            elif line.startswith("------------------- End Sample"):
                yield (sample["count"], exe, sample["comm"], pid, sample["cut"], sample["user"][::-1], sample["kernel"][::-1])
                sample = None
            elif line.startswith("  process.executable.name: "):
                exe = line.split(": ", 1)[1]
            elif line.startswith("  process.pid: "):
                pid = line.split(": ", 1)[1]
            elif sample is None:
                continue
            elif line.startswith("  Timestamp["):
                sample["count"] += 1
            elif line.startswith("  thread.name: "):
                sample["comm"] = line.split(": ", 1)[1]
            elif line.startswith("  hearth.stack.truncated: "):
                sample["cut"] = line.split(": ", 1)[1]
            elif line.startswith("Instrumentation: native"):
                sample["user"].append(frame_of(line))
            elif line.startswith("Instrumentation: kernel"):
                found = re.search(r"Function: ([^,]*)", line)
                sample["kernel"].append(found.group(1) if found else "")


def shown_of(frames, exe, chain, all_functions):
    """How many functions of @chain the user stack @frames shows, when all of it is as it should be; else None."""
    at = 1
    if ROOT.match(frames[0]):
        while at < len(frames) and frames[at] != chain[0] and STARTS_MAIN.match(frames[at]):
            at += 1
    elif chain[0] != "main" and THREAD_ROOT.match(frames[0]):
        while at < len(frames) and frames[at] != chain[0] and THREAD_ROOT.match(frames[at]):
            at += 1
    else:
        return None
    shown = 0
    while at < len(frames) and shown < len(chain) and frames[at] == chain[shown]:
        at, shown = at + 1, shown + 1
    rest = frames[at:]
    if rest and not shown and rest[-1].startswith(exe + "+0x"):
        rest.pop()  # a stub for a function that a static program chooses at its start
    if any(f in all_functions or (NAMELESS.search(f) and not SYSTEM.match(f)) for f in rest):
        return None
    if shown == len(chain) > 1 and not all(CLOCK.match(f) for f in rest):
        return None
    return shown


def main():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("--least", type=int, default=5)
    p.add_argument("printed")
    p.add_argument("truth", nargs="+")
    args = p.parse_args()
    chains, all_functions = {}, set()
    for path in args.truth:
        with open(path, encoding="utf-8") as f:
            for line in f:
                if line.startswith("chain "):
                    _, comm, exe, *functions = line.split()
                    chains[comm] = (exe, functions)
                    all_functions.update(functions)
    seen, whole, wrong = collections.Counter(), collections.Counter(), collections.defaultdict(collections.Counter)
    for count, exe, comm, pid, cut, user, kernel in samples(args.printed):
        if comm not in chains:
            continue
        seen[comm] += count
        right_exe, chain = chains[comm]
        shown = shown_of(user, right_exe, chain, all_functions) if user else 0
        # The kernel's own walk does not come out of its thunks for indirect calls.
        leaves = not user and any(LEAVING.match(k) for k in kernel) or not user and all("_thunk_" in k for k in kernel)
        if cut in ("unreadable", "copy limit") and any(COPIED.match(k) for k in kernel):
            continue  # the page of the stack was out of reach at that instant
        if not cut and (leaves if not user else exe == right_exe and shown is not None):
            whole[comm] += count if shown == len(chain) else 0
        else:
            wrong[comm][f"{exe}[{cut}] " + ";".join(user + (["kernel"] + kernel if kernel else []))] += count
    bad = 0
    for comm in chains:
        failed = sum(wrong[comm].values())
        good = not failed and (whole[comm] >= args.least or len(chains[comm][1]) == 1)
        bad |= not good
        print(f"{'ok  ' if good else 'FAIL'} {comm:15} {seen[comm]:6} samples, {whole[comm]} with the whole chain, {failed} wrong")
        for stack, count in wrong[comm].most_common(WORST):
            print(f"     {count:6} x {stack}")
    return bad


if __name__ == "__main__":
    sys.exit(main())
