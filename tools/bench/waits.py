# SPDX-License-Identifier: Apache-2.0
"""What sampling time off the CPUs costs: two processes that wake each other, without anybody, beside hearth, and beside bcc's
offcputime (libbpf-tools or bpfcc-tools), in turns."""
import contextlib
import os
import shutil
import subprocess
import time

from measure import QUICK, bpftool, fd_infos, figure, median, note, running, statistics_on

EMPTY_NS = 55  # that an empty program reads: the clock of the statistics itself
BCC = ("offcputime", "offcputime-bpfcc")
PATHS = "/usr/sbin:/usr/share/bcc/tools:/usr/bin"


@contextlib.contextmanager
def hearth(host, *options):
    with host.record("waits.otlp", "--off-cpu", *options) as (h,):
        time.sleep(1.5)
        yield h


@contextlib.contextmanager
def offcputime():
    tool = next((p for p in (shutil.which(n, path=PATHS) for n in BCC) if p), None)
    if not tool:
        yield None
        return
    with running((tool, "3600")) as (p,):
        time.sleep(2.5)  # it compiles, or loads
        yield p if p.poll() is None else None


def switches(host, *arguments):
    return subprocess.run((os.path.join(host.build, "bench", "switches"), *map(str, arguments)), capture_output=True, text=True, check=True).stdout


def switch_ns(host, steps):
    """The least of some rounds: others use the machine, too."""
    return float(switches(host, steps, 10 if QUICK else 30).split()[0])


def beside(host, spin_ns, rounds):
    """Nanoseconds a switch without anybody, and by how many percent it is slower with hearth, with hearth and wakers, and with offcputime
    (None: it is not there): medians of rounds, each beside the better one of two without, before and after."""
    steps = int(switches(host, spin_ns)) if spin_ns else 0
    ways = (lambda: hearth(host), lambda: hearth(host, "--wakers"), offcputime)
    plain, slower = [switch_ns(host, steps)], [[] for _ in ways]
    for _ in range(rounds):
        taken = []
        for way in ways:
            with way() as who:
                taken.append(switch_ns(host, steps) if who else None)
        plain.append(switch_ns(host, steps))
        for i, ns in enumerate(taken):
            if ns:
                slower[i].append(100 * (ns / min(plain[-2:]) - 1))
    return min(plain), *(median(s) if s else None for s in slower)


def program_ns(host):
    """What on_switch and on_waking take of a switch in the mean, by the kernel's own statistics."""
    with statistics_on(), hearth(host) as h:
        switch_ns(host, 0)
        infos = [i for i in fd_infos(h.pid) if "prog_id" in i and "run_time_ns" in i]  # links have the first, too
        names = {i["prog_id"]: (bpftool("prog", "show", "id", i["prog_id"]) or {}).get("name") for i in infos}
        taken = {names[i["prog_id"]]: (int(i["run_time_ns"]), int(i["run_cnt"])) for i in infos}
    return sum(taken[n][0] / taken[n][1] - EMPTY_NS for n in ("on_switch", "on_waking"))


def waits(host):
    rounds = 3 if QUICK else 9
    figure("BPF time of a sleep, switch and waking", "ns", program_ns(host), bar=250, absolute=True)
    for spin_ns, what in ((0, "as many as can be"), (7500, "some 100,000 a second")):
        plain, mine, wakers, other = beside(host, spin_ns, rounds)
        if other is None:
            note("no offcputime (libbpf-tools, bpfcc-tools): left out")
        for name, percent in (("", mine), (", --wakers", wakers)):
            figure(f"a switch, {what}{name}: slower by (offcputime)", "%", percent, other, 2 if spin_ns else None, absolute=bool(spin_ns))
        note(f"{plain:.0f} ns a switch without, {1e9 / plain:.0f} a second")
