# SPDX-License-Identifier: Apache-2.0
"""What the benchmarks share: the line a figure prints, running programs, and what the kernel says of a process: its CPU time,
its memory, its BPF programs and counters."""
import contextlib
import ctypes
import glob
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

QUICK = os.environ.get("BENCH_QUICK", "0") != "0"
LONG = os.environ.get("BENCH_LONG", "0") != "0"
TICK_HZ = os.sysconf("SC_CLK_TCK")
CPUS = sorted(os.sched_getaffinity(0))
STATS = "/proc/sys/kernel/bpf_stats_enabled"
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def header():
    print(f"{'figure':58} {'hearth':>9}       {'other':>9} {'ratio':>6}  bar")


def figure(name, unit, mine, other=None, bar=None, absolute=False, least=False):
    """Prints a line. The bar is for the ratio, or for hearth's value itself when absolute; least: it is a lower one."""
    ratio = mine / other if other and other > 0 else None
    judged = mine if absolute else ratio
    verdict = "-" if bar is None or judged is None else "pass" if (judged >= bar if least else judged <= bar) else "FAIL"
    limit = "-" if bar is None else f"{'>=' if least else '<='} {bar:g}{' ' + unit if absolute else ' x'}"
    print(f"{name:58} {mine:9.2f} {unit:5} {'-' if other is None else f'{other:.2f}':>9} {'-' if ratio is None else f'{ratio:.2f}':>6}"
          f"  {limit:14} {verdict}", flush=True)


def note(text):
    print(f"  {text}", flush=True)


def fail(text):
    sys.exit(f"bench: {text}")


def write(path, text):
    with open(path, "w", encoding="ascii") as f:
        f.write(text)


def read(path):
    with open(path, encoding="ascii", errors="replace") as f:
        return f.read()


median = statistics.median


# --- processes ---
def cpu_ns(pid, ended=False):
    """User + system time of a process's living threads and children. @ended: and of those it has waited for, in ticks."""
    total = 0
    if ended:
        with contextlib.suppress(OSError):
            total += sum(int(n) for n in read(f"/proc/{pid}/stat").rpartition(")")[2].split()[13:15]) * 10**9 // TICK_HZ
    for path in glob.glob(f"/proc/{pid}/task/*/schedstat"):
        with contextlib.suppress(OSError):
            total += int(read(path).split()[0])
    return total + sum(cpu_ns(c, ended) for c in children(pid))


def children(pid):
    found = []
    for path in glob.glob(f"/proc/{pid}/task/*/children"):
        with contextlib.suppress(OSError):
            found += [int(c) for c in read(path).split()]
    return found


def rusage_ms(process):
    """Waits for a process that was told to end; the user + system time of its life and its children's."""
    usage = os.wait4(process.pid, 0)[2]
    process.returncode = 0
    return (usage.ru_utime + usage.ru_stime) * 1e3


def resident_mb(pid):
    """Resident memory of one process, without the pages of maps that it has in view: those are the kernel's."""
    shared = 0
    name = ""
    for line in read(f"/proc/{pid}/smaps").splitlines():
        if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            name = line
        elif line.startswith("Rss:") and "bpf-map" in name:
            shared += int(line.split()[1])
    return (int(re.search(r"VmRSS:\s+(\d+) kB", read(f"/proc/{pid}/status")).group(1)) - shared) / 1024


def family(pid):
    return [pid] + [p for c in children(pid) for p in family(c)]


def family_pss_mb(pid, without_code=False):
    """Of a process of hearth's and all below it, by name: their shares of memory, without the pages of BPF's maps and of rings, which are
    the kernel's; and without those of programs and libraries, whose share is another one whenever somebody else begins to use them or ends."""
    total = {}
    for p in family(pid):
        name = ""
        with contextlib.suppress(OSError):
            comm = read(f"/proc/{p}/comm").strip()
            smaps = read(f"/proc/{p}/smaps")
            code = set(re.findall(r"^[0-9a-f]+-[0-9a-f]+ r-x.*?(/.*)$", smaps, re.M)) if without_code else ()
            for line in smaps.splitlines():
                if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
                    name = line
                elif line.startswith("Pss:") and not ("bpf-map" in name or "perf_event" in name or name[name.find("/") :] in code):
                    total[comm] = total.get(comm, 0) + int(line.split()[1]) / 1024
    return total


LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1


def die_with_bench():
    """In a child: programs that are measured take whole CPUs, some in real time, and must not outlive a benchmark that is killed."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


@contextlib.contextmanager
def running(*commands, stop=signal.SIGTERM, group=False, nice=0, **options):
    """Runs commands in the background, stopped at the end; yields their Popen objects. @group: with all they started."""
    options = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "stdin": subprocess.DEVNULL, **options}
    started = []

    def tell(p, sig):
        with contextlib.suppress(ProcessLookupError):
            if group:
                os.killpg(p.pid, sig)
            elif p.returncode is None:
                p.send_signal(sig)

    try:
        for c in commands:
            p = subprocess.Popen([str(a) for a in c], start_new_session=group, preexec_fn=die_with_bench, **options)
            started.append(p)
            if nice:
                os.setpriority(os.PRIO_PROCESS, p.pid, nice)
        yield started
    finally:
        for p in started:
            tell(p, stop)
        for p in started:
            try:
                p.wait(20)
            except subprocess.TimeoutExpired:
                tell(p, signal.SIGKILL)
                p.wait()
            if group:
                tell(p, signal.SIGKILL)  # what did not heed


# --- BPF ---
@contextlib.contextmanager
def statistics_on():
    """The kernel's BPF run time statistics, which cost a little and are off otherwise."""
    was = read(STATS)
    write(STATS, "1")
    try:
        yield
    finally:
        write(STATS, was)


def fd_infos(pid):
    for path in glob.glob(f"/proc/{pid}/fdinfo/*"):
        with contextlib.suppress(OSError):
            yield dict(re.findall(r"^(\w+):\s*(\S+)$", read(path), re.M))


PERF_EVENT_PROGRAM = "7"


def program_time(pid):
    """(run time ns, runs) of the perf_event programs that a process holds."""
    programs = {}
    for info in fd_infos(pid):
        if info.get("prog_type") == PERF_EVENT_PROGRAM and "prog_id" in info:
            programs[info["prog_id"]] = (int(info["run_time_ns"]), int(info["run_cnt"]))
    if not programs:
        fail(f"process {pid} holds no perf_event program")
    return [sum(column) for column in zip(*programs.values())]


def map_mb(pid):
    """Kernel memory of the maps that a process holds."""
    return sum({i["map_id"]: int(i["memlock"]) for i in fd_infos(pid) if "map_id" in i}.values()) / 2**20


def bpftool(*args):
    done = subprocess.run(["bpftool", "-j", *map(str, args)], capture_output=True, text=True, check=False)
    return json.loads(done.stdout) if done.returncode == 0 and done.stdout else None


class Counters:
    """hearth's own counters in the kernel, by their names in bpf/event.h; TAKEN: samples of all kinds."""

    def __init__(self, pid):
        listed = re.search(r"#define BPF_COUNTERS\(X\)(.*?)\n\n", read(os.path.join(TOP, "bpf", "event.h")), re.S).group(1)
        self.names = re.findall(r"X\((\w+),", listed)
        ids = {i["map_id"] for i in fd_infos(pid) if "map_id" in i}
        self.map = next((i for i in ids if (bpftool("map", "show", "id", i) or {}).get("name") == "cpu_states"), None)
        if self.map is None:
            fail(f"process {pid} holds no map cpu_states (is bpftool here?)")

    def read(self):
        sums = dict.fromkeys(["TAKEN", *self.names], 0)
        for entry in bpftool("map", "dump", "id", self.map):
            value = entry["formatted"]["value"]
            for name, count in zip(self.names, value["counters"]):
                sums[name] += count
            sums["TAKEN"] += sum(value["taken"])
        return sums


class Host:
    """Where things are, and a scratch folder."""

    def __init__(self, build):
        self.build = os.path.abspath(build)
        self.hearth = os.path.join(self.build, "hearth")
        self.bench = os.path.join(self.build, "bench")
        self.truth = os.path.join(self.build, "truth")
        self.dir = tempfile.TemporaryDirectory(prefix="hearth-bench-")
        self.perf = next((p for p in ("/usr/bin/perf",) if os.access(p, os.X_OK)), None)
        if not self.perf:
            print("bench: no perf here; figures against it have no counterpart", file=sys.stderr)

    def file(self, name):
        return os.path.join(self.dir.name, name)

    def record(self, name, *options, hz=99, **how):
        return running((self.hearth, "record", "-F", hz, *options, "-o", self.file(name)), stop=signal.SIGINT, **how)

    def report(self, name, form):
        done = subprocess.run([self.hearth, "report", self.file(name), "--format", form], capture_output=True, text=True, check=True)
        return done.stdout

    def perf_command(self, name):
        if not self.perf:
            return []
        return [(self.perf, "record", "-q", "-e", "cpu-clock", "-F", "99", "-a", "-g", "-o", self.file(name))]

    def load(self, program, folder=None, **how):
        """A copy of a truth program (or of one in @folder) on every CPU, pinned."""
        path = os.path.join(folder or self.truth, program)
        return running(*[("taskset", "-c", cpu, path, 1000) for cpu in CPUS], **how)


def compiling(host):
    """hearth's own sources over and over, in a folder of their own."""
    return running(("sh", "-c", f'while :; do make -C {TOP} -j2 BUILD={host.file("build")}; rm -r {host.file("build")}; done'),
                   group=True)


def settle(process, seconds, what):
    """Until a sampler runs, and @seconds more."""
    end = time.monotonic() + 20
    while process.poll() is None and time.monotonic() < end:
        if any(info.get("prog_type") == PERF_EVENT_PROGRAM for info in fd_infos(process.pid)):
            break
        time.sleep(0.1)
    time.sleep(seconds)
    if process.poll() is not None:
        fail(f"{what} ended with status {process.returncode}")
