# SPDX-License-Identifier: Apache-2.0
"""Reports on a capture of ten million samples, nearly each with a stack, thread and CPU of its own (tools/bench/capture.c): time
and memory of `hearth report`, beside `go tool pprof -top` over the same samples as pprof."""
import os
import shutil
import subprocess
import tempfile
import time

from measure import QUICK, fail, figure, median, note

SAMPLES, ROUNDS = (1_000_000 if QUICK else 10_000_000), 3


def run(*command):
    """Seconds of its life and MB that it had at most."""
    start = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    status, usage = os.wait4(process.pid, 0)[1:]
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        fail(f"{' '.join(command)}: exit status {process.returncode}")
    return time.monotonic() - start, usage.ru_maxrss / 1024


def runs(*command):
    results = [run(*command) for _ in range(ROUNDS)]
    return median(r[0] for r in results), max(r[1] for r in results)


def report(host):
    hearth = host.hearth
    with tempfile.TemporaryDirectory() as folder:
        source, pprof = f"{folder}/x.otlp", f"{folder}/x.pb.gz"
        subprocess.run([f"{host.bench}/capture", str(SAMPLES), source], check=True)
        note(f"{SAMPLES:,} samples, {os.stat(source).st_size >> 20} MB of OTLP")
        other = None, None
        if shutil.which("go"):
            run(hearth, "convert", source, pprof)
            other = run("go", "tool", "pprof", "-top", pprof)
        else:
            note("go is not here: nothing to compare with")
        seconds, megabytes = runs(hearth, "report", source)
        figure("report, the table of functions", "s", seconds, other[0], bar=2, absolute=True)
        figure("its memory", "MB", megabytes, other[1], bar=500, absolute=True)
        seconds, megabytes = runs(hearth, "report", "--format", "folded", source)
        figure("report, folded stacks", "s", seconds)
        figure("their memory", "MB", megabytes)
