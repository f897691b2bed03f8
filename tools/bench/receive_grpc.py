# SPDX-License-Identifier: Apache-2.0
"""Receiving over gRPC: bytes that a CPU second takes in, decodes and validates, beside an OpenTelemetry Collector; and what
`serve` holds under many clients. The clients are here: plain sockets that speak as much HTTP/2 as it takes, within windows."""
import contextlib
import gzip
import re
import select
import socket
import struct
import time

from measure import QUICK, cpu_ns, fail, figure, median, note, read, resident_mb
from receive import COLLECTOR_GRPC_PORT, capture, collector, serve

PORT = 14317
EXPORT = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"
DATA, HEADERS, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 4, 6, 7, 8
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
PIECE_BYTES = 16384


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def header_block(encoding):
    """HPACK without tables, the same for every call."""
    pairs = [(":method", "POST"), (":scheme", "http"), (":path", EXPORT), (":authority", "localhost"),
             ("content-type", "application/grpc"), ("te", "trailers")] + ([("grpc-encoding", encoding)] if encoding else [])
    return b"".join(b"\0" + bytes([len(k)]) + k.encode() + bytes([len(v)]) + v.encode() for k, v in pairs)


class Client:
    """One call after the other on one connection. Never blocks when @sock does not."""

    def __init__(self, port, body, encoding=None):
        self.sock = socket.create_connection(("127.0.0.1", port))
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.block = header_block(encoding)
        self.body = memoryview(struct.pack(">BI", 1 if encoding else 0, len(body)) + body)
        self.sock.sendall(PREFACE + frame(SETTINGS, 0, 0))
        self.stream, self.sent, self.first_window = -1, len(self.body), 65535
        self.answered, self.ended = 0, 0
        self.window, self.stream_window = 65535, 65535
        self.received, self.out = b"", bytearray()

    def begin(self):
        self.stream, self.sent, self.stream_window = self.stream + 2, 0, self.first_window
        self.out += frame(HEADERS, 4, self.stream, self.block)

    def fill(self):
        """Frames for @out, as windows let them."""
        while self.sent < len(self.body) and len(self.out) < 256 << 10:
            room = min(self.window, self.stream_window, PIECE_BYTES, len(self.body) - self.sent)
            if room <= 0:
                return
            last = self.sent + room == len(self.body)
            self.out += frame(DATA, 1 if last else 0, self.stream, bytes(self.body[self.sent:self.sent + room]))
            self.sent, self.window, self.stream_window = self.sent + room, self.window - room, self.stream_window - room

    def take(self, data):
        """What came; true when the call's answer is among it."""
        self.received += data
        done = False
        while len(self.received) >= 9 and len(self.received) >= 9 + int.from_bytes(self.received[:3], "big"):
            length, kind, flags = int.from_bytes(self.received[:3], "big"), self.received[3], self.received[4]
            stream, payload = int.from_bytes(self.received[5:9], "big"), self.received[9:9 + length]
            self.received = self.received[9 + length:]
            done |= self.take_frame(kind, flags, stream, payload)
        return done

    def take_frame(self, kind, flags, stream, payload):
        if kind == SETTINGS and not flags & 1:
            for i in range(0, len(payload), 6):
                number, value = struct.unpack(">HI", payload[i:i + 6])
                if number == 4:
                    self.stream_window += value - self.first_window
                    self.first_window = value
            self.out += frame(SETTINGS, 1, 0)
        elif kind == PING and not flags & 1:
            self.out += frame(PING, 1, 0, payload)
        elif kind == WINDOW_UPDATE and stream in (0, self.stream):
            more = int.from_bytes(payload, "big")
            self.window += more if stream == 0 else 0
            self.stream_window += more if stream else 0
        elif kind == DATA and payload:  # the one message of an answer
            self.answered += 1
        elif kind == GOAWAY:
            fail(f"GOAWAY {payload!r}")
        elif kind == HEADERS and flags & 1:
            self.ended += 1
        return kind == HEADERS and bool(flags & 1)

    def call(self):
        self.begin()
        while True:
            self.fill()
            while self.out:  # all that windows let through, before something must come
                self.sock.sendall(self.out)
                self.out.clear()
                self.fill()
            if self.take(self.sock.recv(65536)):
                return


def rate(pid, port, body, encoding, unpacked_bytes, seconds):
    """MB of unpacked requests that a CPU second of @pid takes."""
    client = Client(port, body, encoding)
    for _ in range(20):
        client.call()
    cpu, count, end = cpu_ns(pid), 0, time.monotonic() + seconds
    while time.monotonic() < end:
        client.call()
        count += 1
    if client.answered != count + 20:
        fail(f"{client.answered} of {count + 20} calls were taken")
    client.sock.close()
    return count * unpacked_bytes / 1e6 / ((cpu_ns(pid) - cpu) / 1e9)


def rates(host):
    rounds, seconds = (1, 1) if QUICK else (5, 2)
    for name, body in (("a few seconds at 20 Hz", capture(host, 3, 20)), ("at 999 Hz", capture(host, 4, 999))):
        packed = gzip.compress(body, 6)
        note(f"{name}: {len(body):,} bytes, {len(packed):,} with gzip")
        with serve(host, "--grpc-address", f"127.0.0.1:{PORT}") as mine, collector(host) as other:
            for kind, request, encoding in (("plain", body, None), ("gzip", packed, "gzip")):
                results = [(rate(mine, PORT, request, encoding, len(body), seconds),
                            rate(other, COLLECTOR_GRPC_PORT, request, encoding, len(body), seconds)) for _ in range(rounds)]
                figure(f"received per CPU second over gRPC, {kind}, {name}", "MB", median([r[0] for r in results]),
                       median([r[1] for r in results]), 3, least=True)


def crowd(host, count, size):
    """The most that is resident while @count clients send messages of @size bytes, all at once, time and again."""
    body = capture(host, 4, 999)
    message = body * (size // len(body) + 1)  # messages put together are one message
    with serve(host, "--grpc-address", f"127.0.0.1:{PORT}") as pid:
        clients = [Client(PORT, message) for _ in range(count)]
        poll, by_fd = select.epoll(), {client.sock.fileno(): client for client in clients}
        for client in clients:
            client.sock.setblocking(False)
            client.begin()
            poll.register(client.sock, select.EPOLLIN | select.EPOLLOUT)
        end = time.monotonic() + (3 if QUICK else 15)
        while time.monotonic() < end:
            for fd, events in poll.poll(1):
                step(poll, by_fd[fd], events)
        most = int(re.search(r"VmHWM:\s+(\d+) kB", read(f"/proc/{pid}/status")).group(1)) / 1024
        figure(f"resident at most, {count} gRPC clients sending {len(message) / (1 << 20):.1f} MiB", "MB", most, None, 80, absolute=True)
        note(f"{sum(c.answered for c in clients)} calls taken, {sum(c.ended - c.answered for c in clients)} told to come again")
        for client in clients:
            client.sock.close()


def step(poll, client, events):
    if events & select.EPOLLIN:
        data = client.sock.recv(65536)
        if not data:
            fail("the server closed a connection")
        if client.take(data):
            client.begin()
    client.fill()
    with contextlib.suppress(BlockingIOError):
        del client.out[:client.sock.send(client.out)]
    client.fill()
    poll.modify(client.sock, select.EPOLLIN | (select.EPOLLOUT if client.out else 0))


def half_sent(host, count):
    with serve(host, "--grpc-address", f"127.0.0.1:{PORT}", "--max-connections", "1100") as pid:
        before = resident_mb(pid)
        clients = [Client(PORT, bytes(1000)) for _ in range(count)]
        for client in clients:
            client.begin()
            client.fill()
            client.sock.sendall(client.out[:-500])
        time.sleep(2)
        figure(f"resident more with {count:,} half-sent gRPC calls", "MB", resident_mb(pid) - before, None, 16, absolute=True)
        for client in clients:
            client.sock.close()


def receive_grpc(host):
    rates(host)
    crowd(host, 100, 4 << 20)
    half_sent(host, 1000)
