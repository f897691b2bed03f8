# SPDX-License-Identifier: Apache-2.0
"""What frames in code that programs make while they run cost, warm: BPF time of HotSpot's, V8's and BEAM's beside bpf_get_stack on a C
program of the same depth; and the agent's CPU time and memory beside a virtual machine that starts and compiles thousands of methods.

Slices as in runtimes.py. A frame's price is the difference between a deep and a flat program."""
import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time

import memory
from measure import QUICK, TOP, cpu_ns, figure, map_mb, median, note, resident_mb, running, settle, statistics_on
from runtimes import LOAD, Samplers, Target, real_time, show, slice_ns

FLAT, DEEP = 10, 90
ROUNDS = 3 if QUICK else 12
WARM_SECONDS = 4  # until all is compiled, and met
JAVA = ("java", "-XX:-Inline", "-XX:-BackgroundCompilation", "-XX:-UseOnStackReplacement", "-XX:+UseSerialGC")
NODE = ("node", "--max-inlined-bytecode-size=0", "--max-inlined-bytecode-size-small=0")
BARS = {"compiled": 0.5, "interpreted": 1}


def programs(folder):
    """{name: its command, but for the depth}, of those that are here."""
    found = {}
    if shutil.which("java") and shutil.which("javac"):
        subprocess.run(("javac", "-d", folder, os.path.join(LOAD, "Deep.java")), check=True)
        found["HotSpot, compiled"] = (*JAVA, "-cp", folder, "Deep")
        found["HotSpot, interpreted"] = (*JAVA, "-Xint", "-cp", folder, "Deep")
    if shutil.which("node"):
        found["V8, compiled"] = (*NODE, os.path.join(LOAD, "deep.js"))
        found["V8, interpreted"] = ("node", "--no-opt", "--no-sparkplug", os.path.join(LOAD, "deep.js"))
    if shutil.which("erlc"):
        subprocess.run(("erlc", "-o", folder, os.path.join(LOAD, "deep.erl")), check=True)
        found["BEAM, compiled"] = ("erl", "-noshell", "+S", "1:1", "-pa", folder, "-s", "deep", "main")
    return found


def frames(host, folder):
    commands = programs(folder)
    mine, stacks = {(n, d): [] for n in commands for d in (FLAT, DEEP)}, {FLAT: [], DEEP: []}
    with real_time(), contextlib.ExitStack() as stack:
        targets = {(n, d): Target(stack, (*commands[n], d)) for n, d in mine}
        other = {d: Target(stack, (os.path.join(host.bench, "depth"), d)) for d in stacks}
        idle = stack.enter_context(running(("sleep", 10000)))
        samplers = Samplers(host, stack, 999, targets.values(), idle)
        for t in targets.values():
            with t.runs():
                time.sleep(WARM_SECONDS)
        for _ in range(ROUNDS):
            for key, target in targets.items():
                mine[key].append(slice_ns(target, samplers.all.pid, 0.3))
            for depth, target in other.items():
                stacks[depth].append(samplers.other_slice("fp", target, 0.3))
    for name in commands:
        show(f"{name}: a frame more, warm", lambda of, n=name: (of(mine[n, DEEP]) - of(mine[n, FLAT])) / (DEEP - FLAT),
             lambda of: (of(stacks[DEEP]) - of(stacks[FLAT])) / (DEEP - FLAT), BARS[name.split()[-1]])
        show(f"{name}: a sample of {FLAT} frames", lambda of, n=name: of(mine[n, FLAT]), lambda of: of(stacks[FLAT]))


def start(host, folder):
    """javac of many files in a fresh virtual machine: the agent beside it, with the reader and without."""
    source = os.path.join(TOP, "tests", "script", "Calls.java")
    used = {}
    for _ in range(1 if QUICK else 3):
        for choice in "all", "-hotspot":
            with running((host.hearth, "record", "-F", 99, "--runtimes", choice, "-p", os.getpid(), "-o", host.file("start.otlp")),
                         stop=signal.SIGINT) as (h,):
                settle(h, 1, "hearth record")
                before, size = cpu_ns(h.pid, ended=True), agent_mb(h.pid)
                subprocess.run(("java", "-XX:+UseSerialGC", "-cp", folder, "Compiles", source, folder), check=True)
                time.sleep(1)
                used.setdefault(choice, []).append(((cpu_ns(h.pid, ended=True) - before) / 1e6, agent_mb(h.pid) - size))
    ms, mb = [[median([u[i] for u in used[c]]) for c in ("all", "-hotspot")] for i in (0, 1)]
    figure("agent's CPU beside a JVM that compiles 5,000 methods", "ms", ms[0], ms[1])
    figure("memory for the names of these methods", "MB", mb[0] - mb[1], None, 10, absolute=True)


def agent_mb(pid):
    return resident_mb(pid) + map_mb(pid) + memory.helper_mb(pid)


def jit(host):
    with tempfile.TemporaryDirectory() as folder:
        with statistics_on():
            frames(host, folder)
        if shutil.which("javac"):
            subprocess.run(("javac", "-d", folder, os.path.join(LOAD, "Compiles.java")), check=True)
            start(host, folder)
        else:
            note("no javac: the start of a virtual machine is left out")
