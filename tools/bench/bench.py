#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The benchmarks: one line a figure, hearth's value beside its counterpart's from the same interleaved run, their ratio and the bar.

usage: bench.py BUILD [unwind] [cold] [start] [memory] [cpu]

unwind, cold  BPF time of hearth's sampler on a 35-deep program without frame pointers against a sampler with bpf_get_stack on
              the same program built with them (fpwalk.bpf.c); from the kernel's own BPF statistics. Every CPU runs the program
              and nothing else is sampled. Both sides take the kernel part too and send a record. A frame's price is a sample's
              less that of an empty program, divided by the user frames it had; a further frame's is what 30 frames more cost.
              cold: the program walks 64 MB of memory between samples.
start         from the exec of `hearth record` to the time of its first stack that reaches _start, CPUs busy.
memory        resident set with 200 processes alive; size of the stripped binary.
cpu           user + system time of `hearth record` in a window after its warm-up, which includes naming everything, against
              `perf record -a -g` beside it, CPUs busy: perf's whole run over that window, with the start and the end that a
              readable file takes; and perf in the window alone, when it only copies pages.

BENCH_QUICK=1: fewer and shorter rounds. The exit status is 0 unless something could not be measured.
"""
import contextlib
import glob
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

QUICK = os.environ.get("BENCH_QUICK", "0") != "0"
CPUS = sorted(os.sched_getaffinity(0))
FURTHER = 30  # frames by which the two builds of the chain differ
STATS = "/proc/sys/kernel/bpf_stats_enabled"
PERF_EVENT_PROGRAM = 7


def figure(name, unit, mine, other, bar, absolute=False):
    """Prints a line. The bar is for the ratio, or for hearth's value itself when absolute."""
    ratio = mine / other if other and other > 0 else None
    judged = mine if absolute else ratio
    verdict = "-" if bar is None or judged is None else "pass" if judged <= bar else "FAIL"
    limit = "-" if bar is None else f"<= {bar:g}{' ' + unit if absolute else ' x'}"
    print(f"{name:44} {mine:9.1f} {unit:3} {'-' if other is None else f'{other:.1f}':>9} {'-' if ratio is None else f'{ratio:.2f}':>6}"
          f"  {limit:12} {verdict}", flush=True)


def fail(text):
    sys.exit(f"bench: {text}")


def cpu_ns(pid):
    """User + system time of a process's living threads and children."""
    total = 0
    for path in glob.glob(f"/proc/{pid}/task/*/schedstat"):
        with contextlib.suppress(OSError), open(path, encoding="ascii") as f:
            total += int(f.read().split()[0])
    return total + sum(cpu_ns(c) for c in children(pid))


def children(pid):
    found = []
    for path in glob.glob(f"/proc/{pid}/task/*/children"):
        with contextlib.suppress(OSError), open(path, encoding="ascii") as f:
            found += [int(c) for c in f.read().split()]
    return found


def resident_mb(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        own = int(re.search(r"VmRSS:\s+(\d+) kB", f.read()).group(1)) / 1024
    return own + sum(resident_mb(c) for c in children(pid))


def write(path, text):
    with open(path, "w", encoding="ascii") as f:
        f.write(text)


@contextlib.contextmanager
def statistics_on():
    """The kernel's BPF run time statistics, which cost a little and are off otherwise."""
    with open(STATS, encoding="ascii") as f:
        was = f.read()
    write(STATS, "1")
    try:
        yield
    finally:
        write(STATS, was)


class Bench:
    def __init__(self, build):
        self.hearth = os.path.join(build, "hearth")
        self.fpwalk = os.path.join(build, "bench", "fpwalk")
        self.truth = os.path.join(build, "truth")
        self.dir = tempfile.TemporaryDirectory(prefix="hearth-bench-")
        self.perf = next((p for p in ("/usr/bin/perf",) if os.access(p, os.X_OK)), None)

    def file(self, name):
        return os.path.join(self.dir.name, name)

    @contextlib.contextmanager
    def running(self, *commands, stop=signal.SIGTERM, **options):
        """Runs commands in the background, stopped at the end; yields their Popen objects."""
        options = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "stdin": subprocess.DEVNULL, **options}
        started = [subprocess.Popen([str(a) for a in c], **options) for c in commands]
        try:
            yield started
        finally:
            for p in started:
                p.send_signal(stop)  # does nothing to one that has ended
            for p in started:
                try:
                    p.wait(10)
                except subprocess.TimeoutExpired:
                    p.kill()
                    p.wait()

    def load(self, program):
        """A copy of a truth program on every CPU, pinned."""
        return self.running(*[("taskset", "-c", cpu, os.path.join(self.truth, program), 1000) for cpu in CPUS])

    # --- BPF time ---
    def program_time(self, pid):
        """(run time ns, runs) of the perf_event programs that a process holds."""
        programs = {}
        for path in glob.glob(f"/proc/{pid}/fdinfo/*"):
            with contextlib.suppress(OSError), open(path, encoding="ascii") as f:
                info = dict(re.findall(r"^(\w+):\s*(\d+)$", f.read(), re.M))
                if info.get("prog_type") == str(PERF_EVENT_PROGRAM) and "prog_id" in info:
                    programs[info["prog_id"]] = (int(info["run_time_ns"]), int(info["run_cnt"]))
        if not programs:
            fail(f"process {pid} holds no perf_event program")
        return [sum(column) for column in zip(*programs.values())]

    def sample_ns(self, program, hz, seconds, sampler):
        """(BPF nanoseconds, user frames) of a sample of that program, by hearth, by fpwalk or by an empty program."""
        out = self.file("bench.otlp")
        with self.load(program) as targets:
            if sampler == "hearth":
                command = (self.hearth, "record", "-F", hz, "-p", ",".join(str(t.pid) for t in targets), "-o", out)
            else:
                command = (self.fpwalk, hz, sampler)
            with self.running(command, stop=signal.SIGINT, stdout=subprocess.PIPE, text=True) as (p,):
                time.sleep(1.5)
                if p.poll() is not None:
                    fail(f"'{' '.join(map(str, command))}' ended with status {p.returncode}")
                before = self.program_time(p.pid)
                time.sleep(seconds)
                after = self.program_time(p.pid)
        runs = after[1] - before[1]
        if runs < hz * seconds / 2:
            fail(f"only {runs} runs of the sampler in {seconds} s at {hz} Hz")
        return (after[0] - before[0]) / runs, self.frames_in(out) if sampler == "hearth" else int(p.stdout.read())

    def frames_in(self, capture):
        """How long the most frequent stack of a capture is."""
        text = subprocess.run([self.hearth, "report", capture, "--format", "folded"], capture_output=True, text=True, check=True).stdout
        return max(text.splitlines(), key=lambda line: int(line.rsplit(" ", 1)[1])).count(";")

    def unwind(self, kind, prefix, hz, rounds, seconds, frame_bar, sample_bar):
        sides = (("hearth", ""), ("fp", "_fp"))
        sample, frame, further = ([], []), ([], []), ([], [])
        with statistics_on():
            for _ in range(rounds):
                empty = self.sample_ns(prefix, hz, seconds, "empty")[0]
                for side, (sampler, suffix) in enumerate(sides):
                    deep, frames = self.sample_ns(prefix + suffix, hz, seconds, sampler)
                    shallow, _ = self.sample_ns(f"{prefix}_5{suffix}", hz, seconds, sampler)
                    if frames < 35:
                        fail(f"{sampler}: stacks of {frames} frames, the program is 35 deep")
                    sample[side].append(deep)
                    frame[side].append((deep - empty) / frames)
                    further[side].append((deep - shallow) / FURTHER)
        for name, values, bar in ("user frame", frame, frame_bar), ("further user frame", further, None), ("sample", sample, sample_bar):
            figure(f"BPF time a {name}, {kind}, {hz} Hz", "ns", statistics.median(values[0]), statistics.median(values[1]), bar)

    # --- start ---
    def first_stack_ms(self):
        out = self.file("start.otlp")
        began = time.time_ns()
        done = subprocess.run([self.hearth, "record", "-F", "99", "-d", "1.5", "-o", out], capture_output=True, text=True, check=False)
        if done.returncode:
            fail(f"hearth record: {done.stderr}")
        text = subprocess.run([self.hearth, "report", out, "--format", "print"], capture_output=True, text=True, check=True).stdout
        times = []
        for sample in text.split("------------------- New Sample --------------------\n")[1:]:
            rows = sample.partition("------------------- End Sample")[0].splitlines()
            if rows and ", Function: _start, " in rows[-1]:
                times += [int(t) for t in re.findall(r"^  Timestamp\[\d+\]: (\d+)", sample, re.M)]
        if not times:
            fail("no stack of the first 1.5 s reaches _start")
        return (min(times) - began) / 1e6

    def first_perf_ms(self):
        out = self.file("start.data")
        began = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        subprocess.run([self.perf, "record", "-q", "-k", "CLOCK_MONOTONIC", "-e", "cpu-clock", "-F", "99", "-a", "-g", "-o", out,
                        "sleep", "1"], capture_output=True, check=True)
        text = subprocess.run([self.perf, "script", "-i", out, "--ns", "-F", "time"], capture_output=True, text=True, check=True).stdout
        return (min(float(t) for t in re.findall(r"(\d+\.\d+):", text)) * 1e9 - began) / 1e6

    def start(self):
        mine, other = [], []
        with self.load("c_chain"):
            time.sleep(0.5)
            for _ in range(2 if QUICK else 5):
                mine.append(self.first_stack_ms())
                if self.perf:
                    other.append(self.first_perf_ms())
        figure("exec to first complete stack (perf: sample)", "ms", statistics.median(mine),
               statistics.median(other) if other else None, 300, absolute=True)

    # --- memory ---
    def memory(self):
        sleepers = self.running(*[("sleep", 1000)] * 200)
        record = self.running((self.hearth, "record", "-F", "99", "-o", self.file("memory.otlp")), stop=signal.SIGINT)
        perf = self.running(*self.perf_command("memory.data"), stop=signal.SIGINT)
        with sleepers, self.load("c_chain"), self.load("cpp_chain"), record as (h,), perf as others:
            time.sleep(5 if QUICK else 12)
            if h.poll() is not None:
                fail(f"hearth record ended with status {h.returncode}")
            figure("resident memory, 200 processes", "MB", resident_mb(h.pid), sum(map(lambda p: resident_mb(p.pid), others)) or None,
                   30, absolute=True)
        stripped = self.file("hearth")
        subprocess.run(["strip", "-o", stripped, self.hearth], check=True)
        figure("stripped binary", "MB", os.path.getsize(stripped) / 2**20, None, 5, absolute=True)

    # --- CPU ---
    def perf_command(self, name):
        if not self.perf:
            return []
        return [(self.perf, "record", "-q", "-e", "cpu-clock", "-F", "99", "-a", "-g", "-o", self.file(name))]

    def cpu(self):
        warm, seconds = (3, 10) if QUICK else (10, 30)
        record = self.running((self.hearth, "record", "-F", "99", "-o", self.file("cpu.otlp")), stop=signal.SIGINT)
        whole = alone = None
        with self.load("c_chain_fp"), record as (h,):
            time.sleep(warm)
            before = cpu_ns(h.pid)
            with self.running(*self.perf_command("cpu.data"), stop=signal.SIGINT) as perf:
                time.sleep(1)
                perf_before = sum(cpu_ns(p.pid) for p in perf)
                time.sleep(seconds - 1)
                used = cpu_ns(h.pid) - before
                if perf:
                    alone = (sum(cpu_ns(p.pid) for p in perf) - perf_before) / 1e6 * seconds / (seconds - 1)
                    perf[0].send_signal(signal.SIGINT)
                    usage = os.wait4(perf[0].pid, 0)[2]
                    perf[0].returncode = 0
                    whole = (usage.ru_utime + usage.ru_stime) * 1e3
        figure(f"agent CPU in {seconds} s at 99 Hz (perf: its run)", "ms", used / 1e6, whole, 0.6)
        figure(f"agent CPU in {seconds} s at 99 Hz (perf: the window)", "ms", used / 1e6, alone, None)


def main():
    bench = Bench(sys.argv[1])
    rounds = 2 if QUICK else 5
    figures = {
        "unwind": lambda: bench.unwind("hot", "bench", 999, rounds, 1, 0.6, 0.7),
        "cold": lambda: bench.unwind("cold", "bench_cold", 99, min(rounds, 3), 4, 1.2, 1.2),
        "start": bench.start,
        "memory": bench.memory,
        "cpu": bench.cpu,
    }
    if not bench.perf:
        print("bench: no perf here; figures against it have no counterpart", file=sys.stderr)
    print(f"{'figure':44} {'hearth':>9}     {'other':>9} {'ratio':>6}  bar")
    for name in sys.argv[2:] or figures:
        if name not in figures:
            fail(f"no figure '{name}'; there are: {' '.join(figures)}")
        figures[name]()
    return 0


if __name__ == "__main__":
    sys.exit(main())
