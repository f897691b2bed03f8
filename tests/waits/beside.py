#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""beside.py BUILD [waits|faults|calls...]: programs that say what they did, as hearth tells it and as other tools count it: perf, bcc's
offcputime (libbpf-tools), bpftrace. One table each; the tools look at the same run, all at once. A tool that is not here is left out
aloud. Needs root. Ends with 1 where hearth is further from the program's own account than its bars."""
import collections
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(sys.argv[1])
HEARTH = os.path.join(BUILD, "hearth")
TOOL_PATH = "/usr/sbin:/usr/bin:/usr/share/bcc/tools"
THREADS = ("nap", "doze", "forever", "pipe", "feed", "lock", "poll", "burn")
failed = False


def left_out(what, why):
    print(f"left out: {what} {why}", flush=True)


def find(name):
    path = shutil.which(name, path=TOOL_PATH)
    if not path:
        left_out(name, "it is not here")
    return path


def wrong(text):
    global failed
    failed = True
    print(f"wrong: {text}", flush=True)


def run(*command, **how):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False, **how)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: status {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout


@contextlib.contextmanager
def beside(name, command, ready):
    """Runs a tool until the end of the block. Yields the path of what it prints, or None. @ready: told by its output when it looks."""
    path = command[0] and name + ".out"
    if not path:
        yield None
        return
    with open(path, "w") as out, subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL) as p:
        end = time.monotonic() + 120
        while p.poll() is None and time.monotonic() < end and not ready(path):
            time.sleep(0.2)
        alive = p.poll() is None
        if not alive:
            left_out(name, open(path).read().strip().splitlines()[-1:])
        yield path if alive else None
        if ready is told_that_it_records:  # it ends with its program
            p.wait(300)
        if p.poll() is None:
            p.send_signal(signal.SIGINT)
            p.wait(120)


def says(text):
    return lambda path: text in open(path).read()


told_that_it_records = says("profiles go to")


def watched(command, options, *tools):
    """Runs a program under hearth beside tools, which are all there before it begins. Returns what it printed and what the tools have."""
    run("rm", "-f", "go")
    late = ("sh", "-c", 'echo $$ >pid; until [ -e go ]; do sleep 0.1; done; exec "$@"', "sh", *command)
    # perf is the last that begins and the first that ends: it cannot read what the kernel says of others' BPF programs
    with contextlib.ExitStack() as rest:
        hearth = rest.enter_context(beside("hearth", (HEARTH, "record", *options, "-o", "x.otlp", "--", *late), told_that_it_records))
        with contextlib.ExitStack() as stack:
            found = [stack.enter_context(t()) for t in tools]
            open("go", "w").close()
            end = time.monotonic() + 300
            while hearth and "taken = " not in open(hearth).read() and time.monotonic() < end:
                time.sleep(0.1)
    return open("hearth.out").read(), *found


def bpftrace(program):
    tool = find("bpftrace")
    return beside("bpftrace", (tool, "-q", "-e", 'BEGIN { printf("ready\\n"); } ' + program), says("ready"))


def perf_record(event):
    tool = find("perf")

    # it runs the command once it records, and ends with it or by a signal
    return beside("perf", (tool, "record", "-q", "-a", "-c", "1", "-m", "1024", "-e", event, "-o", "perf.data", "--", "sh", "-c", "echo ready; exec sleep 600"), says("ready"))


def perf_stat(event):
    """Counts an event of the program, which waits for its beginning then."""
    tool = find("perf")

    def begun(_):
        return not time.sleep(1)

    return beside("perf", (tool, "stat", "-x,", "-e", event, "-p", open("pid").read().strip()), begun)


def perf_script(fields):
    done = subprocess.run(("perf", "script", "-i", "perf.data", "-F", fields), capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode:  # as where others load BPF programs meanwhile, of which it cannot read what the kernel says
        left_out("perf", f"it cannot read what it recorded: {done.stderr.strip().splitlines()[-1]}")
        return ""
    return done.stdout


def by_key(path, name):
    """bpftrace's map @NAME[KEY]: COUNT, or @NAME: COUNT."""
    return {m[0]: int(m[1]) for m in re.findall(rf"^@{name}(?:\[([^\]]*)\])?: (\d+)$", open(path).read(), re.M)} if path else {}


def cell(value, form):
    return f"{'-' if value is None else format(value, form):>12}"


def table(title, columns, rows, form):
    print(f"\n{title}\n{'':24}" + "".join(f"{c:>12}" for c in columns))
    for name, *values in rows:
        print(f"{name:24}" + "".join(cell(v, form) for v in values), flush=True)


# --- waits ---
def told_by_hearth(file):
    """{(thread name, type): sum}, {(type, system call): sum}"""
    run(HEARTH, "convert", file, "x.otlp.json")
    profile = json.load(open("x.otlp.json"))
    d = profile["dictionary"]
    strings = d["stringTable"]
    by_thread, by_call = collections.Counter(), collections.Counter()
    for p in (p for r in profile["resourceProfiles"] for s in r["scopeProfiles"] for p in s["profiles"]):
        kind = strings[p["sampleType"].get("typeStrindex", 0)]
        for s in p.get("samples", []):
            a = {}
            for i in s.get("attributeIndices", []):
                attribute = d["attributeTable"][i]
                a[strings[attribute.get("keyStrindex", 0)]] = attribute["value"].get("stringValue")
            value = sum(int(v) for v in s.get("values", [])) or len(s["timestampsUnixNano"])
            by_thread[a.get("thread.name"), kind] += value
            if a.get("thread.name") in THREADS:
                by_call[kind, a.get("syscall.name")] += value
    return by_thread, by_call


def of_perf():
    """{comm: seconds from a switch to the next one back}, {comm: switches away}, by tid"""
    off, switches, since = collections.Counter(), collections.Counter(), {}
    for m in re.finditer(r"([\d.]+):.*?prev_comm=(.*?) prev_pid=(\d+) .*next_comm=(.*?) next_pid=(\d+)", perf_script("time,trace")):
        t, prev, prev_pid, comm, pid = float(m[1]), m[2], m[3], m[4], m[5]
        since[prev_pid] = t
        switches[prev] += 1
        if pid in since:
            off[comm] += t - since.pop(pid)
    return off, switches


def of_offcputime(path):
    off = collections.Counter()
    for m in re.finditer(r"^ +- +(\S+) \(\d+\)\n +(\d+)$", open(path).read(), re.M):
        off[m[1]] += int(m[2]) / 1e6
    return off


def of_perf_trace(path):
    """{system call: seconds} of the program's threads"""
    calls, inside = collections.Counter(), False
    for line in open(path):
        head = re.match(r" (\S.*) \(\d+\), \d+ events", line)
        row = re.match(r"   (\w+) +(\d+) +\d+ +([\d.]+)", line)
        if head:
            inside = head[1] in THREADS
        elif row and inside:
            calls[row[1]] += float(row[3]) / 1e3
    return calls


def waits():
    run("gcc", "-O2", "-g", "-o", "waits", os.path.join(TOP, "tests/waits/waits.c"), "-lpthread")
    seconds = os.environ.get("BESIDE_SECONDS", "5")
    names = " || ".join(f'args->prev_comm == "{n}"' for n in THREADS)
    script = f"""tracepoint:sched:sched_switch /{names}/ {{ @n[args->prev_comm] = count(); @since[args->prev_pid] = nsecs; }}
        tracepoint:sched:sched_switch /@since[args->next_pid]/ {{ @off[args->next_comm] = sum(nsecs - @since[args->next_pid]); delete(@since[args->next_pid]); }}"""
    offcputime = find("offcputime")
    own, trace, bcc, perf = watched(("./waits", seconds), ("--off-cpu", "--off-cpu-from", "10ms", "-e", "sched:sched_switch", "-c", "1"), lambda: bpftrace(script),
                                    lambda: beside("offcputime", (offcputime, "-u", "--stack-storage-size", "65536"), lambda _: not time.sleep(3)), lambda: perf_record("sched:sched_switch"))
    by_thread, _ = told_by_hearth("x.otlp")
    wall, cpu = collections.Counter(), collections.Counter()
    for name, life, used in re.findall(r"^(\w+) \d+ (\d+) (\d+) \d+$", own, re.M):
        wall[name] += int(life) / 1e9
        cpu[name] += int(used) / 1e9
    perf_off, perf_switches = of_perf() if perf else ({}, {})
    bcc_off = of_offcputime(bcc) if bcc else {}
    trace_off, trace_switches = by_key(trace, "off"), by_key(trace, "n")
    rows, counts = [], []
    for n in THREADS:
        told = (by_thread[n, "off_cpu"] + by_thread[n, "runnable"]) / 1e9
        away = wall[n] - cpu[n]
        rows.append((n, away, told, perf_off.get(n), bcc_off.get(n), trace_off[n] / 1e9 if n in trace_off else None))
        counts.append((n, None, sum(v for (t, k), v in by_thread.items() if t == n and "switch" in k) or None, perf_switches.get(n), None, trace_switches.get(n)))
        if abs(told - away) > 0.05 * away + 0.1:
            wrong(f"{n}: {told:.2f} s told of {away:.2f} s")
    table(f"seconds off the CPUs, {seconds} s of tests/waits/waits.c", ("its clocks", "hearth", "perf sched", "offcputime", "bpftrace"), rows, ".3f")
    table("switches away", ("", "hearth -e", "perf", "", "bpftrace"), counts, "d")
    perf_trace()


def perf_trace():
    tool = find("perf")
    if not tool:
        return
    run(tool, "trace", "-s", "-o", "trace.out", "--", HEARTH, "record", "-q", "--off-cpu", "--off-cpu-from", "10ms", "-o", "y.otlp", "--", "./waits", "3")
    _, by_call = told_by_hearth("y.otlp")
    calls = of_perf_trace("trace.out")
    rows = [(c, (by_call["off_cpu", c] + by_call["runnable", c]) / 1e9, calls[c]) for c in ("clock_nanosleep", "futex", "read", "poll")]
    table("seconds by system call, 3 s of it (perf trace: with their time on a CPU)", ("hearth", "perf trace"), rows, ".3f")


# --- page faults ---
def faults():
    run("gcc", "-O2", "-g", "-o", "touch", os.path.join(TOP, "tests/memory/touch.c"))
    own, trace, perf = watched(("./touch", "32", "0"), ("-e", "page-faults", "-c", "1"), lambda: bpftrace('software:faults:1 /comm == "touch"/ { @n = count(); }'),
                               lambda: perf_stat("page-faults"))
    folded = run(HEARTH, "report", "x.otlp", "--format", "folded")
    rows = []
    for name, size in re.findall(r"^(touch_\w+) (\d+)$", own, re.M):
        hits = sum(int(l.rsplit(" ", 1)[1]) for l in folded.splitlines() if f";{name};" in l or f";{name} " in l)
        rows.append((name, int(size) // 4096, hits, None, None))
    of_touch = perf and sum(int(n) for n in re.findall(r"^(\d+),,page-faults", open(perf).read(), re.M))
    told = sum(int(l.rsplit(" ", 1)[1]) for l in folded.splitlines() if l.startswith("touch;"))
    rows.append(("all of its faults", None, told, of_touch, by_key(trace, "n").get("")))
    table("page faults of tests/memory/touch.c", ("pages touched", "hearth -e", "perf", "bpftrace"), rows, "d")
    if of_touch and abs(told - of_touch) > 0.01 * of_touch:
        wrong(f"{told} faults of {of_touch}")


# --- calls of functions ---
def calls():
    run(os.path.join(TOP, "tests/probes/build.sh"), ".")
    here = os.getcwd()
    probes = (("one", f"uprobe:{here}/calls:one"), ("from_library", f"uprobe:{here}/libcalls.so:from_library"),
              ("again", f"uretprobe:{here}/calls:again"), ("passed", f"usdt:{here}/calls:ours:passed"))
    rows = []
    for name, probe in probes:
        with bpftrace(f"{probe} {{ @n = count(); }}") as trace:
            own = run(HEARTH, "record", "-q", "-e", probe, "-o", "x.otlp", "--", "./calls", "4", "1000")
        said = int(re.search(rf"^{name} (\d+)", own, re.M)[1])
        told = sum(int(l.rsplit(" ", 1)[1]) for l in run(HEARTH, "report", "x.otlp", "--kind", "events", "--format", "folded").splitlines())
        rows.append((probe.replace(here + "/", ""), said, told, by_key(trace, "n").get("") if trace else None))
        if said != told:
            wrong(f"{probe}: {told} of {said}")
    table("calls of functions, tests/probes/calls.cc", ("it made", "hearth", "bpftrace"), rows, "d")


def main():
    if not os.path.exists("/sys/kernel/tracing/events"):  # for this process and its children alone
        if os.environ.get("BESIDE_MOUNTED") or not shutil.which("unshare"):
            sys.exit("no tracefs here")
        os.execvp("unshare", ("unshare", "-m", "sh", "-c", 'mount -t tracefs none /sys/kernel/tracing && exec "$@"', "sh", "env", "BESIDE_MOUNTED=1", sys.executable, *sys.argv))
    parts = {"waits": waits, "faults": faults, "calls": calls}
    with tempfile.TemporaryDirectory(prefix="hearth-beside-") as folder:
        os.chdir(folder)
        for name in sys.argv[2:] or parts:
            parts[name]()
        os.chdir("/")
    sys.exit(failed)


main()
