# SPDX-License-Identifier: Apache-2.0
"""Probes: what a call costs that is not sampled, beside a probe whose program does nothing; and all kinds at once: the agent's memory."""
import os
import subprocess
import time

from measure import QUICK, figure, map_mb, note, resident_mb, settle


def hit_ns(host, *how):
    done = subprocess.run([os.path.join(host.bench, "hits"), "10" if QUICK else "40", *how], capture_output=True, text=True, check=True)
    return float(done.stdout)


def calls(host):
    program = os.path.join(host.bench, "hits")
    if not os.path.exists("/sys/bus/event_source/devices/uprobe"):
        note("this kernel has no uprobes: calls of functions are left out")
        return
    bare, mine, empty = [], [], []
    for _ in range(2 if QUICK else 6):
        bare.append(hit_ns(host))
        empty.append(hit_ns(host, "empty"))
        with host.record("calls.otlp", "-e", f"uprobe:{program}:hit", "-c", 100000000) as (h,):
            time.sleep(1.5)
            mine.append(hit_ns(host))
    figure("a call with a probe, not sampled (an empty program)", "ns", min(mine), min(empty), 1.2)
    note(f"{min(bare):.1f} ns without a probe; rounds {sorted(mine)}, empty {sorted(empty)}")


def kinds(host):
    """Resident memory and maps, with and without the kinds, of the same machine, once rings that grew at the start are small again
    (after 12 intervals)."""
    program = os.path.join(host.bench, "hits")
    every = ["--wakers", "--memory", "--heap", "-e", "cpu-clock"]
    if os.path.exists("/sys/bus/event_source/devices/uprobe"):
        every += ["-e", f"uprobe:{program}:hit"]
    taken = []
    with host.load("c_chain"), host.load("cpp_chain"):
        for options in ([], every):
            with host.record("kinds.otlp", "--report-interval", "1s", *options) as (h,):
                settle(h, 20 if QUICK else 30, "hearth")
                taken.append((map_mb(h.pid), resident_mb(h.pid)))
    (maps, own), (all_maps, all_own) = taken
    figure("memory more with all kinds (without: maps + resident)", "MB", all_maps + all_own - maps - own, maps + own, 10, absolute=True)
    note(f"maps {maps:.1f} -> {all_maps:.1f} MB, resident {own:.1f} -> {all_own:.1f} MB")


def probed(host):
    calls(host)
    kinds(host)
