# SPDX-License-Identifier: Apache-2.0
"""Receiving: bytes that a CPU second takes in, decodes and validates, beside an OpenTelemetry Collector with a nop exporter (built
here by its own builder, through Go's proxy); and what `serve` holds while idle, under many clients, and under many that stop
half-way. The clients are here: plain sockets that send the same request again and again."""
import contextlib
import gzip
import os
import re
import select
import socket
import ssl
import subprocess
import time

import collectors
from measure import QUICK, compiling, cpu_ns, fail, figure, median, note, read, resident_mb

PORT, COLLECTOR_PORT, COLLECTOR_GRPC_PORT = 14318, 24318, 24317
PATH = "/v1development/profiles"


def request_of(body, encoding=None, announced=None):
    lines = [f"POST {PATH} HTTP/1.1", "Host: localhost", "Content-Type: application/x-protobuf",
             f"Content-Length: {announced or len(body)}"]
    if encoding:
        lines.append(f"Content-Encoding: {encoding}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


# --- the servers ---
def serve(host, *more):
    return collectors.server([host.hearth, "serve", "--sink", "null", "--http-address", f"127.0.0.1:{PORT}", "--grpc-address", "off",
                              *more], PORT)


def collector(host):
    return collectors.collector(host, COLLECTOR_PORT, COLLECTOR_GRPC_PORT)


# --- the clients ---
def read_answer(sock):
    head = b""
    while b"\r\n\r\n" not in head:
        piece = sock.recv(65536)
        if not piece:
            fail("the server closed the connection")
        head += piece
    if not head.startswith(b"HTTP/1.1 200 "):
        fail(f"answered {head[:200]!r}")
    length = re.search(rb"Content-Length: *(\d+)", head, re.I)
    left = (int(length.group(1)) if length else 0) - len(head.split(b"\r\n\r\n", 1)[1])
    while left > 0:
        left -= len(sock.recv(65536))


def rate(pid, port, request, unpacked_bytes, seconds):
    """MB of unpacked requests that a CPU second of @pid takes."""
    with socket.create_connection(("127.0.0.1", port)) as sock:
        for _ in range(20):
            sock.sendall(request)
            read_answer(sock)
        cpu, count, end = cpu_ns(pid), 0, time.monotonic() + seconds
        while time.monotonic() < end:
            sock.sendall(request)
            read_answer(sock)
            count += 1
        return count * unpacked_bytes / 1e6 / ((cpu_ns(pid) - cpu) / 1e9)


def capture(host, seconds, hz):
    """One request, as hearth sends it: a recording of this machine while it compiles, unpacked."""
    path = host.file("receive.otlp")
    with compiling(host):
        time.sleep(1)
        subprocess.run([host.hearth, "record", "-q", "-d", str(seconds), "-F", str(hz), "-o", path], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with open(path, "rb") as f:
        return f.read()


def rates(host):
    rounds, seconds = (1, 1) if QUICK else (5, 2)
    for name, body in (("a few seconds at 20 Hz", capture(host, 3, 20)), ("at 999 Hz", capture(host, 4, 999))):
        packed = gzip.compress(body, 6)
        note(f"{name}: {len(body):,} bytes, {len(packed):,} with gzip")
        with serve(host) as mine, collector(host) as other:
            for kind, request in (("plain", request_of(body)), ("gzip", request_of(packed, "gzip"))):
                results = [(rate(mine, PORT, request, len(body), seconds), rate(other, COLLECTOR_PORT, request, len(body), seconds))
                           for _ in range(rounds)]
                figure(f"received per CPU second, {kind}, {name}", "MB", median([r[0] for r in results]),
                       median([r[1] for r in results]), 3, least=True)


def crowd(host, clients, size):
    """The most that is resident while @clients send requests of @size bytes, all at once, time and again."""
    body = capture(host, 4, 999)
    request = memoryview(request_of(body * (size // len(body) + 1)))  # messages put together are one message
    with serve(host) as pid:
        figure("resident, idle", "MB", resident_mb(pid), None, 10, absolute=True)
        socks = {}
        for _ in range(clients):
            sock = socket.create_connection(("127.0.0.1", PORT))
            sock.setblocking(False)
            socks[sock.fileno()] = [sock, 0]
        answered, end = 0, time.monotonic() + (3 if QUICK else 15)
        poll = select.epoll()
        for fd in socks:
            poll.register(fd, select.EPOLLIN | select.EPOLLOUT)
        while time.monotonic() < end:
            for fd, events in poll.poll(1):
                answered += step(poll, fd, events, socks[fd], request)
        most = int(re.search(r"VmHWM:\s+(\d+) kB", read(f"/proc/{pid}/status")).group(1)) / 1024
        figure(f"resident at most, {clients} clients sending {len(request) / (1 << 20):.1f} MiB", "MB", most, None, 80, absolute=True)
        note(f"{answered} requests answered")
        for sock, _ in socks.values():
            sock.close()


def step(poll, fd, events, state, request):
    """Sends on, or takes the answer and begins anew; 1 when it was answered."""
    sock, sent = state
    if events & select.EPOLLIN:
        answer = sock.recv(65536)
        if not answer.startswith(b"HTTP/1.1 200 "):
            fail(f"answered {answer[:100]!r}")
        state[1] = 0
        poll.modify(fd, select.EPOLLIN | select.EPOLLOUT)
        return 1
    with contextlib.suppress(BlockingIOError):
        state[1] += sock.send(request[sent:sent + (256 << 10)])
    if state[1] == len(request):
        poll.modify(fd, select.EPOLLIN)
    return 0


def half_sent(host, count, tls=False):
    more, wrap = [], lambda sock: sock
    if tls:
        pem = host.file("receive.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", pem,
                        "-out", pem + ".crt", "-days", "1", "-subj", "/CN=localhost"], check=True, stderr=subprocess.DEVNULL)
        more = ["--tls-cert", pem + ".crt", "--tls-key", pem]
        context = ssl.create_default_context(cafile=pem + ".crt")
        context.check_hostname = False
        wrap = context.wrap_socket
    with serve(host, "--max-connections", str(count + 100), *more) as pid:
        before = resident_mb(pid)
        socks = [wrap(socket.create_connection(("127.0.0.1", PORT))) for _ in range(count)]
        for sock in socks:
            sock.sendall(request_of(bytes(500), announced=1000))
        time.sleep(2)
        figure(f"resident more with {count:,} half-sent requests{' over TLS' if tls else ''}", "MB", resident_mb(pid) - before, None,
               None if tls else 16, absolute=True)
        for sock in socks:
            sock.close()


def receive(host):
    rates(host)
    crowd(host, 100, 4 << 20)
    half_sent(host, 1000)
    half_sent(host, 1000, tls=True)
