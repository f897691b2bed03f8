# SPDX-License-Identifier: Apache-2.0
"""Scripts beside OpenTelemetry's eBPF profiler, whose program BENCH_PEER names: BPF time of a sample, CPU time of the agent, and how
many stacks have all functions of the script, in their order and by their names.

One agent after the other samples the whole machine, whose CPUs are busy with copies of one program at a time; the programs of the
ways of calling (tests/script/calls.*) say themselves which functions there are. The peer sends to a `hearth serve`, which writes a file as
`hearth record` does, so both are judged alike."""
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time

from collectors import server
from measure import CPUS, QUICK, TOP, cpu_ns, fail, figure, note, program_time, running, settle, statistics_on
from runtimes import LANGUAGES, OLD_SECONDS, script

sys.path.insert(0, os.path.join(TOP, "tests", "truth"))
import capture  # noqa: E402

DEPTH = 40
SECONDS = 3 if QUICK else 15
CALLS_SECONDS = 2 if QUICK else 8
HTTP_PORT, GRPC_PORT = 24318, 24317
MOUNTED = 'mount -t tracefs tracefs /sys/kernel/tracing; exec "$0" "$@"'  # the peer wants it
FRAME_TYPES = {"python": "cpython"}
SUFFIX = {"python": "py", "php": "php", "perl": "pl", "ruby": "rb"}
FIRST_SECONDS = 12  # the peer's first delivery comes after up to ten


class Agent:
    """One that runs: its process, and where its profiles are once it has ended."""

    def __init__(self, name, process, path):
        self.name, self.process, self.path = name, process, path

    @property
    def pid(self):
        return self.process.pid


@contextlib.contextmanager
def hearth(host, hz, path):
    with running((host.hearth, "record", "-F", hz, "--report-interval", "5s", "-o", path), stop=signal.SIGINT) as (p,):
        settle(p, FIRST_SECONDS, "hearth record")
        yield Agent("hearth", p, path)


@contextlib.contextmanager
def peer(host, hz, path):
    receiver = (host.hearth, "serve", "--http-address", f"127.0.0.1:{HTTP_PORT}", "--grpc-address", f"127.0.0.1:{GRPC_PORT}",
                "--sink", f"file={path}")
    with server(receiver, GRPC_PORT):
        command = ("unshare", "-m", "sh", "-c", MOUNTED, os.environ["BENCH_PEER"], f"-collection-agent=127.0.0.1:{GRPC_PORT}",
                   "-disable-tls", "-samples-per-second", hz)
        with running(command) as (p,):
            settle(p, FIRST_SECONDS, os.environ["BENCH_PEER"])
            yield Agent("peer", p, path)
            time.sleep(FIRST_SECONDS)  # what it has is delivered


def samples(path, pids):
    """Yields (count, [(frame type, name)], outermost first) of the processes @pids in the capture."""
    data = capture.load(path)
    reader, tables = capture.Capture(data), data.dictionary

    def frames(location):
        kind = reader.attributes(location.attribute_indices).get("profile.frame.type")
        return [(kind, tables.string_table[tables.function_table[line.function_index].name_strindex])
                for line in reversed(location.lines)] or [(kind, "")]

    for resource in data.resource_profiles:
        pid = next((a.value.int_value for a in resource.resource.attributes if a.key == "process.pid"), None)
        if pid not in pids:
            continue
        for profile in (p for scope in resource.scope_profiles for p in scope.profiles):
            for sample in profile.samples:
                indices = tables.stack_table[sample.stack_index].location_indices
                yield max(len(sample.timestamps_unix_nano), sum(sample.values)), [
                    f for i in reversed(indices) for f in frames(tables.location_table[i])]


def share_whole(path, language, pids):
    """Percent of the processes' samples that have all functions of load/chain.*, each called by the right one; how many there are."""
    kind, want = FRAME_TYPES.get(language, language), list(range(DEPTH - 1, 0, -1))
    whole = total = 0
    for count, frames in samples(path, pids):
        found = [re.match(r"(?:.*\W)?f(\d+)$", name) for kept, name in frames if kept == kind]
        total += count
        whole += count if [int(m.group(1)) for m in found if m] == want else 0
    return 100 * whole / total if total else 0, total


def load(host, agent, language):
    """Copies of one program on all CPUs, met and known before they are measured: {BPF ns a sample, CPU ms a second, their pids}."""
    with running(*[("taskset", "-c", cpu, *script(language, DEPTH)) for cpu in CPUS]) as programs:
        time.sleep(1 + OLD_SECONDS)
        bpf, cpu, start = program_time(agent.pid), cpu_ns(agent.pid, True), time.monotonic()
        time.sleep(SECONDS)
        bpf = [b - a for a, b in zip(bpf, program_time(agent.pid))]
        cpu = (cpu_ns(agent.pid, True) - cpu) / 1e6 / (time.monotonic() - start)
        if not bpf[1]:
            fail(f"{agent.name} took no samples")
        return bpf[0] / bpf[1], cpu, {p.pid for p in programs}


def call(host, agent, language):
    """The program of all ways of calling; the path of what it says, and its pid."""
    path = host.file(f"{agent.name}.{language}.truth")
    with open(path, "wb") as truth:
        p = subprocess.Popen([shutil.which(LANGUAGES[language]), os.path.join(TOP, "tests", "script", f"calls.{SUFFIX[language]}"),
                              str(CALLS_SECONDS)], stdout=truth, stderr=subprocess.DEVNULL, cwd=host.dir.name)
        p.wait()
    return path, p.pid


def functions_of(path):
    """{function: its callers}, by the last part of their names, as languages' users and profilers differ about the first."""
    known = {}
    for words in (line.split() for line in open(path, encoding="utf-8")):
        if words[:1] == ["frame"]:
            known.setdefault(last_of(words[1]), set()).update(last_of(w) for w in words[4:])
    return known


def last_of(name):
    return re.split(r"[.:#\\]", name.replace(" ", "_"))[-1] or name


def share_right(path, language, truth, pid):
    """Percent of the process's samples with functions that the truth knows whose functions are all known, and called by one that may; how
    many there are. Of the interpreter's start, which is not in the truth, no sample counts."""
    kind, known = FRAME_TYPES.get(language, language), functions_of(truth)
    right = total = 0
    for count, frames in samples(path, {pid}):
        names = [last_of(name) for kept, name in frames if kept == kind]
        own = [n for n in names if n in known]
        total += count if own or "" in names else 0
        right += count if own and all(is_call(known, a, b) for a, b in zip(own, own[1:])) and "" not in names else 0
    return 100 * right / total if total else 0, total


def is_call(known, caller, name):
    return "*" in known[name] or caller in known[name]


def beside(host):
    if not os.environ.get("BENCH_PEER"):
        return note("BENCH_PEER names no program of OpenTelemetry's eBPF profiler")
    capture.protobuf()  # or all begins anew, under a Python that has it
    languages = [language for language, name in LANGUAGES.items() if shutil.which(name)]
    cost, whole, right = {}, {}, {}
    with statistics_on():
        for start in hearth, peer:
            with start(host, 99, host.file(f"{start.__name__}.cost.otlp")) as agent:
                for language in languages:
                    cost[agent.name, language] = load(host, agent, language)
            for language in languages:
                whole[agent.name, language] = share_whole(agent.path, language, cost[agent.name, language][2])
            with start(host, 199, host.file(f"{start.__name__}.calls.otlp")) as agent:
                said = {language: call(host, agent, language) for language in languages}
            for language in languages:
                right[agent.name, language] = share_right(agent.path, language, *said[language])
    for language in languages:
        mine, other = [{k: v[name, language] for k, v in (("cost", cost), ("whole", whole), ("right", right))} for name in ("hearth", "peer")]
        figure(f"{language}: BPF time of a sample, {DEPTH} functions", "us", mine["cost"][0] / 1e3, other["cost"][0] / 1e3,
               0.3 if language == "python" else None)
        figure(f"{language}: CPU time of the agent", "ms/s", mine["cost"][1], other["cost"][1], 0.3 if language == "python" else None)
        figure(f"{language}: stacks with all functions", "%", mine["whole"][0], other["whole"][0])
        figure(f"{language}: all ways of calling, right callers and names", "%", mine["right"][0], other["right"][0])
        note(f"of {mine['whole'][1]} and {other['whole'][1]}, {mine['right'][1]} and {other['right'][1]} samples")
    return None
