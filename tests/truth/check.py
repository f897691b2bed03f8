#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Judges stacks against what the truth programs say about themselves.

usage: check.py [--min PERCENT] [--slack STACKS] [--least SAMPLES] [--known FILE] [--any-name | --only-names] [--any-root]
                [--folder FOLDER] [--table] STACKS TRUTH...

STACKS is a capture, or text as capture.py prints it (a file whose name ends in .stacks). Each TRUTH is a file named after a
program, with what that program printed (with --folder only of a program that lies there: another may have its name):

  chain main f1 ... leaf     a call chain it runs through, root first; one line each
  calls FUNCTION NAME...     what FUNCTION may call besides (globs; NAME is of a function, or MODULE:function in a library)
  full PERCENT               least share of the exact stacks that reach the end of a chain (90)
  outside PERCENT            largest share of samples before, after or beside the chains (10)
  sweep                      at least half of the functions of each chain must be seen as the innermost one

Where an address of the program lies is looked up with nm in the program's file, or in symbols/ beside it when that is stripped;
a name that the profiler gives must be the same, and where the file has a symbol there must be a name. With --any-name names do not
matter, with --only-names they are all there is; with --any-root what stands before a chain does not matter.

A stack is exact when it is the root frames of its kind, all of them and nothing else; then a chain from its first function to
its last, or to the function that was running; then possibly the stub of a call, what that function may call and whatever library
functions follow; then kernel functions. For one chain the addresses of all root frames are the same in every stack. It is outside
when it has a root and no function of a chain: in the dynamic linker, before main or after it, in a runtime's own threads, in the
kernel's exec and exit; or where nobody can tell, as C++'s unwinder, about to leave for a landing pad, has written that over its own
return address. What the profiler itself calls truncated is not exact, with its reason. Everything else is wrong.

FILE lists what is known to fall short: lines "GLOB PERCENT REASON", a lower PERCENT for the programs of that name.

Prints a line a program and its most frequent inexact stacks; with --table a row of a Markdown table instead. Exit status 1 when
a program has less than PERCENT (100) exact stacks and more than STACKS (0) that are not, less than SAMPLES (50), or breaks one of
its shares; 2 for wrong usage."""
import argparse
import bisect
import collections
import fnmatch
import functools
import os
import platform
import re
import subprocess
import sys

WORST = 3
MANY = 100  # exact stacks that shares of them are asked of
FEW = 5  # so many samples may always be outside: a program's start is no share of it
# Kernel functions in whose reach a task has no user stack; and the kernel's own walk does not come out of its thunks for calls.
NOT_RUNNING = re.compile(r"\w*(execve|do_exit|do_group_exit|begin_new_exec|ret_from_fork|schedule_tail|_thunk_)\w*$")
SUFFIX = re.compile(r" \[clone [^]]*\]|\.(cold|part|constprop|isra|llvm|lto_priv|abi)\w*\b.*$")

# Root frames, as labels joined by ";". glibc 2.34 put a function of its own between __libc_start_main and main.
OLD_GLIBC = [int(n) for n in platform.libc_ver()[1].split(".")[:2] or [99]] < [2, 34]
CALLS_MAIN = "" if OLD_GLIBC else r";(libc:|(libc:)?__libc_start_call_main)"
MAIN_ROOT = re.compile(rf"_start;(libc:)?__libc_start_main(_impl)?{CALLS_MAIN}$|_start;(libc_start_main_stage2|musl:\w*)$")
RUST_ROOT = re.compile(r"(?P<c>.*?);main(;std::rt::lang_start)?(?P<internal>;std::rt::lang_start_internal)?"
                       r"(?P<closure>;std::rt::lang_start::{closure})?;std::\w+(::\w+)?::__rust_begin_short_backtrace"
                       r"(;core::ops::function::FnOnce::call_once)?$")
THREAD_ROOT = re.compile(r"(libc:|(libc:)?(__)?clone3?);(libc:|(libc:)?start_thread)$|(__)?clone;start$")
CLONE_CHILD = re.compile(r"(libc:|(libc:)?(__)?clone3?)$")
GO_ROOT = re.compile(r"runtime\.goexit$")
GO_OUTSIDE = re.compile(r"runtime\.(goexit|mcall|mstart|clone|rt0_go|morestack|sigtramp|cgoSigtramp)$|_rt0_\w+$")
AFTER_MAIN = re.compile(r"(libc:|musl:)?(exit|_exit|_Exit|_setjmp|__sigsetjmp|__libc_start_init|\w*_init)$")


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


@functools.cache
def plain(name):
    """A function's name without parameters, return type, clone suffix, Rust hash and turbofish; no blanks are left."""
    name = SUFFIX.sub("", name)
    name = re.sub(r"::h[0-9a-f]{16}$", "", name)
    name = re.sub(r"^_cgo(exp)?_[0-9a-f]{12}_", r"_cgo\1_", name)
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


class Symbols:
    """The functions of an ELF file by address, as nm and readelf tell them."""

    def __init__(self, path):
        beside = os.path.join(os.path.dirname(path), "symbols", os.path.basename(path))
        self.stripped = os.path.exists(beside)
        path = beside if self.stripped else path
        self.names, ends = collections.defaultdict(list), {}
        for line in self.run("nm", "-nCS", "--defined-only", path):
            word = line.split(None, 1)
            rest = re.match(r"(?:([0-9a-f]{16}) )?([tTwWiu]) (.*)", word[1]) if len(word) == 2 else None
            if rest:
                start = int(word[0], 16)
                self.names[start].append(rest[3])
                ends[start] = max(ends.get(start, 0), start + int(rest[1] or "0", 16))
        self.starts = sorted(self.names)
        self.ends = [ends[s] for s in self.starts]
        self.stubs = []
        for line in self.run("readelf", "-SW", path):
            found = re.match(r"\s*\[ *\d+\] \.plt\S*\s+PROGBITS\s+([0-9a-f]+) [0-9a-f]+ ([0-9a-f]+)", line)
            if found:
                self.stubs.append((int(found[1], 16), int(found[1], 16) + int(found[2], 16)))

    @staticmethod
    def run(*command):
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True).stdout.splitlines()

    @functools.cache
    def has(self, name):
        return any(name in map(plain, names) for names in self.names.values())

    @functools.cache
    def at(self, address):
        """The plain names of the function there; ("plt",) for a stub, () for what has no symbol."""
        i = bisect.bisect_right(self.starts, address) - 1
        if any(start <= address < end for start, end in self.stubs):
            return ("plt",)
        if i < 0:
            return ()
        next_start = self.starts[i + 1] if i + 1 < len(self.starts) else address + 1
        sized = self.ends[i] > self.starts[i]  # hand-written code may have no size: it lasts to the next symbol
        if address >= (self.ends[i] if sized else next_start):
            return ()
        return tuple(plain(n) for n in self.names[self.starts[i]])


def read_symbols(path, cache={}):
    if path not in cache:
        cache[path] = Symbols(path)
    return cache[path]


def library(module):
    """libc.so.6 and libc-2.31.so are libc; musl's is musl."""
    name = os.path.basename(module)
    return "musl" if name == "libc.so" or "musl" in name else re.sub(r"(-linux\S*|-[0-9.]+)?\.so.*$", "", name)


class Program:
    def __init__(self, path, any_root=False):
        self.any_root = any_root
        self.name = os.path.basename(path)
        self.chains, self.calls = [], []
        self.least_full, self.most_outside, self.sweep = 90.0, 10.0, False
        with open(path, encoding="utf-8") as f:
            for key, *words in filter(None, (l.split() for l in f)):
                if key == "chain":
                    self.chains.append(tuple(plain(w) for w in words))
                elif key == "calls":
                    self.calls.append((plain(words[0]), [plain(w) for w in words[1:]]))
                elif key == "full":
                    self.least_full = float(words[0])
                elif key == "outside":
                    self.most_outside = float(words[0])
                elif key == "sweep":
                    self.sweep = True
        if not self.chains:
            sys.exit(f"check.py: {path}: no line starts with 'chain '")
        self.inside = {f for chain in self.chains for f in chain}
        self.count = collections.Counter()  # by verdict
        self.inexact = collections.Counter()  # by (verdict, stack)
        self.roots = [collections.Counter() for _ in self.chains]  # of each chain: addresses of root frames
        self.innermost = collections.Counter()
        self.path = self.folder = ""

    def label(self, frame, names_from):
        """What the frame is: a plain name in the program's own files, "library:name" in others. None for a wrong name."""
        module, address, name = frame
        if names_from == "only" and os.path.basename(module) == self.name:
            return plain(name)
        if os.path.dirname(module) != self.folder:
            return f"{library(module)}:{plain(name)}"
        symbols = read_symbols(module)
        known = symbols.at(int(address, 16))
        if known and not names_from and known != ("plt",):
            if plain(name) not in known and (name or not symbols.stripped):
                return None
        wanted = [n for n in known if n in self.inside] or [n for n in known if not n.startswith("__")] or list(known)
        return wanted[0] if wanted else f"{self.name}:"

    def may_call(self, caller, rest):
        """rest: labels behind caller, not empty. Every call may be in its stub, or in the linker that looks it up."""
        if rest[0] == "plt":
            rest = rest[1:]
        if not rest or rest[0].startswith("ld:"):
            return True
        allowed = [n for f, names in self.calls if fnmatch.fnmatchcase(caller, f) for n in names]
        return any(fnmatch.fnmatchcase(label, a) for a in allowed for label in (rest[0], rest[0].rpartition(":")[2]))

    def is_root(self, root, first):
        """Whether these labels are all that stands before a chain's first function."""
        if self.any_root:
            return True
        if first == "main":
            return bool(MAIN_ROOT.match(root))
        rust = RUST_ROOT.match(root)
        if rust:  # what link time optimization has left of the start
            has = read_symbols(self.path).has
            return bool(MAIN_ROOT.match(rust["c"])) and bool(rust["internal"] or not has("std::rt::lang_start_internal")) and bool(
                rust["closure"] or not has("std::rt::lang_start::{closure}"))
        return bool(GO_ROOT.match(root) or THREAD_ROOT.match(root))

    def match(self, labels):
        """(index of the chain, number of root frames, functions of the chain) or None."""
        for n, chain in enumerate(self.chains):
            for at in (i for i, l in enumerate(labels) if l == chain[0]):
                if not self.is_root(";".join(labels[:at]), chain[0]):
                    continue
                k = 0
                while k < len(chain) and at + k < len(labels) and labels[at + k] == chain[k]:
                    k += 1
                rest = labels[at + k :]
                if not rest or (self.inside.isdisjoint(rest) and self.may_call(chain[k - 1], rest)):
                    return n, at, k
        return None

    def verdict(self, end, frames, names_from):
        user = [f for f in frames if f[0] != "kernel"]
        kernel = [f[2] for f in frames[len(user) :]]
        if end != "-":
            return "outside" if self.is_landing(user) or self.is_new_thread(user) else f"truncated ({end})"
        if frames[: len(user)] != user:
            return "wrong"
        if not user:
            return "outside" if any(NOT_RUNNING.match(k) for k in kernel) else "wrong"
        labels = [self.label(f, names_from) for f in user]
        if None in labels:
            return "wrong"
        found = self.match(labels)
        if not found:
            return "outside" if self.is_outside(labels) else "wrong"
        n, at, k = found
        self.innermost[labels[-1]] += 1
        return n, tuple(user[:at]), k == len(self.chains[n])

    def is_new_thread(self, user):
        """Before a Go thread's first instruction: it stands where its maker returns from the system call, without a caller."""
        return [self.label(f, None) for f in user] == ["runtime.clone"]

    def is_landing(self, user):
        labels = [self.label(f, None) for f in user]
        return (len(labels) == 3 and labels[0] in self.inside and labels[2].startswith("libgcc_s:") and
                bool(re.match(r"libgcc_s:_Unwind_(RaiseException|Resume|Resume_or_Rethrow)$", labels[1])))

    @staticmethod
    def is_system_stack(labels):
        return not GO_ROOT.match(labels[0]) and bool(GO_OUTSIDE.match(labels[0]))

    def is_outside(self, labels):
        # Go's own threads, and its start before main.main: the runtime calls C there too.
        starts = labels[1:2] == ["runtime.main"] and labels[2:] and labels[2] not in self.inside
        inside = {f for f in self.inside if not f.startswith("runtime.")} if starts or self.is_system_stack(labels) else self.inside
        if not inside.isdisjoint(labels):
            return False
        joined = [";".join(labels[: i + 1]) for i in range(len(labels))]
        for i, root in enumerate(joined):
            if MAIN_ROOT.match(root) and i + 1 < len(labels):  # what comes next is main, or main's start in Rust, or the end
                rust = labels[i + 1] == "main" and not any("__rust_begin_short_backtrace" in l for l in labels)
                return bool(AFTER_MAIN.match(labels[i + 1])) or rust
        return labels[0] in ("_start", "_dl_start_user") or labels[0].startswith(("ld:", "musl:")) or bool(
            GO_OUTSIDE.match(labels[0])) or any(THREAD_ROOT.match(r) for r in joined[:2]) or (
                len(labels) == 1 and bool(CLONE_CHILD.match(labels[0])))

    def take(self, path, count, end, frames, names_from):
        self.path, self.folder = path, os.path.dirname(path)
        verdict = self.verdict(end, frames, names_from)
        if not isinstance(verdict, str):
            n, root, full = verdict
            verdict = "full" if full else "part"
            self.roots[n][root] += count
        self.count[verdict] += count
        if verdict not in ("full", "part", "outside"):
            self.inexact[verdict, shorten(frames)] += count

    def settle(self):
        """The same root for all stacks of a chain."""
        for roots in () if self.any_root else self.roots:
            for root, count in roots.most_common()[1:]:
                self.count["wrong"] += count
                self.count["full"] -= count
                self.inexact["wrong", "another root: " + shorten(root)] += count

    def figures(self):
        exact = self.count["full"] + self.count["part"]
        judged = sum(self.count.values()) - self.count["outside"]
        return exact, judged, 100.0 * exact / judged if judged else 0.0

    def wanted(self, args):
        return min([args.min] + [percent for glob, percent in args.shortfalls if fnmatch.fnmatchcase(self.name, glob)])

    def faults(self, args):
        wanted = self.wanted(args)
        exact, judged, percent = self.figures()
        every = judged + self.count["outside"]
        if judged < args.least:
            yield f"wants {args.least} samples"
        if percent < wanted and judged - exact > args.slack:
            yield f"wants {wanted:g} % exact"
        if self.count["outside"] > max(FEW, every * self.most_outside / 100):
            yield f"wants {self.most_outside:g} % outside at most"
        if wanted < args.min or exact < MANY:
            return  # shares say nothing then
        if self.count["full"] * 100.0 < self.least_full * exact:
            yield f"wants {self.least_full:g} % of the exact ones at full depth"
        for chain in self.chains if self.sweep and self.count["part"] >= MANY else ():
            unseen = [f for f in set(chain) if not self.innermost[f]]
            if len(unseen) * 2 > len(set(chain)):
                yield "never seen as the innermost: " + " ".join(unseen)

    def reasons(self):
        return ", ".join(f"{n} {verdict}" for verdict, n in self.count.most_common() if verdict not in ("full", "part") and n)

    def report(self, args):
        faults = list(self.faults(args))
        exact, judged, percent = self.figures()
        print(f"{'FAIL' if faults else 'ok  '} {self.name:16} {percent:6.2f} % of {judged} stacks exact, {self.count['full']} at full depth"
              + "".join(f"; {r}" for r in (self.reasons(), *faults) if r))
        for (verdict, stack), count in self.inexact.most_common(WORST):
            print(f"     {count:6} x {verdict}: {stack}")
        return bool(faults)

    def row(self, args):
        exact, judged, percent = self.figures()
        print(f"| {self.name} | {judged} | {percent:.2f} | {self.count['full']} | {self.count['part']} | {self.reasons()} |")
        return any(self.faults(args))


def shorten(frames):
    """Names only; runs of one frame as 'frame*N', so that a deep recursion fits a line."""
    out = []
    for module, address, name in frames:
        name = name or f"{os.path.basename(module)}+{address}"
        if out and out[-1][0] == name:
            out[-1][1] += 1
        else:
            out.append([name, 1])
    return ";".join(f if n == 1 else f"{f}*{n}" for f, n in out)


def read_known(path):
    """Yields (glob, percent)."""
    with open(path, encoding="utf-8") as f:
        for line in f:
            words = line.split(None, 2)
            if words and not line.startswith("#"):
                yield words[0], float(words[1])


def read_stacks(path):
    """Yields (count, program, end, frames root first), from a capture by way of capture.py."""
    text = None
    if not path.endswith(".stacks"):
        reader = os.path.join(os.path.dirname(os.path.realpath(__file__)), "capture.py")
        ran = subprocess.run([sys.executable, reader, path], stdout=subprocess.PIPE, text=True, errors="replace")
        if ran.returncode:
            print(ran.stdout, end="")
            sys.exit(ran.returncode)
        text = ran.stdout.splitlines()
    else:
        with open(path, encoding="utf-8", errors="replace") as f:
            text = f.read().splitlines()
    for line in text:
        count, program, end, *frames = line.split("\t")
        yield int(count), program, end, [tuple(f.split("|", 2)) for f in frames]


def main():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("--min", type=float, default=100.0)
    p.add_argument("--slack", type=int, default=0)
    p.add_argument("--least", type=int, default=50)
    p.add_argument("--known")
    p.add_argument("--any-name", dest="names", action="store_const", const="any")
    p.add_argument("--only-names", dest="names", action="store_const", const="only")
    p.add_argument("--folder")
    p.add_argument("--any-root", action="store_true")
    p.add_argument("--table", action="store_true")
    p.add_argument("stacks")
    p.add_argument("truth", nargs="+")
    args = p.parse_args()
    args.shortfalls = list(read_known(args.known)) if args.known else []
    programs = {t.name: t for t in (Program(path, args.any_root) for path in args.truth)}
    for count, path, end, frames in read_stacks(args.stacks):
        program = programs.get(os.path.basename(path))
        if program and (not args.folder or os.path.realpath(args.folder) == os.path.dirname(path)):
            program.take(path, count, end, frames, args.names)
    for program in programs.values():
        program.settle()
    if not args.table:  # what went wrong is read first at the end of a long list
        programs = dict(sorted(programs.items(), key=lambda p: bool(list(p[1].faults(args)))))
    return any([program.row(args) if args.table else program.report(args) for program in programs.values()])


if __name__ == "__main__":
    sys.exit(main())
