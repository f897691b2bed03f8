# SPDX-License-Identifier: Apache-2.0
"""Names of addresses: hearth's command beside gimli's addr2line and llvm-symbolizer on a Rust program with more than 50 MB of debug
information (tools/bench/run.sh builds both from crates), interleaved; the index; symbol tables."""
import os
import random
import re
import subprocess
import sys
import time

from measure import QUICK, TOP, figure, median, note

sys.path.insert(0, os.path.join(TOP, "tests", "symbols"))
import answers  # noqa: E402

ROUNDS = 5 if QUICK else 15


def timed(command, text):
    """Seconds of elapsed and processor time, peak resident MB; a file as standard input, so that nobody waits for us."""
    with open(text, "rb") as addrs, open(os.devnull, "wb") as nothing:
        start = time.monotonic()
        p = subprocess.Popen(command, stdin=addrs, stdout=nothing)
        status, usage = os.wait4(p.pid, 0)[1:]
        p.returncode = status
    if status:
        raise SystemExit(f"bench: {' '.join(command)}: status {status}")
    return time.monotonic() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def interleaved(commands, text):
    """Medians of (elapsed, CPU, MB) of each."""
    runs = [[timed(c, text) for c in commands] for _ in range(ROUNDS + 1)][1:]
    return [[median(run[i][k] for run in runs) for k in range(3)] for i in range(len(commands))]


def debug_bytes(path):
    return sum(s.size for s in answers.sections(path) if s.name.startswith(".debug_"))


def numbers(command, text):
    with open(text, encoding="ascii") as addrs:
        out = subprocess.run(command, stdin=addrs, capture_output=True, text=True, check=True).stdout
    return [int(n) for n in out.split()]


def repeated(command, text):
    rows = [numbers(command, text) for _ in range(ROUNDS)]
    return [median(column) for column in zip(*rows)]


def write_addrs(path, addrs):
    with open(path, "w", encoding="ascii") as f:
        f.writelines(f"{a:#x}\n" for a in addrs)


def cold(host, program, text):
    gimli = os.path.join(host.bench, "symbols", "bin", "addr2line")
    mine, other, llvm = interleaved([
        [host.hearth, "symbols", "resolve", "--symbol-cache", host.file("no-such-folder"), program, "-"],
        [gimli, "-e", program, "-f", "-i", "-a"],
        ["llvm-symbolizer", "--inlines", f"--obj={program}"],
    ], text)
    what = f"1,000 addresses of {debug_bytes(program) / 1e6:.0f} MB of DWARF"
    figure(f"{what}, cold, against gimli", "ms", mine[0] * 1e3, other[0] * 1e3, 0.7)
    figure("  its CPU time", "ms", mine[1] * 1e3, other[1] * 1e3, 0.7)
    figure("  its peak memory", "MB", mine[2], other[2], 1)
    figure("  against llvm-symbolizer", "ms", mine[0] * 1e3, llvm[0] * 1e3)
    figure("  its peak memory against llvm-symbolizer's", "MB", mine[2], llvm[2])


def index(host, program, text):
    names = os.path.join(host.bench, "names")
    path = host.file("index")
    none = host.file("none")
    write_addrs(none, [])
    rows = [numbers([names, "build", program, path], none) for _ in range(3 if QUICK else 7)]
    cpu, size = median(r[1] for r in rows), rows[0][2]
    total = debug_bytes(program)
    figure("building the index, debug sections per CPU second", "MB/s", total / 1e6 / (cpu / 1e9), None, 200, absolute=True, least=True)
    figure("its size against the debug sections", "%", 100 * size / total, None, 12, absolute=True)
    _, opened, _, asked, count, frames = repeated([names, "ask", path], text)
    figure("opening it, CPU time", "ms", opened / 1e6, None, 10, absolute=True)
    figure("an address from it, names and paths included, CPU time", "us", asked / 1e3 / count, None, 2, absolute=True)
    note(f"{frames / count:.1f} frames an address")


def symtab(host):
    """10,000 addresses in a library of 100,000 functions that has a symbol table alone."""
    source, library, text = host.file("many.s"), host.file("many.so"), host.file("many.addrs")
    with open(source, "w", encoding="ascii") as f:
        for i in range(100000):
            name = f"function_with_a_name_of_usual_length_{i}"
            f.write(f".globl {name}\n.type {name},@function\n{name}: .skip 32, 0x90\n.size {name},32\n")
        f.write('.section .note.GNU-stack,"",@progbits\n')
    subprocess.run(["gcc", "-shared", "-nostdlib", "-o", library, source], check=True)
    start = next(s for s in answers.sections(library) if s.name == ".text")
    rng = random.Random("hearth")
    write_addrs(text, [start.addr + rng.randrange(start.size) for _ in range(10000)])
    _, cpu, count, found = repeated([os.path.join(host.bench, "names"), "look-up", library], text)
    if found != count:
        raise SystemExit(f"bench: {count - found} of {count} addresses have no name")
    figure("10,000 addresses of 100,000 symbols and the file, CPU time", "ms", cpu / 1e6, None, 10, absolute=True)


def symbols(host):
    program = os.path.join(host.bench, "symbols", "bin", "rg")
    symtab(host)
    if not os.access(program, os.X_OK):
        note("no cargo here, or nothing to build from: no Rust program to name")
        return
    text = host.file("addrs")
    write_addrs(text, random.Random(1).sample(answers.draw(program, 1000, "bench"), 1000))
    cold(host, program, text)
    index(host, program, text)
