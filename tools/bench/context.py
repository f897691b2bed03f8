# SPDX-License-Identifier: Apache-2.0
"""What it costs to read which span a thread is in: BPF time of a sample beside the same process under a hearth that reads no labels, in
turns: each hearth is alone, as two whose timers tick together would warm each other's caches, and is started anew each time. Then what the view of a trace takes over a store of ten million samples: of a trace whose spans came in, too,
and of one of which only samples are known, which may be of any time.

One CPU alone is used for the former, in real time and for a part of it (runtimes.py says why)."""
import contextlib
import json
import os
import signal
import subprocess
import time
import urllib.request

import collectors
from measure import CPUS, QUICK, fail, figure, median, note, running, settle, statistics_on
from runtimes import Target, p10, real_time, slice_ns

ROUNDS = 3 if QUICK else 8
SLICES = 4  # of a program in a round
SLICE_SECONDS = 0.3
HZ = 999
PORT = 14328
SAMPLES, HOURS, SERVICES, STACKS, TRACES = 10_000_000, 24, 20, 20_000, 100_000
SPANS = 5  # of a trace; ASKED is one of them (tools/bench/store.c)
ASKED = 50

CASES = [  # name, command in BUILD/bench, whether its samples say a span, bar in ns
    ("thread context in the program", ("in_span_linked", 1000, "linked"), True, 100),
    ("thread context in a library opened late", ("in_span", 1000, "./libin_span.so"), True, 100),
    ("labels of a goroutine: span, trace, one more", ("in_span_go", 1000), True, 200),
    ("C without a context", ("in_span", 1000, "without"), False, 10),
    ("Go, a goroutine without labels", ("in_span_go", 1000, "without"), False, 200),
]


# --- reading ---
def take(host, targets, words, path, values):
    """Adds slices of each of @targets, under a new hearth that reads what @words says, to the lists in @values."""
    command = (host.hearth, "record", "-F", HZ, "-C", CPUS[-1], "--runtimes", words, "-p", ",".join(str(t.pid) for t in targets), "-o", path)
    with running(command, stop=signal.SIGINT) as (sampler,):
        settle(sampler, 2, "hearth record")
        for target in targets:  # are met
            with target.runs():
                time.sleep(0.4)
        for _ in range(SLICES):
            for target, of in zip(targets, values):
                of.append(slice_ns(target, sampler.pid, SLICE_SECONDS))


def slices(host, cases):
    """[with labels read], [without] of each case."""
    rows = [([], []) for _ in cases]
    with real_time(), contextlib.ExitStack() as stack:
        targets = [Target(stack, (f"./{command[0]}", *command[1:])) for _, command, _, _ in cases]
        for turn in range(ROUNDS):
            for i in (0, 1) if turn % 2 else (1, 0):
                take(host, targets, ("all", "-labels")[i], host.file(f"labels{i}.otlp"), [row[i] for row in rows])
    return rows, [t.pid for t in targets]


def check_spans(host, cases, pids):
    """A figure of what was not read would be a lie."""
    for (name, _, says, _), pid in zip(cases, pids):
        text = subprocess.run([host.hearth, "report", host.file("labels0.otlp"), "--process", str(pid), "--by", "label=span_id", "--format", "folded"],
                              capture_output=True, text=True, check=True).stdout
        of_span = [line for line in text.splitlines() if line.startswith(("00f067aa0ba902b7", "0000000000020001"))]
        count, all_of = (sum(int(line.rpartition(" ")[2]) for line in lines) for lines in (of_span, text.splitlines()))
        if not all_of or (count < 0.95 * all_of if says else count):
            fail(f"{name}: {count} of {all_of} samples say their span")


def reading(host):
    os.chdir(host.bench)
    cases = [c for c in CASES if os.access(c[1][0], os.X_OK)]
    with statistics_on():
        rows, pids = slices(host, cases)
    check_spans(host, cases, pids)
    for (name, _, _, bar), (read, bare) in zip(cases, rows):
        figure(f"a sample more: {name}", "ns", p10(read) - p10(bare), None, bar, absolute=True)
        note(f"10th percentiles {p10(read):.0f} and {p10(bare):.0f} ns, as neighbours of a virtual CPU only add; medians {median(read):.0f}, "
             f"{median(bare):.0f}")


# --- a trace's view ---
def id_of(number):
    """As tools/bench/store.c makes them."""
    x = (number + 1) * 0x9e3779b97f4a7c15 % 2**64
    x = (x ^ x >> 31) * 0xbf58476d1ce4e5b9 % 2**64
    return (x ^ x >> 29).to_bytes(8, "little").hex()


def trace_of(number):
    return id_of(2 * number) + id_of(2 * number + 1)


def span_of(trace, number):
    return id_of(2**64 - 1 - (trace * SPANS + number))


def filled(host):
    """A store of so many samples; kept for the next time."""
    folder, mark = os.path.join(host.bench, "traces"), os.path.join(host.bench, "traces.filled")
    if not os.path.exists(mark):
        note(f"fills a store with {SAMPLES} samples")
        subprocess.run(["rm", "-rf", folder], check=True)
        subprocess.run([os.path.join(host.bench, "store"), "fill", folder, *map(str, (SAMPLES, HOURS, SERVICES, STACKS, TRACES))], check=True,
                       stdout=subprocess.DEVNULL)
        with open(mark, "w", encoding="ascii"):
            pass
    return folder


def ask(path):
    with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/api/v1/{path}") as answer:
        return json.load(answer)


def answers_ms(path):
    times, answer = [], None
    for _ in range(5 if QUICK else 15):
        begin = time.monotonic()
        answer = ask(path)
        times.append((time.monotonic() - begin) * 1000)
    return times, answer


def post_spans(trace, begin_ns):
    """The spans of a trace, as an SDK would send them: a root of 5 s, and its children one after the other."""
    spans = [{"traceId": trace_of(trace), "spanId": span_of(trace, i), "parentSpanId": span_of(trace, 0) if i else "", "name": f"span {i}",
              "kind": 2, "startTimeUnixNano": str(begin_ns), "endTimeUnixNano": str(begin_ns + 5 * 10**9)} for i in range(SPANS)]
    of = {"attributes": [{"key": "service.name", "value": {"stringValue": "service-1"}}]}
    body = json.dumps({"resourceSpans": [{"resource": of, "scopeSpans": [{"spans": spans}]}]}).encode()
    urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{PORT}/v1/traces", body, {"Content-Type": "application/json"})).close()


def show(what, path, is_right):
    times, answer = answers_ms(path)
    if not is_right(answer):
        fail(f"{path} answers {json.dumps(answer)[:300]}")
    figure(what, "ms", median(times), None, 100, absolute=True)
    note(f"the first {times[0]:.1f} ms, the fastest {min(times):.1f} ms")


def view(host):
    folder = filled(host)
    with collectors.server([host.hearth, "serve", "--store", folder, "--keep-age", "3650d", "--keep-size", "20G", "--http-address", f"127.0.0.1:{PORT}",
                            "--grpc-address", "off"], PORT):
        status = ask("status")["store"]
        note(f"{status['events']} samples, {status['bytes'] / 1e6:.0f} MB")
        trace = trace_of(ASKED)
        show("a trace's view, only its samples known", f"trace/{trace}?from=first&to=last", lambda a: len(a["spans"]) == SPANS)
        show("a trace's flame graph, likewise", f"trace/{trace}/flamegraph?from=first&to=last", lambda a: a["events"] > 0)
        show("a span's flame graph, likewise", f"span/{span_of(ASKED, 1)}/flamegraph?from=first&to=last", lambda a: a["events"] > 0)
        begin = ask(f"trace/{trace}/flamegraph?from=first&to=last")["from"]
        interval_s = HOURS * 3600 * ASKED // TRACES // 5 * 5
        post_spans(ASKED, int((begin + interval_s) * 1e9))
        time.sleep(2)
        show("a trace's view, its spans came in", f"trace/{trace}", lambda a: sum(s.get("joined") == "link" for s in a["spans"]) == SPANS)
        show("a trace's flame graph, likewise", f"trace/{trace}/flamegraph", lambda a: a["events"] > 0)


def context(host):
    reading(host)
    view(host)
