# SPDX-License-Identifier: Apache-2.0
"""The exporter while its collectors are away: a whole-system agent that ships to two of them, hearth's own receiver over HTTP and an
OpenTelemetry Collector over gRPC, both stopped for ten minutes and started again. What the agent holds in memory, how its spool
grows, and whether each event arrived: counted from the bytes of the files that the two wrote, against what the agent says."""
import contextlib
import os
import re
import signal
import socket
import struct
import sys
import time

import collectors
from measure import QUICK, TOP, fail, figure, note, resident_mb, running

sys.path.insert(0, os.path.join(TOP, "tests", "unit", "sinks"))
from collector import count_events  # noqa: E402

HZ = 99
WARM_S, AWAY_S, EVERY_S, BACK_S = (5, 20, 2, 60) if QUICK else (90, 600, 10, 300)
GROWTH = 1.02


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


class Receivers:
    """Both of them, on the same ports each time they are started; what each life of theirs took is in a file of its own."""

    def __init__(self, host):
        self.host, self.lives = host, 0
        self.http, self.grpc, self.collector_http = free_port(), free_port(), free_port()
        self.urls = [f"http://127.0.0.1:{self.http}", f"grpc://127.0.0.1:{self.grpc}"]

    def path(self, kind, life):
        return self.host.file(f"{kind}{life}.framed")

    def up(self):
        self.lives += 1
        stack = contextlib.ExitStack()
        stack.enter_context(collectors.server([self.host.hearth, "serve", "--grpc-address", "off", "--http-address", f"127.0.0.1:{self.http}",
                                               "--sink", "file=" + self.path("hearth", self.lives)], self.http))
        exporter = f"{{path: '{self.path('collector', self.lives)}', format: proto}}"
        stack.enter_context(collectors.collector(self.host, self.collector_http, self.grpc, f"file: {exporter}"))
        return stack

    def events(self, kind):
        total = 0
        for life in range(1, self.lives + 1):
            with open(self.path(kind, life), "rb") as f:
                while head := f.read(4):
                    total += count_events(f.read(int.from_bytes(head, "big")))
        return total


def in_spool(folder):
    """(bytes of the spool's files, events that wait in them), read here by the layout in sinks/otlp/spool.c."""
    size = events = 0
    for where, _, names in os.walk(folder):
        for name in names:
            if not name.endswith(".spool"):
                continue
            with contextlib.suppress(FileNotFoundError), open(os.path.join(where, name), "rb") as f:
                size += os.fstat(f.fileno()).st_size
                while len(head := f.read(56)) == 56:
                    length, = struct.unpack_from("<I", head, 8)
                    f.seek(length, os.SEEK_CUR)
                    if not struct.unpack_from("<I", head, 48)[0]:
                        events += struct.unpack_from("<Q", head, 16)[0]
    return size, events


def watch(pid, spool):
    """A line a while: resident memory, the spool's files, events in them."""
    rows, end = [], time.monotonic() + AWAY_S
    while time.monotonic() < end:
        time.sleep(EVERY_S)
        rows.append((resident_mb(pid), *in_spool(spool)))
        note(f"{AWAY_S - end + time.monotonic():4.0f} s: {rows[-1][0]:.2f} MB resident, {rows[-1][1]:,} bytes in the spool's files, "
             f"{rows[-1][2]:,} events")
    return rows


def wait_delivered(spool):
    began = time.monotonic()
    while in_spool(spool)[1] and time.monotonic() < began + BACK_S:
        time.sleep(0.5)
    return time.monotonic() - began


def away(host):
    receivers, spool = Receivers(host), host.file("spool")
    up = receivers.up()
    command = [host.hearth, "run", "-F", HZ, "--spool", spool]
    for url in receivers.urls:
        command += ["--collector", url]
    with up, host.load("c_chain"), host.load("short"), open(host.file("agent.err"), "w+", encoding="utf-8") as said, \
            running(command, stop=signal.SIGINT, stderr=said) as (process,):
        time.sleep(WARM_S)
        before = resident_mb(process.pid)
        up.close()
        rows = watch(process.pid, spool)
        with receivers.up():
            took = wait_delivered(spool)
            after = resident_mb(process.pid)
            process.send_signal(signal.SIGINT)
            if process.wait(60):
                fail(f"the agent ended with status {process.returncode}")
        said.seek(0)
        text = said.read()
    note(f"{took:.0f} s to deliver what had waited; {in_spool(spool)[1]} events left in the spool")
    for line in text.strip().splitlines():
        note(line)
    judge(rows, before, after, text, receivers)


def judge(rows, before, after, text, receivers):
    third = max(1, len(rows) // 3)
    early, late = (max(row[0] for row in part) for part in (rows[:third], rows[-third:]))
    figure(f"resident at most, last third of {AWAY_S} s away (first third)", "MB", late, early, GROWTH)
    note(f"resident {before:.2f} MB before, {after:.2f} MB after")
    figure("bytes of the spool an event", "", rows[-1][1] / max(rows[-1][2], 1))
    delivered = re.search(r"(\d+) samples taken = (\d+) delivered", text)
    if not delivered:
        fail("no last line: " + text)
    for kind in ("hearth", "collector"):
        figure(f"events that {kind} got (delivered by the agent)", "", receivers.events(kind), int(delivered.group(2)))
