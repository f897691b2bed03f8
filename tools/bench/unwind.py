# SPDX-License-Identifier: Apache-2.0
"""BPF time of hearth's sampler against a sampler with bpf_get_stack (bpf/fpwalk.bpf.c), from the kernel's own statistics.

Every CPU runs the program, at a high priority, and hearth samples nothing else. Both sides take the kernel part too and send a
record. A frame's price is a sample's less that of an empty program, divided by the user frames it had."""
import os
import shutil
import signal
import subprocess
import time

from measure import CPUS, QUICK, fail, figure, median, note, program_time, running, settle, statistics_on

ROUNDS = 2 if QUICK else 5
FURTHER = 30  # frames by which the two builds of the chain differ
TARGET_NICE = 0 if QUICK else -20  # quick ones are for trying it out, beside other work


def frames_in(host, capture):
    """How long the most frequent stack of a capture is."""
    return max(host.report(capture, "folded").splitlines(), key=lambda line: int(line.rsplit(" ", 1)[1])).count(";")


def sample_ns(host, command, hz, seconds, sampler):
    """(BPF nanoseconds, user frames) of a sample of that program, by hearth, by fpwalk or by an empty program."""
    targets = running(*[("taskset", "-c", cpu, *command) for cpu in CPUS], nice=TARGET_NICE)
    with targets as processes:
        if sampler == "hearth":
            run = (host.hearth, "record", "-F", hz, "-p", ",".join(str(t.pid) for t in processes), "-o", host.file("unwind.otlp"))
        else:
            run = (os.path.join(host.bench, "fpwalk"), hz, sampler, *[t.pid for t in processes])
        with running(run, stop=signal.SIGINT, nice=TARGET_NICE, stdout=subprocess.PIPE, text=True) as (p,):
            settle(p, 1.5, " ".join(map(str, run)))
            before = program_time(p.pid)
            time.sleep(seconds)
            after = program_time(p.pid)
    runs = after[1] - before[1]
    if runs < hz * seconds / 2:
        fail(f"only {runs} runs of the sampler in {seconds} s at {hz} Hz")
    return (after[0] - before[0]) / runs, frames_in(host, "unwind.otlp") if sampler == "hearth" else int(p.stdout.read())


def compare(host, hz, seconds, mine, other, sampler="fp", rounds=ROUNDS):
    """Medians of interleaved rounds: ((ns a sample, ns a frame, frames) of hearth, the same of the other sampler)."""
    rows = ([], [])
    for _ in range(rounds):
        empty = sample_ns(host, mine, hz, seconds, "empty")[0]
        for side, (command, by) in enumerate(((mine, "hearth"), (other, sampler))):
            ns, frames = sample_ns(host, command, hz, seconds, by)
            rows[side].append((ns, (ns - empty) / max(frames, 1), frames))
    return [[median(column) for column in zip(*side)] for side in rows]


def chain(host, kind, prefix, hz, rounds, seconds, frame_bar, sample_bar, peer_us):
    """The 35-deep C program, and the same with 30 frames less."""
    def program(name):
        return (os.path.join(host.truth, name), 1000)

    rows, further = ([], []), ([], [])
    with statistics_on():
        for _ in range(rounds):
            empty = sample_ns(host, program(prefix), hz, seconds, "empty")[0]
            for side, (sampler, suffix) in enumerate((("hearth", ""), ("fp", "_fp"))):
                deep, frames = sample_ns(host, program(prefix + suffix), hz, seconds, sampler)
                shallow, _ = sample_ns(host, program(f"{prefix}_5{suffix}"), hz, seconds, sampler)
                if frames < 35:
                    fail(f"{sampler}: stacks of {frames} frames, the program is 35 deep")
                rows[side].append((deep, (deep - empty) / frames))
                further[side].append((deep - shallow) / FURTHER)
    (sample, frame), (other_sample, other_frame) = [[median(column) for column in zip(*side)] for side in rows]
    figure(f"BPF time a user frame, {kind}, {hz} Hz", "ns", frame, other_frame, frame_bar)
    figure(f"BPF time a further user frame, {kind}, {hz} Hz", "ns", median(further[0]), median(further[1]))
    figure(f"BPF time a sample, {kind}, {hz} Hz", "ns", sample, other_sample, sample_bar)
    figure(f"the same, to the 35-frame sample of a peer: {peer_us} us", "us", sample / 1e3, peer_us, 0.1)


def hot(host):
    chain(host, "hot", "bench", 999, ROUNDS, 1, 0.5, 0.7, 22.6)


def cold(host):
    chain(host, "cold", "bench_cold", 99, min(ROUNDS, 3), 4, 1.2, 1.2, 37.8)


def against_frame_pointers(host, what, mine, other):
    with statistics_on():
        (sample, _, frames), (other_sample, _, other_frames) = compare(host, 999, 1, mine, other)
    figure(f"BPF time a sample, {what} ({frames:.0f}, {other_frames:.0f} frames)", "ns", sample, other_sample, 0.9)


def cpp(host):
    """80 functions and methods over 40 files, built twice."""
    against_frame_pointers(host, "C++ of 40 files", *[(os.path.join(host.bench, f"many{s}"), 1000) for s in ("", "_fp")])


def go(host):
    """Go keeps frame pointers: the same binary on both sides."""
    program = os.path.join(host.bench, "many_go")
    if not os.access(program, os.X_OK):
        return note("no go: its figure is left out")
    return against_frame_pointers(host, "Go", *[(program, 1000)] * 2)


def node(host):
    """JSON.stringify of deep arrays, which is C++. The same binary on both sides: node's own C++ and its JIT code keep frame
    pointers. What does not keep them (libc, small leaves) bpf_get_stack leaves out, which favours it."""
    if not shutil.which("node"):
        return note("no node: its figure is left out")
    program = (shutil.which("node"), os.path.join(os.path.dirname(__file__), "load", "stringify.js"), 1000)
    return against_frame_pointers(host, "node's C++", program, program)


def depth(host):
    """Is the price linear? Every frame is another function."""
    per = []
    with statistics_on():
        for count in 35, 264, 1000:
            program = (os.path.join(host.bench, f"deep{count}"), 1000)
            rows = [sample_ns(host, program, 999, 1, s) for _ in range(min(ROUNDS, 3)) for s in ("empty", "hearth")]
            ns = median(r[0] for r in rows[1::2]) - median(r[0] for r in rows[::2])
            frames = rows[1][1]
            if frames < count:
                fail(f"stacks of {frames} frames, the program is {count} deep")
            per.append(ns / frames)
            figure(f"BPF time a user frame, {frames} different functions deep", "ns", per[-1], per[0], 1.0 if len(per) > 1 else None)


def programs(host):
    """Size of the BPF programs and what the verifier had to do."""
    for form, option in ("bpf_loop", ()), ("tail calls", ("--no-bpf-loop",)):
        done = subprocess.run([host.hearth, "record", "-d", "0.1", "--bpf-log-level", "1", *option, "-o", host.file("log.otlp")],
                              capture_output=True, text=True, check=True)
        name = None
        times = {}
        for line in done.stderr.splitlines():
            if line.startswith("--- the verifier on "):
                name = line.split()[4]
            elif line.startswith("verification time ") and name:
                times[name] = int(line.split()[2]) / 1e3
            elif line.startswith("processed ") and name:
                figure(f"instructions the verifier walked, {name} ({form})", "insns", int(line.split()[1]), None, 1e6, absolute=True)
                figure(f"the verifier's time, {name}", "ms", times.get(name, 0))
