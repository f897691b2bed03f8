# SPDX-License-Identifier: Apache-2.0
"""The agent's CPU time against perf's, beside it, and whether all the time that the kernel accounts for is sampled."""
import os
import shutil
import signal
import subprocess
import time

from measure import CPUS, QUICK, TOP, Counters, cpu_ns, figure, note, read, running, rusage_ms


def steady(host):
    """In a window after the warm-up, which includes naming everything, perf too; perf's whole run over that window, with the start
    and the end that a readable file takes."""
    warm, seconds = (3, 10) if QUICK else (10, 60)
    whole = None
    with host.load("c_chain_fp"), host.record("cpu.otlp") as (h,):
        with running(*host.perf_command("warm.data"), stop=signal.SIGINT):
            time.sleep(warm)
        before = cpu_ns(h.pid)
        with running(*host.perf_command("cpu.data"), stop=signal.SIGINT) as perf:
            time.sleep(seconds)
            used = cpu_ns(h.pid) - before
            if perf:
                perf[0].send_signal(signal.SIGINT)
                whole = rusage_ms(perf[0])
    figure(f"agent CPU in {seconds} s at 99 Hz (perf: its run)", "ms", used / 1e6, whole, 0.2)


def beside(host, what, command, state, **options):
    """Both run, from start to end, while @command does. hearth's part without its own start and end stands beside perf's whole
    run too, as a start of perf and the end that a readable file takes are no choice of who has a machine profiled all day."""
    with host.record("compile.otlp", env={**os.environ, "HEARTH_SYMBOL_CACHE": host.file("compile-cache")}) as (h,), \
            running(*host.perf_command("compile.data"), stop=signal.SIGINT) as perf:
        time.sleep(2)
        counters = Counters(h.pid)
        counted, window = counters.read(), cpu_ns(h.pid, ended=True)
        began = time.monotonic()
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False, **options)
        seconds = time.monotonic() - began
        window = cpu_ns(h.pid, ended=True) - window
        counted = {k: v - counted[k] for k, v in counters.read().items()}
        used = []
        for p in (h, *perf):
            p.send_signal(signal.SIGINT)
            used.append(rusage_ms(p))
    if done.returncode:
        note(f"{what} ended with status {done.returncode}")
    whole = used[1] if perf else None
    figure(f"CPU during {what}, {state}, {seconds:.0f} s (perf: its run)", "ms", window / 1e6, whole, 0.5)
    figure(f"CPU of the whole run, {what}, {state}", "ms", used[0], whole, 0.5)
    note(f"{counted['TAKEN']} samples, {counted['MISSES']} walked again in user space")


def compiling(host):
    """Twice each: with nothing kept from earlier runs, and with what the first one kept."""
    scratch = host.file("build")
    target = [os.path.join(scratch, "lib", "symbols.a")] if QUICK else []
    for state in ("cold", "warm"):
        beside(host, "make -j2 of hearth", ["make", "-C", TOP, "-j2", f"BUILD={scratch}", *target], state)
        shutil.rmtree(scratch, ignore_errors=True)
    if not shutil.which("go"):
        return note("no go: its figure is left out")
    cache = host.file("gocache")
    shutil.rmtree(host.file("compile-cache"), ignore_errors=True)
    for state in ("cold", "warm"):
        beside(host, "go build -a " + ("fmt" if QUICK else "std"), ["go", "build", "-a", "fmt" if QUICK else "std"], state,
               env={**os.environ, "GOCACHE": cache, "GOFLAGS": "", "GO111MODULE": "off"}, cwd="/")
        subprocess.run(["chmod", "-R", "u+w", cache], check=False)
        shutil.rmtree(cache, ignore_errors=True)
    return None


# /proc/stat: user nice system idle iowait irq softirq steal
def busy_and_steal():
    columns = [int(n) for n in read("/proc/stat").splitlines()[0].split()[1:9]]
    return sum(columns[i] for i in (0, 1, 2, 5, 6)), columns[7]


def delivered(host):
    """Samples against the CPU time that the kernel's own accounting has, over a window with many short processes."""
    hz, seconds = 99, 10 if QUICK else 60
    with host.record("delivered.otlp", hz=hz, stderr=subprocess.PIPE, text=True) as (h,):
        time.sleep(2)
        counters = Counters(h.pid)
        with running((os.path.join(host.truth, "short"), 1000), ("taskset", "-c", CPUS[0], os.path.join(host.truth, "c_chain"), 1000),
                     group=True):
            time.sleep(1)
            taken, (busy, steal) = counters.read()["TAKEN"], busy_and_steal()
            time.sleep(seconds)
            taken, (busy, steal) = counters.read()["TAKEN"] - taken, [a - b for a, b in zip(busy_and_steal(), (busy, steal))]
        h.send_signal(signal.SIGINT)
        said = h.communicate()[1].strip().splitlines()[-1]
    implied = busy / os.sysconf("SC_CLK_TCK") * hz
    figure(f"samples taken in {seconds} s (other: what CPU time implies)", "", taken, implied)
    figure("the difference", "%", abs(taken / implied - 1) * 100, None, 0.5, absolute=True)
    note(f"steal {steal * 1000 / os.sysconf('SC_CLK_TCK'):.0f} ms; {said.removeprefix('hearth: ')}")
