# SPDX-License-Identifier: Apache-2.0
"""What functions of scripts cost: BPF time of chains beside bpf_get_stack on a C program of the same depth, the start of a program
with many functions, memory.

A chain's part is the difference between hearth and hearth without that runtime on the same program, its sample that part and a record
without a stack. Programs wait, stopped, while
others are measured: slices of all of them in turn, whose medians and 10th percentiles count, as a virtual CPU's neighbours are noise.
One CPU alone is used, in real time and for a part of it, so that other work neither disturbs nor is stopped."""
import contextlib
import os
import shutil
import signal
import statistics
import subprocess
import time

import memory
from measure import (CPUS, QUICK, STATS, Counters, fail, figure, map_mb, median, note, program_time, read, resident_mb, running, settle,
                     statistics_on, write)

DEPTHS = 5, 20, 100
ROUNDS = 3 if QUICK else 12
CPU = CPUS[-1]
BREAK_SECONDS = 0.3  # between slices
OLD_SECONDS = 11  # functions that were first seen so long ago are looked at once a second (OLD_NS of bpf/runtime/chain.bpf.h)
LOAD = os.path.join(os.path.dirname(__file__), "load")
LANGUAGES = {"python": "python3", "php": "php", "perl": "perl", "ruby": "ruby"}


@contextlib.contextmanager
def real_time():
    """This process before all others, those that it starts as ever."""
    os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(2))
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def p10(values):
    return statistics.quantiles(values, n=10)[0] if len(values) > 1 else values[0]


def script(language, *arguments):
    path = os.path.join(LOAD, "chain." + {"python": "py", "php": "php", "perl": "pl", "ruby": "rb"}[language])
    return (shutil.which(LANGUAGES[language]), path, *arguments)


class Target:
    """A program that is stopped but while it is measured."""

    def __init__(self, stack, command):
        time.sleep(BREAK_SECONDS)
        # In turn: the thread that takes SIGSTOP must get to run beside one that never waits.
        self.process, = stack.enter_context(running(("chrt", "-r", 1, "taskset", "-c", CPU, *command), stop=signal.SIGKILL))
        self.pid = self.process.pid
        time.sleep(0.3)  # until it is deep
        self.tell(signal.SIGSTOP)

    def tell(self, sig):
        if self.process.poll() is not None:
            fail(f"{self.process.args} ended with status {self.process.returncode}")
        self.process.send_signal(sig)

    @contextlib.contextmanager
    def runs(self):
        time.sleep(BREAK_SECONDS)
        self.tell(signal.SIGCONT)
        try:
            yield
        finally:
            self.tell(signal.SIGSTOP)


def slice_ns(target, sampler, seconds):
    """BPF nanoseconds a sample of one slice; of another if somebody turned the statistics off meanwhile."""
    while True:
        with target.runs():
            write(STATS, "1")
            time.sleep(0.05)
            before = program_time(sampler)
            time.sleep(seconds)
            after = program_time(sampler)
            was_counted = read(STATS).strip() == "1"
        if was_counted and after[1] > before[1]:
            return (after[0] - before[0]) / (after[1] - before[1])


class Samplers:
    """hearth with all runtimes and with none, at the same time; bpf_get_stack for a slice."""

    def __init__(self, host, stack, hz, with_chains, without):
        self.host, self.hz = host, hz
        self.all, self.none = [stack.enter_context(running(
            (host.hearth, "record", "-F", hz, "-C", CPU, "--runtimes", runtimes, "-p", ",".join(str(t.pid) for t in targets),
             "-o", host.file(f"{runtimes}.otlp")), stop=signal.SIGINT))[0]
            for runtimes, targets in (("all", with_chains), ("none", without))]
        for p in self.all, self.none:
            settle(p, 1, "hearth record")

    def other_slice(self, what, target, seconds):
        """Of bpf_get_stack (fp), or of a record without a stack (record)."""
        command = ("taskset", "-c", CPU, os.path.join(self.host.bench, "fpwalk"), self.hz, what, target.pid)
        with running(command, stop=signal.SIGINT, stdout=subprocess.PIPE, text=True) as (p,):
            settle(p, 0.1, "fpwalk")
            ns = slice_ns(target, p.pid, seconds)
        self.frames = int(p.stdout.read())
        return ns


def chain_slices(host, languages, depths, hz, seconds, *cold):
    """Nanoseconds: {(language, depth): [the whole sample]}, {(language, depth): [without its chain]}, {depth: [bpf_get_stack]},
    [a record without a stack]."""
    keys = [(language, depth) for language in languages for depth in depths]
    whole, without, stacks, records = {k: [] for k in keys}, {k: [] for k in keys}, {d: [] for d in depths}, []
    with real_time(), contextlib.ExitStack() as stack:
        mine, bare = [{k: Target(stack, script(k[0], k[1], *cold)) for k in keys} for _ in range(2)]
        other = {d: Target(stack, (os.path.join(host.bench, "depth"), d, *cold)) for d in depths}
        samplers = Samplers(host, stack, hz, mine.values(), bare.values())
        for t in (*mine.values(), *bare.values()):  # are met
            with t.runs():
                time.sleep(0.3)
        time.sleep(OLD_SECONDS)
        for _ in range(ROUNDS):
            for key in keys:
                whole[key].append(slice_ns(mine[key], samplers.all.pid, seconds))
                without[key].append(slice_ns(bare[key], samplers.none.pid, seconds))
            for depth in depths:
                stacks[depth].append(samplers.other_slice("fp", other[depth], seconds))
                if abs(samplers.frames - depth) > 3:
                    fail(f"bpf_get_stack finds {samplers.frames} frames, the program has {depth}")
            records.append(samplers.other_slice("record", other[depths[0]], seconds))
    return whole, without, stacks, records


def show(name, mine, other, bar=None):
    """@mine and @other make a value out of a measure of slices. Medians, which are judged, and 10th percentiles."""
    figure(name, "ns", mine(median), other(median), bar)
    note(f"10th percentiles {mine(p10):.1f} ns, {other(p10):.1f} ns")


def compare(host, languages, depths, hz, seconds, kind, frame_bar, sample_bars, *cold):
    few, many = depths[0], depths[-1]
    whole, without, stacks, records = chain_slices(host, languages, depths, hz, seconds, *cold)
    for language in languages:
        def chain(of, depth, language=language):
            return of(whole[language, depth]) - of(without[language, depth])

        for depth in depths:
            show(f"{language}: {depth} frames by their chain, {kind}", lambda of: chain(of, depth) + of(records), lambda of: of(stacks[depth]),
                 sample_bars.get((language, depth)))
            show(f"{language}: {depth} frames, native walk too, {kind}", lambda of: of(whole[language, depth]), lambda of: of(stacks[depth]))
        show(f"{language}: a frame more, {kind}", lambda of: (chain(of, many) - chain(of, few)) / (many - few),
             lambda of: (of(stacks[many]) - of(stacks[few])) / (many - few), frame_bar.get(language))
    note(f"a record without a stack {median(records):.0f} ns, 10th percentile {p10(records):.0f} ns")


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
                counters = Counters(h.pid)
                counted = counters.read()
                before, bpf = os.times(), program_time(h.pid)[0]
                for _ in range(times):
                    subprocess.run(command, check=True)
                after = os.times()
                cpu = after.children_user + after.children_system - before.children_user - before.children_system
                ns = program_time(h.pid)[0] - bpf
                counted = {k: v - counted[k] for k, v in counters.read().items()}
                used.setdefault(runtimes, []).append((ns / times, cpu / times * 1e9, counted["OBJECTS"] / times, counted["TAKEN"] / times))
    chain, cpu = median([a[0] - b[0] for a, b in zip(used["all"], used["none"])]), median([u[1] for u in used["all"]])
    figure("import asyncio, http.client, json at 999 Hz: chains, objects", "%", 100 * chain / cpu, None, 0.5, absolute=True)
    whole, objects, samples = [median([u[i] for u in used["all"]]) for i in (0, 2, 3)]
    note(f"{chain / 1e3:.0f} us of {cpu / 1e6:.0f} ms of CPU time, {objects:.0f} objects, {samples:.0f} samples; whole samples {whole / 1e3:.0f} us")


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
    with real_time(), contextlib.ExitStack() as stack:
        targets = {p: Target(stack, (os.path.join(host.truth, "bench"), 1000)) for p in rows}
        started = {p: stack.enter_context(running((p, "record", "-F", 999, "-C", CPU, "-p", t.pid, "-o",
                                                   host.file(f"before{i}.otlp")), stop=signal.SIGINT))[0]
                   for i, (p, t) in enumerate(targets.items())}
        for p in started.values():
            settle(p, 2, "hearth record")
        for t in targets.values():
            with t.runs():
                time.sleep(0.3)
        for _ in range(ROUNDS * 3):
            for p in rows:
                rows[p].append(slice_ns(targets[p], started[p].pid, 0.3))
    show("a sample of a process without a runtime, 35 frames", lambda of: of(rows[host.hearth]), lambda of: of(rows[path]))
    figure("the same, the difference", "ns", median([a - b for a, b in zip(*rows.values())]), None, 10, absolute=True)


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
