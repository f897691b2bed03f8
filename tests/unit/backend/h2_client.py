# SPDX-License-Identifier: Apache-2.0
"""An HTTP/2 client that does just what it is told, right or wrong: frames are made by hand, headers by python3-hpack."""
import select
import socket
import struct

import hpack

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
END_STREAM, ACK, END_HEADERS, PADDED, HAS_PRIORITY = 1, 1, 4, 8, 32
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
EXPORT = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def message(data, flag=0):
    """gRPC's framing of one message."""
    return bytes([flag]) + struct.pack(">I", len(data)) + data


def headers_of(path=EXPORT, drop=(), more=(), **change):
    """A call's headers; keyword METHOD etc. by pseudo-header name, others in @more."""
    out = [(":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "localhost"),
           ("content-type", "application/grpc"), ("te", "trailers")]
    out = [(k, change.pop(k.strip(":").replace("-", "_"), v)) for k, v in out if k not in drop]
    assert not change, change
    return out + list(more)


class Stream:
    def __init__(self):
        self.blocks, self.data, self.reset, self.ended, self.window = [], b"", None, False, 65535

    def header(self, name):
        for block in reversed(self.blocks):
            for k, v in block:
                if k == name:
                    return v
        return None

    @property
    def status(self):
        value = self.header("grpc-status")
        return int(value) if value is not None else None


class Client:
    def __init__(self, port, settings=b"", opening=None):
        self.sock = socket.create_connection(("127.0.0.1", port), timeout=20)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.encoder, self.decoder = hpack.Encoder(), hpack.Decoder()
        self.encoder.huffman = False
        self.streams, self.next_stream, self.buffered = {}, 1, b""
        self.goaway, self.closed, self.pings, self.window, self.last_stream = None, False, [], 65535, None
        self.send(PREFACE + frame(SETTINGS, 0, 0, settings) if opening is None else opening)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.sock.close()

    def send(self, data):
        try:
            self.sock.sendall(data)
        except OSError:  # it has ended; reading will tell how
            pass

    def new_stream(self):
        stream, self.next_stream = self.next_stream, self.next_stream + 2
        self.streams[stream] = Stream()
        return stream

    def block(self, headers):
        return self.encoder.encode(headers, huffman=False)

    def call(self, headers=None, body=None, end=True):
        """Sends a call in one go, without regard to windows; its stream's number."""
        stream = self.new_stream()
        block = self.block(headers_of() if headers is None else headers)
        parts = [block[i:i + 16384] for i in range(0, len(block), 16384)]
        kinds = [HEADERS] + [CONTINUATION] * (len(parts) - 1)
        flags = [END_STREAM if end and body is None else 0] + [0] * (len(parts) - 1)
        flags[-1] |= END_HEADERS
        out = b"".join(frame(k, f, stream, p) for k, f, p in zip(kinds, flags, parts))
        pieces = [body[i:i + 16384] for i in range(0, len(body), 16384)] or [b""] if body is not None else []
        for i, piece in enumerate(pieces):
            out += frame(DATA, END_STREAM if end and i == len(pieces) - 1 else 0, stream, piece)
        self.send(out)
        return stream

    def read_bytes(self, n):
        while len(self.buffered) < n:
            try:
                more = self.sock.recv(65536)
            except ConnectionResetError:
                more = b""
            if not more:
                self.closed = True
                return None
            self.buffered += more
        out, self.buffered = self.buffered[:n], self.buffered[n:]
        return out

    def read_frame(self):
        """False: the connection has ended."""
        head = self.read_bytes(9)
        if head is None:
            return False
        length, kind, flags = int.from_bytes(head[:3], "big"), head[3], head[4]
        number = int.from_bytes(head[5:], "big")
        payload = self.read_bytes(length)
        if payload is None:
            return False
        s = self.streams.get(number)
        if kind == SETTINGS and not flags & ACK:
            self.send(frame(SETTINGS, ACK, 0))
        elif kind == PING and not flags & ACK:
            self.send(frame(PING, ACK, 0, payload))
        elif kind == PING:
            self.pings.append(payload)
        elif kind == GOAWAY:
            self.last_stream, self.goaway = struct.unpack(">II", payload[:8])
        elif kind == WINDOW_UPDATE:
            increment = int.from_bytes(payload, "big")
            if number == 0:
                self.window += increment
            elif s:
                s.window += increment
        elif kind == HEADERS:
            assert flags & END_HEADERS and not flags & (PADDED | HAS_PRIORITY)
            s = self.streams.setdefault(number, Stream())
            s.blocks.append(self.decoder.decode(payload))
        elif kind == DATA and s:
            s.data += payload
        elif kind == RST_STREAM:
            if s:
                s.reset = int.from_bytes(payload, "big")
        if kind in (HEADERS, DATA) and s and flags & END_STREAM:
            s.ended = True
        return True

    def wait(self, stream):
        """Until the stream has ended, was reset, or the connection has ended."""
        s = self.streams[stream]
        while not s.ended and s.reset is None and self.read_frame():
            pass
        return s

    def wait_closed(self):
        while self.read_frame():
            pass
        return self.goaway

    def quiet(self, seconds=0.1):
        """Reads what comes until nothing has for some time."""
        while self.buffered or select.select([self.sock], [], [], seconds)[0]:
            if not self.read_frame():
                return

    def settle(self):
        """Everything sent so far has been looked at: a ping has come back."""
        self.send(frame(PING, 0, 0, b"settled?"))
        before = len(self.pings)
        while len(self.pings) == before and self.read_frame():
            pass
