# SPDX-License-Identifier: Apache-2.0
"""HTTP/2 frame by frame, right or wrong, and the server that they go to: its counters, its memory, and an honest client. Headers are
written without HPACK's tables and without Huffman's code; answers are judged by their frames, so that no library has to agree."""
import http.client
import json
import os
import re
import socket
import ssl
import struct
import sys
import threading
import time
import urllib.parse
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "unit", "backend"))
from messages import dictionary, field, packed, profile, resource  # noqa: E402

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
END_STREAM, ACK, END_HEADERS, PADDED, HAS_PRIORITY = 1, 1, 4, 8, 32
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
EXPORT = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"
HEALTH = "/grpc.health.v1.Health/"
ANSWER_S = 5.0  # an honest client is answered by then
BEFORE_S = 60  # how old the samples are that are sent


def frame(kind, flags, stream, payload=b"", length=None):
    """@length: what its head says, if that is not the truth."""
    return struct.pack(">I", len(payload) if length is None else length)[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def literal(name, value, first=b"\0"):
    """A header that no table holds; with @first b"\\x40" one that goes into the table."""
    out = first
    for text in (name, value):
        text = text.encode() if isinstance(text, str) else text
        n = len(text)
        if n < 127:
            out += bytes([n])
        else:
            out += b"\x7f"
            n -= 127
            while n > 127:
                out += bytes([n & 127 | 128])
                n >>= 7
            out += bytes([n])
        out += text
    return out


def block(path=EXPORT, *more):
    """The headers of a sound call, and @more pairs."""
    pairs = [(":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "localhost"), ("content-type", "application/grpc")]
    return b"".join(literal(*pair) for pair in pairs + list(more))


def message(data, flag=0):
    """gRPC's framing of one message."""
    return bytes([flag]) + struct.pack(">I", len(data)) + data


def samples(service, count):
    """A request with @count samples of @service, of a minute ago."""
    now = time.time_ns() - BEFORE_S * 10**9
    times = field(5, b"".join(struct.pack("<Q", now + i) for i in range(count)))
    sample = field(1, 1) + packed(2, [1, 4]) + times
    return resource((("service.name", service),), [[profile([sample])]]) + dictionary()


class Connection:
    """Never raises for what the server does: who is cut off has said enough."""

    def __init__(self, server, settings=b"", opening=None, receive_bytes=None, acks=True):
        """@receive_bytes: of the kernel's buffer; @acks: settings are acknowledged when they are read."""
        self.frames, self.buffered, self.is_over, self.acks = [], b"", False, acks
        self.sock = socket.socket()
        if receive_bytes:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self.sock.settimeout(10)
        self.sock.connect(("127.0.0.1", server.grpc))
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if server.tls:
            self.sock = server.tls.wrap_socket(self.sock, server_hostname="localhost")
        self.send(PREFACE + frame(SETTINGS, 0, 0, settings) if opening is None else opening)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    def close(self):
        self.sock.close()

    def send(self, data):
        try:
            self.sock.sendall(data)
        except OSError:
            self.is_over = True

    def read(self, seconds, until=lambda c: False):
        """Reads until @until, the end of the connection, or for @seconds. True: not the time has ended it."""
        end = time.monotonic() + seconds
        while not until(self):
            left = end - time.monotonic()
            if left <= 0:
                return False
            self.sock.settimeout(left)
            try:
                more = self.sock.recv(1 << 16)
            except TimeoutError:
                return False
            except OSError:
                more = b""
            if not more:
                self.is_over = True
                return True
            self.buffered += more
            self.split()
        return True

    def split(self):
        while len(self.buffered) >= 9:
            length = int.from_bytes(self.buffered[:3], "big")
            if len(self.buffered) < 9 + length:
                return
            kind, flags, stream = self.buffered[3], self.buffered[4], int.from_bytes(self.buffered[5:9], "big")
            payload, self.buffered = self.buffered[9 : 9 + length], self.buffered[9 + length :]
            self.frames.append((kind, flags, stream, payload))
            if kind == SETTINGS and not flags & ACK and self.acks:
                self.send(frame(SETTINGS, ACK, 0))

    def of(self, kind, stream):
        return [f for f in self.frames if f[0] == kind and f[2] == stream]

    @property
    def goaway(self):
        last = self.of(GOAWAY, 0)
        return int.from_bytes(last[-1][3][4:8], "big") if last else None

    def has_ended(self, stream):
        return bool(self.of(RST_STREAM, stream)) or any(f[1] & END_STREAM for f in self.frames if f[0] in (HEADERS, DATA) and f[2] == stream)

    def is_good(self, stream):
        """Answered with OK, nothing of it refused: errors are trailers alone, and only an OK has a message, an empty one."""
        return b"".join(f[3] for f in self.of(DATA, stream)) == message(b"") and len(self.of(HEADERS, stream)) == 2


def call(stream, body, path=EXPORT, *more):
    return frame(HEADERS, END_HEADERS, stream, block(path, *more)) + frame(DATA, END_STREAM, stream, body)


class Server:
    """A `hearth serve` that is attacked."""

    def __init__(self, pid, url, grpc):
        self.pid, self.url, self.grpc = int(pid), url.rstrip("/"), int(grpc)
        self.tls = None
        if url.startswith("https:"):
            self.tls = ssl._create_unverified_context()  # a certificate of the test's own
            self.tls.set_alpn_protocols(["h2"])
        self.acknowledged, self.unsure = {}, {}  # samples by service; unsure: sent, and not answered
        self.slowest, self.refused, self.most_bytes, self.problems = 0.0, 0, 0, []
        self.lock = threading.Lock()

    def get(self, path):
        context = ssl._create_unverified_context() if self.tls else None
        with urllib.request.urlopen(self.url + path, timeout=20, context=context) as answer:
            return answer.read().decode()

    def counters(self):
        """All of /metrics, by name and labels."""
        pairs = (line.rsplit(" ", 1) for line in self.get("/metrics").splitlines() if line and line[0] != "#")
        return {name: float(value) for name, value in pairs}

    def stored(self):
        """Samples in the store by service."""
        now = time.time()
        told = json.loads(self.get("/api/v1/series?" + urllib.parse.urlencode({"from": now - 86400, "to": now + 60})))
        out = {}
        for s in told["series"]:
            name = s["labels"].get("service.name", "")
            out[name] = out.get(name, 0) + s["events"]
        return out

    def note_memory(self):
        """Anonymous memory now, in bytes."""
        with open(f"/proc/{self.pid}/status") as f:
            now = int(re.search(r"RssAnon:\s+(\d+) kB", f.read()).group(1)) << 10
        self.most_bytes = max(self.most_bytes, now)
        return now

    def problem(self, text):
        print("PROBLEM", text, flush=True)
        with self.lock:
            self.problems.append(text)

    def acknowledge(self, service, count):
        with self.lock:
            self.acknowledged[service] = self.acknowledged.get(service, 0) + count

    def honest(self, when, service="honest"):
        """A sound call over a new connection, made again where the server says that it is busy: it is answered with OK, in time."""
        began, good, is_refused = time.monotonic(), False, True
        while is_refused and time.monotonic() - began < ANSWER_S:
            try:
                with Connection(self) as c:
                    c.send(call(1, message(samples(service, 7))))
                    c.read(2 * ANSWER_S, lambda c: c.has_ended(1))
                    good, is_refused = c.is_good(1), len(c.of(HEADERS, 1)) == 1 and not c.of(DATA, 1)
                    seen = [f[:3] for f in c.frames]
            except OSError as e:
                is_refused, seen = False, e
            if is_refused:
                with self.lock:
                    self.refused += 1
                time.sleep(0.25)
        took = time.monotonic() - began
        with self.lock:
            self.slowest = max(self.slowest, took)
        if good:
            self.acknowledge(service, 7)
        elif not is_refused:
            self.unsure[service] = self.unsure.get(service, 0) + 7
        if not good or took > ANSWER_S:
            counted = {k: v for k, v in self.counters().items() if v and "rejected" in k}
            self.problem(f"{when}: an honest client is {'answered' if good else 'not answered'} after {took:.1f} s: {seen}; {counted}")

    def ask_page(self, when):
        """A question to the page's port: it is answered in time."""
        began = time.monotonic()
        try:
            self.stored()
        except (OSError, http.client.HTTPException, ValueError) as e:
            self.problem(f"{when}: the page says {e!r}")
        if time.monotonic() - began > ANSWER_S:
            self.problem(f"{when}: the page takes {time.monotonic() - began:.1f} s")

    def check_kept(self):
        """All that was acknowledged is there; of who only ever sends what is sound no more than that, and what was not answered."""
        stored = self.stored()
        for service, count in self.acknowledged.items():
            most = float("inf") if service.startswith("attacker") else count + self.unsure.get(service, 0)
            if not count <= stored.get(service, 0) <= most:
                self.problem(f"of {service} {count} samples were acknowledged, {stored.get(service, 0)} are stored")
