#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Judges every sample of the programs of tests/turns.

usage: judge.py PRINTED TOLD...

PRINTED is what `report --format print` says of the recording. Each TOLD is a file named after a case (which is the comm of its
samples) with what the program printed: lines "stack RE", "seen N RE" (see turns.h), "skip WHY", "threads RE" (samples of the same
process by other comms), "end REASON" (its stacks are truncated for it), "aside PERCENT", "least SAMPLES", "odd PERMILLE RE" (so many samples, truncated or not, may be like this: where the code itself is
between two truths).

A sample is written root first, "frame;frame;...|kernel frame;...": a function of the C library as libc:NAME, one of it without a
name as libc:, likewise ld: and vdso:, other frames without a name as their module and a "+". Its user part
must match one of the stacks from end to end, and must not be truncated. Only what is verifiably outside is set aside, at most 15
percent: stacks that have their root and nothing of the case in them, as when the program starts, asks for the time or ends, and
samples with no user part in the kernel's exec and exit. One line a case; exit status 1 when one is wrong.
Two whole stacks from their root on that are not listed are let pass.
"""
import collections
import os
import re
import subprocess
import sys

MACROS = {
    "@main": r"(_start;(_start_c;)?(libc:__libc_start_main(;libc:|;__libc_start_call_main)?|libc_start_main_stage2);main)",
    "@thread": r"((libc:(__)?(clone3?)?|__clone3?);(libc:|start_thread|start))",
    "@signal": r"(libc:|libc:__restore_rt|__restore_rt|[\w.]+\+)",
    "@trap": r"(;step_o[nf]+)?(;(libc:|__restore_rt|[\w.]+\+)(;on_trap)?)?",
    "@libs": r"(?:(?:libc|ld|vdso):\w*)",
}
OUTSIDE = r"(@main|@thread|libc:(__)?clone3?)(;\w+){0,2}(;@libs|;[\w.-]+\+|;__\w+|;printf_core)*|@libs(;@libs)*|_start(;@libs)*"
ROOTED = r"(_start;|@thread|runtime\.(goexit|mcall|mstart)(\.abi0)?;)"
UNLISTED = 2  # whole stacks that nobody thought of: what a program or its runtime does once
LEAVING = re.compile(r"execve|do_exit|do_group_exit|begin_new_exec|ret_from_fork|schedule_tail|mmput|exit_mmap|^__x86_\w+")
COPYING = re.compile(r"do_wp_page|wp_page_copy")  # after a fork the page of the stack itself, which is nowhere at this moment
WORST = 4


def names_in(path, *options):
    """The names of functions in a file; none when it is not there."""
    symbols = subprocess.run(["nm", "--defined-only", *options, path], capture_output=True, text=True, check=False).stdout
    return {line.split()[-1].split("@")[0] for line in symbols.splitlines() if re.search(r" [tTwWi] ", line)}


def debug_file(path):
    notes = subprocess.run(["readelf", "-n", path], capture_output=True, text=True, check=True).stdout
    build_id = re.search(r"Build ID: (\w+)", notes)[1]
    name = f"/usr/lib/debug/.build-id/{build_id[:2]}/{build_id[2:]}.debug"
    # In a container: of a process outside, which has the same library. Not each one's root can be looked at.
    roots = (f"/proc/{pid}/root" for pid in os.listdir("/proc") if pid.isdigit())
    return next((root + name for root in ("", *roots) if os.path.exists(root + name)), name)


def mapped(pattern):
    with open("/proc/self/maps", encoding="ascii") as f:
        return next(line.split()[-1] for line in f if re.search(pattern, line))


# What the C library and the linker export, and what they call their other functions, which has a name only where their debug files
# are installed: how a frame of theirs is told from a program's own function.
LIBC_FILE, LD_FILE = mapped(r"/libc(\.so\.6|-[\d.]+\.so)$"), mapped(r"/ld-[\w.-]+$")
LIBC = names_in(LIBC_FILE, "-D")
LIBC_INSIDE, LD_INSIDE = names_in(debug_file(LIBC_FILE)) - LIBC, names_in(debug_file(LD_FILE)) - LIBC
LIBRARIES = {"libc.so.6": "libc:", "ld-linux-x86-64.so.2": "ld:", "[vdso]": "vdso:"}
OTHERS = re.compile(r"main$|_start$|leaf$|_Unwind_")  # names that programs and other libraries have too


def user_name(name, module):
    if name is None:
        return LIBRARIES.get(module, module + "+")
    if name.startswith("__vdso_"):
        return "vdso:" + name
    if name.endswith("@plt"):
        return "stub+"
    if name in LIBC:
        return "libc:" + name
    if re.match(r"_dl_|__tls_", name):
        return "ld:" + name
    return name if OTHERS.match(name) else "libc:" if name in LIBC_INSIDE else "ld:" if name in LD_INSIDE else name


class Sample:
    def __init__(self, pid):
        self.pid, self.comm, self.count, self.truncated = pid, "", 0, ""
        self.user, self.kernel = [], []

    def frame(self, kind, name, module):
        if kind == "kernel":
            self.kernel.append(name or "+")
        else:
            self.user.append(user_name(name, os.path.basename(module or "?")))

    def text(self):
        return ";".join(reversed(self.user)) + "|" + ";".join(reversed(self.kernel))


FRAME = re.compile(r"Instrumentation: (\w+)(?:, Function: (.*), File: .*, Line: \d+, Column: \d+|: Function: (0x[0-9a-f]+)(?:, File: (.*))?)$")


def samples(path):
    sample, pid = None, 0
    with open(path, encoding="utf-8", errors="replace") as f:
        for line in f:
            line = line.rstrip("\n")
            if line.startswith("Instrumentation: ") and sample:
                m = FRAME.match(line)
                kind, name, _, module = m.groups() if m else ("?", line, None, None)
                sample.frame(kind, name, module)
            elif line.startswith("  Timestamp["):
                sample.count += 1
            elif line.startswith("------------------- New Sample"):
                sample = Sample(pid)
            elif line.startswith("------------------- End Sample"):
                yield sample
                sample = None
            elif line.startswith("  process.pid: "):
                pid = int(line.split(": ", 1)[1])
            elif line.startswith("  thread.name: ") and sample:
                sample.comm = line.split(": ", 1)[1]
            elif line.startswith("  hearth.stack.truncated: ") and sample:
                sample.truncated = line.split(": ", 1)[1]


class Case:
    def __init__(self, path):
        self.name = os.path.basename(path)
        self.stacks, self.seen, self.threads, self.skip, self.end = [], [], [], "", ""
        self.least, self.aside_percent = 20, 15
        self.right = self.aside = self.wrong_count = self.odd_count = self.unlisted_count = 0
        # musl has another function right behind the system call that returns from a handler, where its thread stands meanwhile.
        self.odd, self.odd_permille = r"sigsetjmp\|entry_SYSCALL", 10
        self.wrong = collections.Counter()
        with open(path, encoding="utf-8") as f:
            for line in f:
                word, _, rest = line.rstrip("\n").partition(" ")
                if word == "stack":
                    self.stacks.append(rest)
                elif word == "seen":
                    n, _, what = rest.partition(" ")
                    self.seen.append([int(n), what, 0])
                elif word == "threads":
                    self.threads.append(re.compile(rest))
                elif word == "skip":
                    self.skip = rest
                elif word == "end":
                    self.end = rest
                elif word == "odd":
                    permille, _, self.odd = rest.partition(" ")
                    self.odd_permille = int(permille)
                elif word == "least":
                    self.least = int(rest)
                elif word == "aside":
                    self.aside_percent = int(rest)
        self.stacks = [self.compile(s) for s in self.stacks]
        self.seen = [[n, self.compile(what), 0] for n, what, _ in self.seen]
        self.outside = self.compile(OUTSIDE)
        self.rooted = self.compile(ROOTED)
        self.odd = self.compile(self.odd)

    def compile(self, text):
        for macro, meaning in MACROS.items():
            text = text.replace(macro, meaning)
        # A stub for a call has a name of its own; cases write it as the nameless code of their program that it once was.
        text = re.sub(r"(stacks|(?:calls|signals)\\w\*)\\\+", r"(?:\1|stub)\\+", text)
        return re.compile(text.replace("@case", self.name))

    def has_thread(self, comm):
        return any(t.fullmatch(comm) for t in self.threads)

    def take(self, s):
        user, _, kernel = s.text().partition("|")
        for seen in self.seen:
            seen[2] += s.count if seen[1].search(s.text()) else 0
        if s.truncated == self.end and any(r.fullmatch(user) for r in self.stacks):
            self.right += s.count
        elif not s.truncated and (self.outside.fullmatch(user) if user else LEAVING.search(kernel)):
            self.aside += s.count
        elif s.truncated == "unreadable" and COPYING.search(kernel):
            self.aside += s.count
        elif self.odd.search(s.text()):
            self.odd_count += s.count
        elif not s.truncated and self.rooted.match(user) and self.unlisted_count < UNLISTED:
            self.unlisted_count += s.count
        else:
            self.wrong_count += s.count
            self.wrong[f"{'(' + s.truncated + ') ' if s.truncated else ''}{s.text()}"] += s.count

    def report(self):
        """Prints the verdict; true when all is well."""
        if self.skip:
            print(f"skip {self.name:16} {self.skip}")
            return True
        all_count = self.right + self.aside + self.wrong_count + self.odd_count
        complaints = [f"{n} samples wanted with {r.pattern}, {got} seen" for n, r, got in self.seen if got < n]
        if self.right < self.least:
            complaints.append(f"{self.least} samples wanted")
        if self.aside * 100 > all_count * self.aside_percent:
            complaints.append("too many set aside")
        if self.odd_count * 1000 > all_count * self.odd_permille:
            complaints.append(f"too many odd ones: {self.odd_count}")
        good = not self.wrong_count and not complaints
        print(f"{'ok  ' if good else 'FAIL'} {self.name:16} {self.right} right, {self.wrong_count} wrong, {self.aside} set aside"
              + "".join(f", {got} at the spot" for _, _, got in self.seen[:1]))
        for c in complaints:
            print(f"     {c}")
        for stack, count in self.wrong.most_common(WORST):
            print(f"     {count:6} x {stack}")
        return good


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    cases = [Case(path) for path in sys.argv[2:]]
    by_name = {c.name: [c] for c in cases}
    for s in samples(sys.argv[1]):
        for c in by_name.get(s.comm) or [c for c in cases if c.has_thread(s.comm)]:
            c.take(s)
    bad = [c.name for c in cases if not c.report()]
    if bad:
        print(f"FAILED: {' '.join(bad)}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
