# SPDX-License-Identifier: Apache-2.0
"""Frames of HTTP/2 for grpc_requests.py: right ones in unusual shapes, and every rule broken once."""
from grpc_common import *


def shaped(client, frames, stream=None):
    stream = client.new_stream() if stream is None else stream
    client.send(b"".join(frame(kind, flags, stream if on is None else on, payload) for kind, flags, on, payload in frames))
    return stream


def body_frames(*payloads):
    return [(DATA, END_STREAM if i == len(payloads) - 1 else 0, None, p) for i, p in enumerate(payloads)]


def unusual(client):
    """Name -> frames of a call that is right."""
    body = message(GOOD)
    return {
        "byte by byte": lambda b: [(HEADERS, END_HEADERS, None, b)] + body_frames(*[body[i:i + 1] for i in range(len(body))]),
        "empty frames": lambda b: [(HEADERS, END_HEADERS, None, b)] + body_frames(b"", body[:9], b"", body[9:], b""),
        "padding": lambda b: [(HEADERS, END_HEADERS | PADDED, None, b"\x07" + b + bytes(7)),
                              (DATA, END_STREAM | PADDED, None, b"\xff" + body + bytes(255))],
        "all padding first": lambda b: [(HEADERS, END_HEADERS, None, b), (DATA, PADDED, None, b"\x03" + bytes(3))] + body_frames(body),
        "priority in headers": lambda b: [(HEADERS, END_HEADERS | HAS_PRIORITY, None, b"\0\0\0\0\x10" + b)] + body_frames(body),
        "headers in pieces": lambda b: [(HEADERS, 0, None, b[:1])] + [(CONTINUATION, 0, None, b[i:i + 40]) for i in range(1, len(b), 40)] +
        [(CONTINUATION, END_HEADERS, None, b"")] + body_frames(body),
        "trailers": lambda b: [(HEADERS, END_HEADERS, None, b), (DATA, 0, None, body),
                               (HEADERS, END_HEADERS | END_STREAM, None, client.block([("x-end", "1")]))],
        "frame of unknown type": lambda b: [(200, 255, None, b"?" * 50), (HEADERS, END_HEADERS, None, b), (77, 0, None, b"?")] + body_frames(body),
        "priority frames": lambda b: [(PRIORITY, 0, None, b"\0\0\0\0\1"), (HEADERS, END_HEADERS, None, b)] + body_frames(body),
        "window updates": lambda b: [(HEADERS, END_HEADERS, None, b), (WINDOW_UPDATE, 0, None, b"\0\0\1\0"), (WINDOW_UPDATE, 0, 0, b"\0\0\1\0")] +
        body_frames(body),
        "settings in between": lambda b: [(HEADERS, END_HEADERS, None, b), (SETTINGS, 0, 0, b"\0\4\0\0\xff\xff\0\x77\0\0\0\1")] + body_frames(body),
    }


def shapes():
    with Client(PORT) as client:
        for name, frames in unusual(client).items():
            s = client.wait(shaped(client, frames(client.block(headers_of()))))
            check_call(name, s, OK, "")
            good(client, name)


def raw_headers(*pairs):
    """A block without the encoder, which would refuse some of these."""
    def text(t):
        t = t if isinstance(t, bytes) else t.encode()
        return bytes([len(t)]) + t if len(t) < 127 else b"\x7f" + bytes([len(t) - 127]) + t
    return b"".join(b"\0" + text(k) + text(v) for k, v in pairs)


WHOLE = [(":method", "POST"), (":scheme", "http"), (":authority", "a"), (":path", EXPORT), ("content-type", "application/grpc")]
PSEUDO, REST = WHOLE[:4], WHOLE[4:]

RESETS = [  # name, header pairs, frames of the body, error of RST_STREAM
    ("no path", [p for p in WHOLE if p[0] != ":path"], None, PROTOCOL),
    ("no method", [p for p in WHOLE if p[0] != ":method"], None, PROTOCOL),
    ("no scheme", [p for p in WHOLE if p[0] != ":scheme"], None, PROTOCOL),
    ("no authority", [p for p in WHOLE if p[0] != ":authority"], None, PROTOCOL),
    ("no headers", [], None, PROTOCOL),
    ("path twice", PSEUDO + PSEUDO[3:] + REST, None, PROTOCOL),
    ("empty path", [(":path", "") if p[0] == ":path" else p for p in WHOLE], None, PROTOCOL),
    ("pseudo-header behind others", REST + PSEUDO, None, PROTOCOL),
    ("unknown pseudo-header", PSEUDO + [(":protocol", "grpc")] + REST, None, PROTOCOL),
    ("pseudo-header of answers", PSEUDO + [(":status", "200")] + REST, None, PROTOCOL),
    ("capital letters", PSEUDO + [("Content-Type", "application/grpc")], None, PROTOCOL),
    ("connection header", WHOLE + [("connection", "close")], None, PROTOCOL),
    ("transfer-encoding", WHOLE + [("transfer-encoding", "chunked")], None, PROTOCOL),
    ("te: gzip", WHOLE + [("te", "gzip")], None, PROTOCOL),
    ("line break in a value", WHOLE + [("x", b"a\r\nb: c")], None, PROTOCOL),
    ("NUL in a value", WHOLE + [("x", b"a\0b")], None, PROTOCOL),
    ("space in a name", WHOLE + [("x y", "z")], None, PROTOCOL),
    ("content-length is none", WHOLE + [("content-length", "five")], None, PROTOCOL),
    ("content-length too small", WHOLE + [("content-length", "3")], [(DATA, END_STREAM, None, message(GOOD))], PROTOCOL),
    ("content-length too large", WHOLE + [("content-length", "30000")], [(DATA, END_STREAM, None, message(GOOD))], PROTOCOL),
    ("trailers that end nothing", WHOLE, [(DATA, 0, None, message(GOOD)), (HEADERS, END_HEADERS, None, raw_headers(("x", "y")))], PROTOCOL),
    ("pseudo-header in trailers", WHOLE, [(HEADERS, END_HEADERS | END_STREAM, None, raw_headers((":path", "/")))], PROTOCOL),
]


def resets():
    """What is wrong with a stream ends the stream."""
    with Client(PORT) as client, Client(PORT) as neighbour:
        for name, pairs, body, error in RESETS:
            flags = END_HEADERS | (END_STREAM if body is None else 0)
            s = client.wait(shaped(client, [(HEADERS, flags, None, raw_headers(*pairs))] + (body or [])))
            check(s.reset == error, "%s: reset %s, not %d: %s goaway %s" % (name, s.reset, error, s.blocks, client.goaway))
            time.sleep(0.05)  # the patience of a server with those who break streams is bounded
            good(client, name)
            good(neighbour, name + ", on another connection")


def refused_at_once():
    """Calls that are refused while their first windows are on their way are no flood, however many at once."""
    with Client(PORT) as client:
        for _ in range(2):
            calls = [shaped(client, [(HEADERS, END_HEADERS, None, client.block(headers_of("/x/y")))]) for _ in range(90)]
            client.send(b"".join(frame(DATA, 0, s, bytes(16000)) for s in calls for _ in range(4)))
            for s in calls:
                check_call("refused", client.wait(s), UNIMPLEMENTED, "")
        good(client, "calls refused at once")


def setting(number, value):
    return struct.pack(">HI", number, value)


ANSWERED = "time for an answer"
CUTS = [  # name, frames or bytes, error of GOAWAY, None: closed without
    ("HTTP/1.1", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", None),
    ("HTTP/1.1 that asks for HTTP/2", b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n", None),
    ("TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500), None),
    ("half a preface, then another", PREFACE[:10] + b"x" * 20, None),
    ("no SETTINGS first", PREFACE + frame(PING, 0, 0, bytes(8)), PROTOCOL),
    ("ACK for SETTINGS first", PREFACE + frame(SETTINGS, ACK, 0), PROTOCOL),
    ("frame too large", [(DATA, 0, 1, bytes(16385))], FRAME_SIZE),
    ("frame of unknown type too large", [(99, 0, 1, bytes(16385))], FRAME_SIZE),
    ("SETTINGS on a stream", [(SETTINGS, 0, 1, b"")], PROTOCOL),
    ("SETTINGS of odd length", [(SETTINGS, 0, 0, bytes(5))], FRAME_SIZE),
    ("ACK with SETTINGS", [(SETTINGS, ACK, 0, bytes(6))], FRAME_SIZE),
    ("push is 2", [(SETTINGS, 0, 0, setting(2, 2))], PROTOCOL),
    ("first window beyond 2 GiB", [(SETTINGS, 0, 0, setting(4, 1 << 31))], FLOW),
    ("frame size of 100", [(SETTINGS, 0, 0, setting(5, 100))], PROTOCOL),
    ("frame size of 16 MiB", [(SETTINGS, 0, 0, setting(5, 1 << 24))], PROTOCOL),
    ("1,000 settings in a frame", [(SETTINGS, 0, 0, setting(9, 1) * 1000)], CALM),
    ("short PING", [(PING, 0, 0, bytes(7))], FRAME_SIZE),
    ("PING on a stream", [(PING, 0, 1, bytes(8))], PROTOCOL),
    ("short RST_STREAM", [(RST_STREAM, 0, 1, bytes(3))], FRAME_SIZE),
    ("RST_STREAM of the connection", [(RST_STREAM, 0, 0, bytes(4))], PROTOCOL),
    ("RST_STREAM of no stream", [(RST_STREAM, 0, 7, bytes(4))], PROTOCOL),
    ("short WINDOW_UPDATE", [(WINDOW_UPDATE, 0, 0, bytes(3))], FRAME_SIZE),
    ("WINDOW_UPDATE of 0 on a stream", [(HEADERS, END_HEADERS, 1, raw_headers(*WHOLE)), (WINDOW_UPDATE, 0, 1, bytes(4))], PROTOCOL),
    ("WINDOW_UPDATE of 0", [(WINDOW_UPDATE, 0, 0, bytes(4))], PROTOCOL),
    ("WINDOW_UPDATE of no stream", [(WINDOW_UPDATE, 0, 7, b"\0\0\0\1")], PROTOCOL),
    ("window beyond 2 GiB", [(WINDOW_UPDATE, 0, 0, b"\x7f\xff\xff\xff")], FLOW),
    ("DATA of the connection", [(DATA, 0, 0, b"abc")], PROTOCOL),
    ("DATA of no stream", [(DATA, 0, 7, b"abc")], PROTOCOL),
    ("HEADERS of the connection", [(HEADERS, END_HEADERS, 0, raw_headers(*WHOLE))], PROTOCOL),
    ("even stream", [(HEADERS, END_HEADERS, 2, raw_headers(*WHOLE))], PROTOCOL),
    ("DATA behind the end", [(HEADERS, END_HEADERS, 1, raw_headers(*WHOLE)), (DATA, END_STREAM, 1, b"\0\0\0\0\x09"), (DATA, 0, 1, b"x")], CLOSED),
    ("more padding than frame", [(HEADERS, END_HEADERS, 1, raw_headers(*WHOLE)), (DATA, PADDED, 1, b"\x09abc")], PROTOCOL),
    ("more padding than headers", [(HEADERS, END_HEADERS | PADDED, 1, b"\xff" + raw_headers(*WHOLE)[:20])], PROTOCOL),
    ("PING among headers", [(HEADERS, 0, 1, raw_headers(*WHOLE)), (PING, 0, 0, bytes(8))], PROTOCOL),
    ("another's CONTINUATION", [(HEADERS, 0, 1, raw_headers(*WHOLE)), (CONTINUATION, END_HEADERS, 3, b"")], PROTOCOL),
    ("CONTINUATION of nothing", [(CONTINUATION, END_HEADERS, 1, raw_headers(*WHOLE))], PROTOCOL),
    ("PUSH_PROMISE", [(HEADERS, END_HEADERS, 1, raw_headers(*WHOLE)), (PUSH_PROMISE, END_HEADERS, 1, b"\0\0\0\2" + raw_headers(*WHOLE))], PROTOCOL),
    ("GOAWAY of a stream", [(GOAWAY, 0, 1, bytes(8))], PROTOCOL),
    ("short GOAWAY", [(GOAWAY, 0, 0, bytes(7))], FRAME_SIZE),
    ("short PRIORITY", [(PRIORITY, 0, 1, bytes(4))], FRAME_SIZE),
    ("no HPACK", [(HEADERS, END_HEADERS, 1, b"\xff\xff\xff\xff\xff\xff\xff\xff")], COMPRESSION),
    ("HPACK index 0", [(HEADERS, END_HEADERS, 1, b"\x80")], COMPRESSION),
    ("HPACK index of nothing", [(HEADERS, END_HEADERS, 1, b"\xfe")], COMPRESSION),
    ("HPACK table beyond its limit", [(HEADERS, END_HEADERS, 1, b"\x3f\xff\xff\xff\x07" + raw_headers(*WHOLE))], COMPRESSION),
    ("HPACK cut", [(HEADERS, END_HEADERS, 1, raw_headers(*WHOLE)[:-1])], COMPRESSION),
    # floods
    ("pings", [(PING, 0, 0, bytes(8))] * 20000, CALM),
    ("pings answered for nothing", [(PING, ACK, 0, bytes(8))] * 20000, CALM),
    ("settings", [(SETTINGS, 0, 0, b"")] * 20000, CALM),
    ("settings acknowledged for nothing", [(SETTINGS, ACK, 0, b"")] * 20000, PROTOCOL),
    ("priorities", [(PRIORITY, 0, 1, b"\0\0\0\0\1")] * 20000, CALM),
    ("window updates", [(WINDOW_UPDATE, 0, 0, b"\0\0\0\1")] * 20000, CALM),
    ("empty data", [(HEADERS, END_HEADERS, 1, raw_headers(*WHOLE))] + [(DATA, 0, 1, b"")] * 20000, CALM),
    ("tiny data", [(HEADERS, END_HEADERS, 1, raw_headers(*WHOLE)), (DATA, 0, 1, b"\0\0\x08\0\0")] + [(DATA, 0, 1, b"x")] * 20000, CALM),
    ("pieces of headers", [(HEADERS, 0, 1, raw_headers(*WHOLE))] + [(CONTINUATION, 0, 1, b"")] * 20000, CALM),
    ("headers without end", [(HEADERS, 0, 1, raw_headers(*WHOLE))] + [(CONTINUATION, 0, 1, raw_headers(("x", "y" * 200)) * 75)] * 40, CALM),
    ("headers that grow", [(HEADERS, END_HEADERS, 1, raw_headers(*WHOLE) + b"\x40\x01x\x7f\xa1\x1e" + b"y" * 4000 + b"\xbe" * 8000)], CALM),
    ("rapid reset", [f for i in range(1, 4001, 2) for f in ((HEADERS, END_HEADERS, i, raw_headers(*WHOLE)), (RST_STREAM, 0, i, b"\0\0\0\x08"))], CALM),
    ("streams without end", [(HEADERS, END_HEADERS, i, raw_headers(*WHOLE)) for i in range(1, 20001, 2)], CALM),
    ("broken streams", [(HEADERS, END_HEADERS | END_STREAM, i, raw_headers(("x", "y"))) for i in range(1, 20001, 2)], CALM),
    ("unknown frames", [(200, 0, 0, b"")] * 20000, CALM),
    ("unknown frames on a stream", [(HEADERS, END_HEADERS, 1, raw_headers(*WHOLE))] + [(255, 255, 1, b"?" * 50)] * 20000, CALM),
    ("large unknown frames", [(11, 0, 0, bytes(16384))] * 2400, CALM),
    ("frames of extensions", [(kind, 0, 0, b"\0\0\0\1u=1") for kind in (10, 12, 16)] * 7000, CALM),
    ("padding alone", [(HEADERS, END_HEADERS, 1, raw_headers(*WHOLE))] + [(DATA, PADDED, 1, b"\xff" + bytes(255))] * 20000, CALM),
    ("data of a stream that they reset", [(HEADERS, END_HEADERS, 1, raw_headers(*WHOLE)), (RST_STREAM, 0, 1, bytes(4))] +
     [(DATA, 0, 1, bytes(16384))] * 2400, CALM),
    ("data of a stream that we reset", [(HEADERS, END_HEADERS, 1, raw_headers(*PSEUDO[1:]))] + [(DATA, 0, 1, bytes(16384))] * 2400, CALM),
    ("data behind an answer", [(HEADERS, END_HEADERS, 1, raw_headers(*PSEUDO[:3], (":path", "/x"), *REST)), ANSWERED] +
     [(DATA, 0, 1, bytes(16384))] * 2400, CALM),
]


def cut(name, what, error):
    raw = what if isinstance(what, bytes) else None
    with Client(PORT, opening=raw) as client:
        if raw is None:
            at = what.index(ANSWERED) if ANSWERED in what else 0
            client.send(b"".join(frame(*f) for f in what[:at]))
            time.sleep(0.1 if at else 0)
            client.send(b"".join(frame(*f) for f in what[at:] if f != ANSWERED))
        if raw and not raw.startswith(PREFACE):
            text = client.sock.recv(1000)
            check(text.startswith(b"HTTP/1.1 400 ") and b"gRPC" in text, "%s: %r" % (name, text))
            return
        client.sock.settimeout(5)
        got = client.wait_closed()
        check(got == error, "%s: GOAWAY %s, not %s" % (name, got, error))


def cuts():
    """What is wrong with a connection ends it, and no other; with GOAWAY, where there is HTTP/2."""
    with Client(PORT) as neighbour:
        for name, what, error in CUTS:
            try:
                cut(name, what, error)
            except OSError as e:
                check(False, "%s: %r" % (name, e))
            good(neighbour, name)
    print("%d cuts, %d resets" % (len(CUTS), len(RESETS)))
