# SPDX-License-Identifier: Apache-2.0
"""Memory: hearth's resident set and its maps in the kernel, a map's page counted once; the helper apart."""
import contextlib
import os
import re
import subprocess
import time

from measure import LONG, QUICK, children, fail, figure, map_mb, note, read, resident_mb, running, settle


def helper_mb(pid):
    """Of the helper's processes, which share most pages: each page once."""
    total = 0
    for child in children(pid):
        with contextlib.suppress(OSError):
            total += sum(int(kb) for kb in re.findall(r"^Pss:\s+(\d+) kB", read(f"/proc/{child}/smaps_rollup"), re.M)) / 1024
            total += helper_mb(child)
    return total


def with_processes(host, count, bar, drift):
    seconds = 5 if QUICK else 15
    sleepers = running(*[("sleep", 100000)] * count)
    with sleepers, host.load("c_chain"), host.load("cpp_chain"), host.record("memory.otlp") as (h,), \
            running(*host.perf_command("memory.data")) as others:
        time.sleep(seconds)
        if h.poll() is not None:
            fail(f"hearth record ended with status {h.returncode}")
        maps, own = map_mb(h.pid), resident_mb(h.pid)
        perf = sum(resident_mb(p.pid) for p in others if p.poll() is None) or None
        figure(f"kernel maps + resident, {count:,} processes (perf: resident)", "MB", maps + own, perf, bar, absolute=True)
        note(f"maps {maps:.1f} MB, resident {own:.1f} MB; the helper apart {helper_mb(h.pid):.1f} MB")
        if drift:
            drifts(h.pid)


def drifts(pid):
    early, late = (5, 10) if QUICK else (60, 3600) if LONG else (60, 300)
    time.sleep(early)
    before = resident_mb(pid) + map_mb(pid)
    time.sleep(late - early)
    after = resident_mb(pid) + map_mb(pid)
    figure(f"the same after {late} s (beside it: after {early} s)", "MB", after, before, 1.02)


ALL_KINDS = ("-e", "cpu-clock", "--wakers", "--memory", "--heap", "-e", "uprobe:libc.so.6:getpid")


def with_kinds(host):
    """What all kinds take more than time on the CPUs alone, beside the same load; rings that grew at the start need a minute to shrink."""
    taken = []
    for options in ((), ALL_KINDS):
        with host.load("c_chain"), host.load("cpp_chain"), host.record("kinds.otlp", *options, hz=20) as (h,):
            settle(h, 15 if QUICK else 90, "hearth")
            taken.append((map_mb(h.pid), resident_mb(h.pid)))
    (maps, own), (all_maps, all_own) = taken
    figure("all kinds at once: more kernel maps + resident", "MB", all_maps + all_own - maps - own, None, 10, absolute=True)
    note(f"maps {maps:.1f} and {all_maps:.1f} MB, resident {own:.1f} and {all_own:.1f} MB")


def memory(host):
    with_processes(host, 200, 30, True)
    with_processes(host, 2000, 60, False)
    with_kinds(host)
    stripped = host.file("hearth")
    subprocess.run(["strip", "-o", stripped, host.hearth], check=True)
    figure("stripped binary", "MB", os.path.getsize(stripped) / 2**20, None, 5, absolute=True)
