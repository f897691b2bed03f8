# SPDX-License-Identifier: Apache-2.0
"""What it costs that hearth is two processes, beside --one-process, of interleaved runs: the start, memory; and what the channel between
them takes at 100,000 samples a second."""
import os
import shutil
import subprocess
import time

from measure import QUICK, fail, family_pss_mb, figure, median, note, running

ROUNDS = 5 if QUICK else 21
MEMORY_ROUNDS = 1 if QUICK else 5
SAMPLES_A_SECOND = 100000


class Run:
    """`hearth run` with a store and a page, until it samples; @one: as one process."""

    def __init__(self, host, one):
        self.store = host.file("store-one" if one else "store-two")
        environment = {**os.environ, "HEARTH_SYMBOL_CACHE": host.file("symbols"), "HEARTH_CONFIG": "/dev/null"}
        began = time.monotonic()
        command = [host.hearth, "run", "-F", "99", "--http-address", "127.0.0.1:0", "--report-interval", "1s", "--store", self.store]
        self.process = subprocess.Popen(command + (["--one-process"] if one else []), stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                                        text=True, env=environment)
        said = []
        for line in self.process.stderr:
            said.append(line)
            if "profiles go to" in line:
                self.start_ms = (time.monotonic() - began) * 1e3
                return
        fail("".join(said))

    def stop(self):
        self.process.terminate()
        self.process.stderr.read()
        self.process.wait(30)


def starts(host):
    ms = {False: [], True: []}
    for i in range(ROUNDS + 1):
        for one in (False, True):
            run = Run(host, one)
            run.stop()
            if i:  # the first ones make the stores and the indexes
                ms[one].append(run.start_ms)
    figure(f"start of two halves, {ROUNDS} of each form by turns (other: as one)", "ms", median(ms[False]), median(ms[True]))
    figure("what the halves take more, start", "ms", median(ms[False]) - median(ms[True]), None, 10, absolute=True)


def memory(host):
    mb = {False: [], True: []}
    with host.load("c_chain"):
        for _ in range(MEMORY_ROUNDS):
            for one in (False, True):
                run = Run(host, one)
                time.sleep(10)
                mb[one].append(sum(family_pss_mb(run.process.pid).values()))
                run.stop()
    figure("memory of all processes, sum of PSS (other: as one)", "MB", median(mb[False]), median(mb[True]))
    figure("what the halves take more, memory", "MB", median(mb[False]) - median(mb[True]), None, 6, absolute=True)


def channel(host, name, capture, bar):
    costs = [[float(n) for n in subprocess.run([os.path.join(host.bench, "channel"), host.file(capture)], capture_output=True, text=True,
                                               check=True).stdout.split()] for _ in range(1 if QUICK else 5)]
    agent, backend, samples = (median(c[i] for c in costs) for i in range(3))
    figure(f"channel, {SAMPLES_A_SECOND} samples a second, {name}", "% CPU", (agent + backend) * SAMPLES_A_SECOND / 1e7, None, bar,
           absolute=True)
    note(f"{name}: {agent:.0f} ns a sample in the agent, {backend:.0f} in the backend, {samples:.0f} samples in each hand-over")


def halves(host):
    seconds = "3" if QUICK else "10"
    with host.load("c_chain"):
        subprocess.run([host.hearth, "record", "-q", "-F", "9999", "-d", seconds, "-o", host.file("few.otlp")], check=True)
    with running(("sh", "-c", "while :; do find /usr -name '*.py' | sort | head -n 200 | xargs python3 -m py_compile; done"), group=True,
                 env={**os.environ, "PYTHONPYCACHEPREFIX": host.file("pyc")}):
        time.sleep(1)
        subprocess.run([host.hearth, "record", "-q", "-F", "9999", "-d", seconds, "-o", host.file("many.otlp")], check=True)
    shutil.rmtree(host.file("pyc"), ignore_errors=True)
    channel(host, "one program", "few.otlp", 1)
    channel(host, "many stacks", "many.otlp", 1)
    starts(host)
    memory(host)
