# SPDX-License-Identifier: Apache-2.0
"""Sending and keeping: bytes an event on the wire in requests of 5 s at 99 Hz, for a steady program and for a compile of many files;
the same of a minute's file; samples a CPU second that are encoded; and the file sink beside an OpenTelemetry Collector's file
exporter, bytes received a CPU second."""
import gzip
import http.server
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

import collectors
import receive
from measure import QUICK, TOP, figure, median, note, running

sys.path.insert(0, os.path.join(TOP, "tests", "unit", "sinks"))
from collector import count_events  # noqa: E402


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((len(body), gzip.decompress(body)))
        self.send_response(200)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args):
        pass


def shipped(host, pid, seconds):
    """(bytes sent, message) of each request of an agent that watches @pid and its children."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.got = []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    command = (host.hearth, "run", "-q", "-F", "99", "-p", str(pid), "--collector", f"http://127.0.0.1:{server.server_port}")
    with running(command, stop=signal.SIGINT):
        time.sleep(seconds)
    server.shutdown()
    return server.got


def packed(host, messages, events):
    """Ways of packing, compared on the same bodies."""
    paths = [host.file(f"body{i}") for i in range(len(messages))]
    for path, message in zip(paths, messages):
        with open(path, "wb") as f:
            f.write(message)
    done = subprocess.run([os.path.join(host.bench, "pack"), str(events), *paths], capture_output=True, text=True, check=True)
    for line in done.stdout.splitlines():
        note("an event packed by " + line)


def wire(host, name, pid, seconds, bar):
    got = shipped(host, pid, seconds)[1:-1]  # whole intervals only
    if not got:
        return note(f"{name}: no whole interval in {seconds} s")
    events = [count_events(message) for _, message in got]
    figure(f"bytes an event on the wire, {name}", "bytes", sum(sent for sent, _ in got) / sum(events), None, bar, absolute=True)
    packed(host, [message for _, message in got], sum(events))
    return note(f"{len(got)} requests of {sum(events) / len(got):.0f} events, {sum(len(m) for _, m in got) / sum(events):.0f} bytes "
                "an event unpacked")


def compile_command(host):
    """(command, environment) of a build of many files that takes longer than a minute or two."""
    scratch = host.file("gocache")
    if shutil.which("go"):
        return (["go", "build", "-a", "std"], {**os.environ, "GOCACHE": scratch, "GOFLAGS": "", "GO111MODULE": "off"})
    return (["make", "-C", TOP, "-j2", "BUILD=" + scratch], dict(os.environ))


def compiling(host, measure):
    """@measure(pid of a shell) while that builds, time and again; it waits at first, since only children to come are followed."""
    command, environment = compile_command(host)
    loop = ["sh", "-c", 'sleep 5; while :; do "$@"; rm -rf "$0"; done', environment.get("GOCACHE", host.file("gocache")), *command]
    with running(loop, stop=signal.SIGKILL, group=True, env=environment, cwd="/") as (process,):
        measure(process.pid)


def file_of(host, pid):
    seconds = 15 if QUICK else 60
    path = host.file("minute.otlp")
    subprocess.run([host.hearth, "record", "-q", "-F", "99", "-p", str(pid), "-d", str(seconds), "-o", path], check=True)
    with open(path, "rb") as f:
        data = f.read()
    events = count_events(data)
    if not events:
        return note(f"no event in {seconds} s")
    for form in (".gz", ".zst", ".xz"):
        subprocess.run([host.hearth, "convert", path, path + form], check=True)
        figure(f"bytes an event of a file of {seconds} s, .otlp{form}", "bytes", os.path.getsize(path + form) / events, None, 30,
               absolute=True)
    return note(f"{events} events, {len(data) / events:.0f} bytes an event unpacked")


def encode(host):
    path = host.file("encode.otlp")
    with open(path, "wb") as f:
        f.write(receive.capture(host, 4, 999))
    done = subprocess.run([os.path.join(host.bench, "encode"), path], capture_output=True, text=True, check=True)
    plain, packed = map(float, done.stdout.split())
    figure("samples encoded per CPU second", "M", plain, None, 1, absolute=True, least=True)
    note(f"with gzip {packed:.2f} M")


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def files(host):
    rounds, seconds = (1, 1) if QUICK else (5, 2)
    body = receive.capture(host, 4, 999)
    request = receive.request_of(body)
    for name, mine_path, theirs in (("protobuf", "mine.framed", "proto"), ("JSON", "mine.jsonl", "json")):
        port, other_port, grpc_port = free_port(), free_port(), free_port()
        exporter = f"file: {{path: '{host.file('theirs.' + theirs)}', format: {theirs}}}"
        with collectors.server([host.hearth, "serve", "--grpc-address", "off", "--http-address", f"127.0.0.1:{port}", "--sink",
                                "file=" + host.file(mine_path)], port) as mine, \
                collectors.collector(host, other_port, grpc_port, exporter) as other:
            results = [(receive.rate(mine, port, request, len(body), seconds),
                        receive.rate(other, other_port, request, len(body), seconds)) for _ in range(rounds)]
        figure(f"received into a file per CPU second, {name}", "MB", median([r[0] for r in results]), median([r[1] for r in results]),
               4, least=True)


def ship(host):
    encode(host)
    files(host)
    seconds = 22 if QUICK else 60
    with host.load("c_chain") as processes:
        wire(host, "a steady program", processes[0].pid, seconds, 9)
    compiling(host, lambda pid: wire(host, "a compile of many files", pid, seconds, 70))
    compiling(host, lambda pid: file_of(host, pid))
