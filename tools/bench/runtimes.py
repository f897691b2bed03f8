# SPDX-License-Identifier: Apache-2.0
"""What functions of scripts cost: BPF time of chains beside bpf_get_stack on a C program of the same depth, the start of a program
with many functions, memory.

A chain's part is the difference between hearth and hearth without that runtime on the same program. Programs wait, stopped, while
others are measured; slices of all of them in turn, whose medians and 10th percentiles count, as a virtual CPU's neighbours are noise."""
import contextlib
import os
import shutil
import signal
import statistics
import subprocess
import time

import memory
from measure import CPUS, QUICK, fail, figure, map_mb, median, note, program_time, resident_mb, running, settle, statistics_on

DEPTHS = 5, 20, 100
ROUNDS = 3 if QUICK else 12
OLD_SECONDS = 11  # functions that were first seen so long ago are looked at once a second (OLD_NS of bpf/runtime/chain.bpf.h)
LOAD = os.path.join(os.path.dirname(__file__), "load")
LANGUAGES = {"python": "python3", "php": "php", "perl": "perl", "ruby": "ruby"}


def p10(values):
    return statistics.quantiles(values, n=10)[0] if len(values) > 1 else values[0]


def script(language, *arguments):
    path = os.path.join(LOAD, "chain." + {"python": "py", "php": "php", "perl": "pl", "ruby": "rb"}[language])
    return (shutil.which(LANGUAGES[language]), path, *arguments)


class Target:
    """A program on every CPU, stopped but while it is measured."""

    def __init__(self, stack, command):
        pinned = [("taskset", "-c", cpu, *command) for cpu in CPUS]
        self.processes = stack.enter_context(running(*pinned, stop=signal.SIGKILL, nice=0 if QUICK else -20))

    def tell(self, sig):
        for p in self.processes:
            if p.poll() is not None:
                fail(f"{p.args} ended with status {p.returncode}")
            p.send_signal(sig)

    def pids(self):
        return [p.pid for p in self.processes]

    @contextlib.contextmanager
    def runs(self):
        self.tell(signal.SIGCONT)
        try:
            yield
        finally:
            self.tell(signal.SIGSTOP)


def slice_ns(target, sampler, seconds):
    """BPF nanoseconds a sample of one slice."""
    with target.runs():
        time.sleep(0.05)
        before = program_time(sampler)
        time.sleep(seconds)
        after = program_time(sampler)
    return (after[0] - before[0]) / max(after[1] - before[1], 1)


class Samplers:
    """hearth with all runtimes and with none, at the same time; bpf_get_stack for a slice."""

    def __init__(self, host, stack, hz, with_chains, without):
        self.host, self.hz = host, hz
        self.all, self.none = [stack.enter_context(running(
            (host.hearth, "record", "-F", hz, "--runtimes", runtimes, "-p", ",".join(str(p) for t in targets for p in t.pids()),
             "-o", host.file(f"{runtimes}.otlp")), stop=signal.SIGINT))[0]
            for runtimes, targets in (("all", with_chains), ("none", without))]
        for p in self.all, self.none:
            settle(p, 1, "hearth record")

    def stack_slice(self, target, seconds):
        command = (os.path.join(self.host.bench, "fpwalk"), self.hz, "fp", *target.pids())
        with running(command, stop=signal.SIGINT, stdout=subprocess.PIPE, text=True) as (p,):
            settle(p, 0.1, "fpwalk")
            ns = slice_ns(target, p.pid, seconds)
        self.frames = int(p.stdout.read())
        return ns


def chain_slices(host, languages, depths, hz, seconds, *cold):
    """{(language, depth): [ns of the chain]}, {(language, depth): [ns of the whole sample]}, {depth: [ns of bpf_get_stack]}."""
    keys = [(language, depth) for language in languages for depth in depths]
    chains, whole, stacks = {k: [] for k in keys}, {k: [] for k in keys}, {d: [] for d in depths}
    with contextlib.ExitStack() as stack:
        mine, bare = [{k: Target(stack, script(k[0], k[1], *cold)) for k in keys} for _ in range(2)]
        other = {d: Target(stack, (os.path.join(host.bench, "depth"), d, *cold)) for d in depths}
        targets = [*mine.values(), *bare.values(), *other.values()]
        time.sleep(2)  # all of them are deep
        samplers = Samplers(host, stack, hz, mine.values(), bare.values())
        time.sleep(2)  # and met
        for t in targets:
            t.tell(signal.SIGSTOP)
        time.sleep(OLD_SECONDS)
        for _ in range(ROUNDS):
            for key in keys:
                ns = slice_ns(mine[key], samplers.all.pid, seconds)
                whole[key].append(ns)
                chains[key].append(ns - slice_ns(bare[key], samplers.none.pid, seconds))
            for depth in depths:
                stacks[depth].append(samplers.stack_slice(other[depth], seconds))
                if abs(samplers.frames - depth) > 3:
                    fail(f"bpf_get_stack finds {samplers.frames} frames, the program has {depth}")
    return chains, whole, stacks


def further(slices, key, shallow, deep):
    """Nanoseconds of a frame more, by each round."""
    few, many = key(shallow), key(deep)
    return [(b - a) / (deep - shallow) for a, b in zip(slices[few], slices[many])]


def show(name, unit, mine, other, bar=None):
    """Medians, which are judged, and 10th percentiles."""
    figure(name, unit, median(mine), median(other), bar)
    note(f"10th percentiles {p10(mine):.1f} {unit}, {p10(other):.1f} {unit}")


def empty_record(stacks, depths):
    """A sample of bpf_get_stack less its frames."""
    frame = further(stacks, lambda d: d, depths[0], depths[-1])
    return [ns - depths[0] * f for ns, f in zip(stacks[depths[0]], frame)]


def compare(host, languages, depths, hz, seconds, kind, frame_bar, sample_bars, *cold):
    chains, whole, stacks = chain_slices(host, languages, depths, hz, seconds, *cold)
    empty = empty_record(stacks, depths)
    for language in languages:
        for depth in depths:
            sample = [c + e for c, e in zip(chains[language, depth], empty)]
            show(f"{language}: {depth} frames by their chain, {kind}", "ns", sample, stacks[depth], sample_bars.get((language, depth)))
            show(f"{language}: {depth} frames, native walk too, {kind}", "ns", whole[language, depth], stacks[depth])
        show(f"{language}: a frame more, {kind}", "ns", further(chains, lambda d: (language, d), depths[0], depths[-1]),
             further(stacks, lambda d: d, depths[0], depths[-1]), frame_bar.get(language))


def start(host):
    """The start of a program of many functions, again and again: what its samples and the functions' objects take of its CPU time."""
    command = ("python3", "-c", "import asyncio, http.client, json")
    times = 5 if QUICK else 40
    used = {}
    for _ in range(2 if QUICK else 5):
        for runtimes in "all", "none":
            with running((host.hearth, "record", "-F", 999, "--runtimes", runtimes, "-p", os.getpid(), "-o",
                          host.file("start.otlp")), stop=signal.SIGINT) as (h,):
                settle(h, 1, "hearth record")
                subprocess.run(command, check=True)
                time.sleep(1)
                before, bpf = os.times(), program_time(h.pid)[0]
                for _ in range(times):
                    subprocess.run(command, check=True)
                after = os.times()
                cpu = after.children_user + after.children_system - before.children_user - before.children_system
                used.setdefault(runtimes, []).append(((program_time(h.pid)[0] - bpf) / times, cpu / times * 1e9))
    chain, cpu = median([a[0] - b[0] for a, b in zip(used["all"], used["none"])]), median([u[1] for u in used["all"]])
    figure("import asyncio, http.client, json at 999 Hz: chains, objects", "%", 100 * chain / cpu, None, 0.5, absolute=True)
    note(f"{chain / 1e3:.0f} us of {cpu / 1e6:.0f} ms of CPU time; whole samples {median([u[0] for u in used['all']]) / 1e3:.0f} us")


def memory_of_python(host):
    """A hundred Python programs that are sampled, with their chains and without."""
    count = 20 if QUICK else 100
    program = "import asyncio, json, time\nwhile True:\n    json.loads(json.dumps(list(range(300))))\n    time.sleep(0.02)\n"
    used = {}
    with running(*[("python3", "-c", program)] * count):
        time.sleep(5)
        for _ in range(1 if QUICK else 3):
            for runtimes in "all", "none":
                with running((host.hearth, "record", "--runtimes", runtimes, "-o", host.file("memory.otlp")), stop=signal.SIGINT) as (h,):
                    settle(h, 5 if QUICK else 30, "hearth record")
                    used.setdefault(runtimes, []).append(resident_mb(h.pid) + map_mb(h.pid) + memory.helper_mb(h.pid))
    figure(f"memory for the chains of {count} Python processes", "MB", median(used["all"]) - median(used["none"]), None, 5, absolute=True)
    note(f"with {median(used['all']):.1f} MB, without {median(used['none']):.1f} MB, maps and helpers included")


def before(host):
    """Processes without a runtime, beside a hearth of before there were chains (BENCH_BEFORE: its path)."""
    path = os.environ.get("BENCH_BEFORE")
    if not path:
        return
    rows = {host.hearth: [], path: []}
    with contextlib.ExitStack() as stack:
        targets = {p: Target(stack, (os.path.join(host.truth, "bench"), 1000)) for p in rows}
        started = {p: stack.enter_context(running((p, "record", "-F", 999, "-p", ",".join(map(str, t.pids())), "-o",
                                                   host.file(f"before{i}.otlp")), stop=signal.SIGINT))[0]
                   for i, (p, t) in enumerate(targets.items())}
        for p in started.values():
            settle(p, 2, "hearth record")
        for t in targets.values():
            t.tell(signal.SIGSTOP)
        for _ in range(ROUNDS * 3):
            for p in rows:
                rows[p].append(slice_ns(targets[p], started[p].pid, 0.3))
    show("a sample of a process without a runtime, 35 frames", "ns", *rows.values())
    figure("the same: the difference", "ns", median([a - b for a, b in zip(*rows.values())]), None, 10, absolute=True)


def runtimes(host):
    there = [language for language, name in LANGUAGES.items() if shutil.which(name) and
             os.access(script(language)[1], os.R_OK)]
    others = [language for language in there if language != "python"]
    with statistics_on():
        if "python" in there:
            compare(host, ["python"], DEPTHS, 999, 0.3, "hot", {"python": 0.5}, {("python", 20): 0.7})
            compare(host, ["python"], DEPTHS, 99, 1, "cold", {}, {("python", 20): 1.2, ("python", 100): 1.0}, "cold")
            start(host)
        if others:
            compare(host, others, DEPTHS, 999, 0.3, "hot", {"perl": 0.6, "ruby": 0.6}, {})
        before(host)
    if "python" in there:
        memory_of_python(host)
