# SPDX-License-Identifier: Apache-2.0
"""How soon the first stacks are complete: of hearth itself, and of each new process."""
import os
import re
import signal
import subprocess
import time

from measure import QUICK, fail, figure, median, note, running

TRUNCATED = "hearth.stack.truncated"


class Sample:
    """A sample of `hearth report --format print`."""

    def __init__(self, pid, text):
        self.pid = pid
        self.comm = (re.search(r"^  thread\.name: (.*)$", text, re.M) or [None, ""])[1]
        self.times = [int(t) for t in re.findall(r"^  Timestamp\[\d+\]: (\d+)", text, re.M)]
        self.is_complete = TRUNCATED not in text
        self.user = [line for line in text.splitlines() if line.startswith("Instrumentation: native")]

    def first_ns(self):
        return min(self.times)


def samples_of(host, name):
    samples = []
    for resource in host.report(name, "print").split("--------------- New Resource Profile --------------\n")[1:]:
        pid = int((re.search(r"^  process\.pid: (\d+)$", resource, re.M) or [0, "0"])[1])
        for text in resource.split("------------------- New Sample --------------------\n")[1:]:
            samples.append(Sample(pid, text.partition("------------------- End Sample")[0]))
    return [s for s in samples if s.times]


def first_stack_ms(host):
    began = time.time_ns()
    done = subprocess.run([host.hearth, "record", "-F", "99", "-d", "1.5", "-o", host.file("start.otlp")], capture_output=True,
                          text=True, check=False)
    if done.returncode:
        fail(f"hearth record: {done.stderr}")
    times = [s.first_ns() for s in samples_of(host, "start.otlp") if s.user and ", Function: _start, " in s.user[-1]]
    if not times:
        fail("no stack of the first 1.5 s reaches _start")
    return (min(times) - began) / 1e6


def first_perf_ms(host):
    out = host.file("start.data")
    began = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    subprocess.run([host.perf, "record", "-q", "-k", "CLOCK_MONOTONIC", "-e", "cpu-clock", "-F", "99", "-a", "-g", "-o", out,
                    "sleep", "1"], capture_output=True, check=True)
    text = subprocess.run([host.perf, "script", "-i", out, "--ns", "-F", "time"], capture_output=True, text=True, check=True).stdout
    return (min(float(t) for t in re.findall(r"(\d+\.\d+):", text)) * 1e9 - began) / 1e6


def start(host):
    mine, other = [], []
    with host.load("c_chain"):
        time.sleep(0.5)
        for _ in range(2 if QUICK else 5):
            mine.append(first_stack_ms(host))
            if host.perf:
                other.append(first_perf_ms(host))
    figure("exec to first complete stack (perf: sample)", "ms", median(mine), median(other) if other else None, 150, absolute=True)


PROGRAMS = ("ls", "cat", "sed", "mawk", "sort", "date")


def says_wrong_name(sample):
    """Frames of a program that only it has, under another name."""
    inside = {p for p in PROGRAMS if any(f"/usr/bin/{p}" == f.rpartition("File: ")[2] for f in sample.user)}
    if any(re.search(r"Function: (brief|leaf),", f) for f in sample.user):
        inside.add("short")
    return inside and sample.comm not in inside


def first(host):
    """The first sample of each process where processes come and go by the dozen."""
    loop = "while :; do ls /usr/bin | sort -r | sed s/a/b/g | mawk '{ n += length($0) } END { print n }'; cat /etc/passwd; date; done"
    seconds = 5 if QUICK else 20
    with host.record("first.otlp", hz=999) as (h,):
        time.sleep(2)
        ours = time.time_ns()
        with running((os.path.join(host.truth, "short"), seconds), ("sh", "-c", loop), group=True) as parents:
            time.sleep(seconds)
            parents = [p.pid for p in parents]
        time.sleep(0.2)
        h.send_signal(signal.SIGINT)
        h.wait(30)
    firsts = {}
    for s in samples_of(host, "first.otlp"):
        if s.pid not in parents and (s.pid not in firsts or s.first_ns() < firsts[s.pid].first_ns()):
            firsts[s.pid] = s
    firsts = [s for s in firsts.values() if s.comm in (*PROGRAMS, "short", "again", "sh") and s.first_ns() > ours]
    complete = sum(s.is_complete for s in firsts)
    wrong = sum(bool(says_wrong_name(s)) for s in firsts)
    if len(firsts) < 20 * seconds:
        note(f"only {len(firsts)} new processes were sampled")
    figure(f"first samples that are complete, of {len(firsts)} processes", "%", 100 * complete / max(len(firsts), 1), None, 99.9,
           absolute=True, least=True)
    figure("first samples under another program's name", "", wrong, None, 0, absolute=True)
