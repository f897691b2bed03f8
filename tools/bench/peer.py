# SPDX-License-Identifier: Apache-2.0
"""Scripts, and programs whose code a virtual machine makes, beside OpenTelemetry's eBPF profiler, whose program BENCH_PEER names: BPF
time of a sample, CPU time and memory of the agent, and how many stacks have all functions of the program, in their order and by their
names.

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
import tempfile
import time

import jit
from collectors import server
from measure import CPUS, QUICK, TOP, cpu_ns, fail, family, figure, note, program_time, running, settle, statistics_on
from runtimes import LANGUAGES, OLD_SECONDS, script

sys.path.insert(0, os.path.join(TOP, "tests", "truth"))
import capture  # noqa: E402

DEPTH = 40
SECONDS = 3 if QUICK else 15
CALLS_SECONDS = 2 if QUICK else 8
HTTP_PORT, GRPC_PORT = 24318, 24317
MOUNTED = 'mount -t tracefs tracefs /sys/kernel/tracing; exec "$0" "$@"'  # the peer wants it
SUFFIX = {"python": "py", "php": "php", "perl": "pl", "ruby": "rb"}
SCRIPTS = os.path.join(TOP, "tests", "script")
BARS = {"python": 0.3}
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


class Language:
    """A way to run programs: its name, the type of its frames; commands of the deep program, and of that which calls in all ways."""

    def __init__(self, name, kind, deep, calls):
        self.name, self.kind, self.deep, self.calls = name, kind, deep, calls

    def is_whole(self, names):
        """Do the functions, outermost first, have all of load/chain.*, each called by the right one?"""
        found = [re.match(r"(?:.*\W)?f(\d+)$", name) for name in names]
        return [int(m.group(1)) for m in found if m] == list(range(DEPTH - 1, 0, -1))

    def is_judged(self, names):
        return True

    def last_of(self, name):
        """The last part of a name, as languages' users and profilers differ about the first."""
        return re.split(r"[.:#\\]", name.replace(" ", "_"))[-1] or name


class Compiled(Language):
    """A virtual machine's; its deep program is one function that calls itself, and the one that this calls at the end."""

    def own(self, names):
        return [name for name in map(self.last_of, names) if re.match(r"(down|spin)(/\d)?$", name)]

    def is_judged(self, names):
        """A machine's own threads, and its start, have none of them."""
        return "" in names or self.own(names)

    def is_whole(self, names):
        found = self.own(names)
        downs = len([name for name in found if name.startswith("down")])
        if not found or found[-1].startswith("down"):  # on its way down or up: how deep it is nobody knows
            return 0 < downs == len(found)
        return downs == len(found) - 1 and downs in (DEPTH, DEPTH + 1)  # BEAM jumps from the last one

    def last_of(self, name):
        return super().last_of(re.sub(r"(?<=[\w$>])\(.*", "", name).split(" ")[-1])


def languages(folder):
    """All that are here; @folder has their programs afterwards."""
    found = [Language(name, "cpython" if name == "python" else name, script(name, DEPTH),
                      (shutil.which(program), os.path.join(SCRIPTS, f"calls.{SUFFIX[name]}"), CALLS_SECONDS))
             for name, program in LANGUAGES.items() if shutil.which(program)]
    deep = jit.programs(folder)
    calls = {"HotSpot": ("java", "-cp", folder, "Calls", os.path.join(SCRIPTS, "Calls.java"), CALLS_SECONDS),
             "V8": ("node", os.path.join(SCRIPTS, "calls.js"), CALLS_SECONDS),
             "BEAM": ("erl", "-noshell", "-s", "calls", "main", CALLS_SECONDS)}
    if any(name.startswith("HotSpot") for name in deep):
        subprocess.run(("javac", "-nowarn", "-d", folder, os.path.join(SCRIPTS, "Calls.java")), check=True, stderr=subprocess.DEVNULL)
    if any(name.startswith("BEAM") for name in deep):
        shutil.copy(os.path.join(SCRIPTS, "calls.erl"), folder)
        subprocess.run(("erlc", "calls.erl"), check=True, cwd=folder, stdout=subprocess.DEVNULL)
    kinds = {"HotSpot": "jvm", "V8": "v8js", "BEAM": "beam"}
    for name, command in deep.items():
        machine, way = name.split(", ")
        found.append(Compiled(name, kinds[machine], (*command, DEPTH), calls[machine] if way == "compiled" else None))
    return found


def share_whole(path, language, pids):
    """Percent of the processes' samples with frames of the language that have all functions; how many there are."""
    whole = total = 0
    for count, frames in samples(path, pids):
        names = [name for kept, name in frames if kept == language.kind]
        is_counted = language.is_judged(names)
        total += count if is_counted else 0
        whole += count if is_counted and language.is_whole(names) else 0
    return 100 * whole / total if total else 0, total


def load(agent, language):
    """Copies of one program on all CPUs, met and known before they are measured: {BPF ns a sample, CPU ms a second, their pids}."""
    with running(*[("taskset", "-c", cpu, *language.deep) for cpu in CPUS]) as programs:
        time.sleep(1 + OLD_SECONDS)
        bpf, cpu, start = program_time(agent.pid), cpu_ns(agent.pid, True), time.monotonic()
        time.sleep(SECONDS)
        bpf = [b - a for a, b in zip(bpf, program_time(agent.pid))]
        cpu = (cpu_ns(agent.pid, True) - cpu) / 1e6 / (time.monotonic() - start)
        if not bpf[1]:
            fail(f"{agent.name} took no samples")
        if any(p.poll() is not None for p in programs):
            fail(f"{language.name}: the program ended: {language.deep}")
        return bpf[0] / bpf[1], cpu, {pid for p in programs for pid in family(p.pid)}


def call(host, folder, agent, language):
    """The program of all ways of calling; the path of what it says, and its pid."""
    path = host.file(f"{agent.name}.{language.name}.truth")
    with open(path, "wb") as truth:
        p = subprocess.Popen([str(a) for a in language.calls], stdin=subprocess.DEVNULL, stdout=truth, stderr=subprocess.DEVNULL,
                             cwd=folder)
        p.wait()
    return path, p.pid


def functions_of(path, language):
    """{function: its callers}, by the last part of their names."""
    known = {}
    for words in (line.split() for line in open(path, encoding="utf-8")):
        if words[:1] == ["frame"]:
            known.setdefault(language.last_of(words[1]), set()).update(language.last_of(w) for w in words[4:])
    return known


def share_right(path, language, truth, pid):
    """Percent of the process's samples with functions that the truth knows in which each such function is called by one that may; how
    many there are. Of the interpreter's start, which is not in the truth, no sample counts; who called a library's function, and whom it
    calls, is not judged."""
    known = functions_of(truth, language)
    right = total = 0
    for count, frames in samples(path, {pid}):
        names = [language.last_of(name) for kept, name in frames if kept == language.kind]
        has_own = any(n in known for n in names)
        total += count if has_own or "" in names else 0
        right += count if has_own and all(is_call(known, a, b) for a, b in zip(names, names[1:])) and "" not in names else 0
    return 100 * right / total if total else 0, total


def is_call(known, caller, name):
    return name not in known or caller not in known or "*" in known[name] or caller in known[name]


def measure(host, folder, start, spoken):
    """What the agent that @start starts costs and tells of all languages."""
    found = {language.name: {} for language in spoken}
    with start(host, 99, host.file(f"{start.__name__}.cost.otlp")) as agent:
        for language in spoken:
            found[language.name]["bpf"], found[language.name]["cpu"], found[language.name]["pids"] = load(agent, language)
        memory = jit.agent_mb(agent.pid)
    for language in spoken:
        found[language.name]["whole"] = share_whole(agent.path, language, found[language.name]["pids"])
    with start(host, 199, host.file(f"{start.__name__}.calls.otlp")) as agent:
        said = {language: call(host, folder, agent, language) for language in spoken if language.calls}
    for language in said:
        found[language.name]["right"] = share_right(agent.path, language, *said[language])
    return found, memory


def beside(host):
    if not os.environ.get("BENCH_PEER"):
        return note("BENCH_PEER names no program of OpenTelemetry's eBPF profiler")
    capture.protobuf()  # or all begins anew, under a Python that has it
    with tempfile.TemporaryDirectory() as folder, statistics_on():
        spoken = languages(folder)
        (mine, my_memory), (other, memory) = (measure(host, folder, start, spoken) for start in (hearth, peer))
    for name in mine:
        a, b, bar = mine[name], other[name], BARS.get(name)
        figure(f"{name}: BPF time of a sample, {DEPTH} functions", "us", a["bpf"] / 1e3, b["bpf"] / 1e3, bar)
        figure(f"{name}: CPU time of the agent", "ms/s", a["cpu"], b["cpu"], bar)
        figure(f"{name}: stacks with all functions", "%", a["whole"][0], b["whole"][0])
        note(f"of {a['whole'][1]} and {b['whole'][1]} samples")
        if "right" in a:
            figure(f"{name}: all ways of calling, right callers and names", "%", a["right"][0], b["right"][0])
            note(f"of {a['right'][1]} and {b['right'][1]} samples")
    figure("memory of the agent after all of these, kernel maps included", "MB", my_memory, memory)
    return None
