# SPDX-License-Identifier: Apache-2.0
"""--memory and --heap: what a page fault costs more, and the agent's CPU time for a Go program that allocates 1 GB a second."""
import os
import subprocess
import time

from measure import QUICK, cpu_ns, figure, median, note, running, settle


def fault_ns(host):
    done = subprocess.run([os.path.join(host.bench, "faults"), "100"], capture_output=True, text=True, check=True)
    return float(done.stdout)


def faults(host):
    without, within = [], []
    for _ in range(2 if QUICK else 5):
        without.append(fault_ns(host))
        with host.record("faults.otlp", "--memory") as (h,):
            settle(h, 1, "hearth")
            within.append(fault_ns(host))
    figure("a page fault more with --memory", "us", (min(within) - min(without)) / 1000, None, 0.3, absolute=True)
    note(f"best of each round, with: {sorted(within)}; without: {sorted(without)} ns")


def agent_percent(host, pid, *options):
    seconds = 5 if QUICK else 20
    with host.record("heap.otlp", "-p", pid, *options) as (h,):
        settle(h, 3, "hearth")
        before = cpu_ns(h.pid)
        time.sleep(seconds)
        return 100 * (cpu_ns(h.pid) - before) / (seconds * 1e9)


def go_heap(host):
    program = os.path.join(host.bench, "heap_go")
    if not os.access(program, os.X_OK):
        note("no go here: heaps of Go programs are left out")
        return
    with running((program, 1000), stdin=subprocess.PIPE) as (p,):
        time.sleep(1)
        pairs = [(agent_percent(host, p.pid), agent_percent(host, p.pid, "--heap")) for _ in range(1 if QUICK else 3)]
    figure("the agent with --heap, Go allocating 1 GB/s: more of a CPU", "%", median([b - a for a, b in pairs]), None, 0.5, absolute=True)


def touched(host):
    faults(host)
    go_heap(host)
