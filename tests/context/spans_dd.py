# SPDX-License-Identifier: Apache-2.0
"""Threads that work in spans of PyPI's ddtrace, which writes the contexts of OTEP 4719 and 4947: spans_dd.py SECONDS THREADS SPANS, where
SPANS is written for judge.py. By hand: needs ddtrace 4.16 or newer."""
import os
import sys
import threading
import time

os.environ.setdefault("DD_TRACE_STARTUP_LOGS", "false")
os.environ.setdefault("DD_INSTRUMENTATION_TELEMETRY_ENABLED", "false")
os.environ.setdefault("DD_SERVICE", "spans-service")
os.environ.setdefault("DD_TRACE_AGENT_URL", "http://127.0.0.1:9")
from ddtrace import tracer  # noqa: E402


def spin():
    until = time.monotonic() + 0.001
    while time.monotonic() < until:
        sum(range(50))


def work0():
    spin()


def work1():
    spin()


def outside():
    spin()


def run(until, out):
    i = 0
    while time.monotonic() < until:
        work = (work0, work1)[i % 2]
        with tracer.trace(work.__name__) as span:
            out.append(f"{span.trace_id:032x} {span.span_id:016x} {i % 2}")
            work()
        outside()
        i += 1


def main():
    until, out = time.monotonic() + float(sys.argv[1]), []
    threads = [threading.Thread(target=run, args=(until, out)) for _ in range(int(sys.argv[2]))]
    print("go", flush=True)
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    with open(sys.argv[3], "w") as f:
        f.write("\n".join(out) + "\n")
    os._exit(0)


main()
