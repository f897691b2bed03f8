#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Good and bad gRPC calls and HTTP/2 frames against running servers; test_grpc.c starts them and this.

usage: grpc_requests.py PORT IMPATIENT_PORT

PORT takes messages up to 1 MiB and has 4 MiB for all. IMPATIENT_PORT as well, but gives a call 2.4 s, an idle connection
0.6 s, and has room for four connections. A profile whose resource says test.errno=N makes the sink fail with that error.
"""
import base64
import errno
import gzip
import re
import struct
import sys
import time
import zlib

from h2_client import *
from messages import dictionary, field, nested, profile, request, resource, sample

PORT, IMPATIENT = int(sys.argv[1]), int(sys.argv[2])
LIMIT = 1 << 20
GOOD = request()
OK, INVALID, DEADLINE, NOT_FOUND, EXHAUSTED, UNIMPLEMENTED, INTERNAL, UNAVAILABLE = 0, 3, 4, 5, 8, 12, 13, 14
NO_ERROR, PROTOCOL, FLOW, CLOSED, FRAME_SIZE, REFUSED, COMPRESSION, CALM = 0, 1, 3, 5, 6, 7, 9, 11
OTLP = "/opentelemetry.proto.collector."
HEALTH = "/grpc.health.v1.Health/"
failures = []


def check(ok, what):
    if not ok:
        failures.append(what)
        print("FAIL", what)


def good(client, what):
    s = client.wait(client.call(body=message(GOOD)))
    check(s.status == OK and s.data == message(b"") and s.reset is None,
          "a good call after %s: %s %r reset %s goaway %s" % (what, s.blocks, s.data, s.reset, client.goaway))


# --- calls: one answer with a grpc-status each ---

def more(*headers, path=EXPORT, **change):
    return headers_of(path=path, more=headers, **change)


def gz(data, level=9):
    return message(gzip.compress(data, level), 1)


def zstd(data):
    """A frame of one raw block."""
    assert len(data) < 256
    return b"\x28\xb5\x2f\xfd\x20" + bytes([len(data)]) + struct.pack("<I", 1 | len(data) << 3)[:3] + data


def lying(body, length):
    return body[:-4] + struct.pack("<I", length)


GZIP, ZSTD = ("grpc-encoding", "gzip"), ("grpc-encoding", "zstd")
VERSION = "otlp-profiles-development-version"
TINY = resource((("container.id", "x"),), [])

CALLS = [  # name, headers, body, code, what the message says
    ("good", more(), message(GOOD), OK, ""),
    ("empty message", more(), message(b""), OK, ""),
    ("gzip", more(GZIP), gz(GOOD), OK, ""),
    ("gzip of nothing", more(GZIP), gz(b""), OK, ""),
    ("gzip at the limit", more(GZIP), gz(request(padding=LIMIT - len(GOOD) - 4)), OK, ""),
    ("gzip announced, not used", more(GZIP), message(GOOD), OK, ""),
    ("identity", more(("grpc-encoding", "identity")), message(GOOD), OK, ""),
    ("zstd", more(ZSTD), message(zstd(TINY), 1), OK, ""),
    ("+proto", more(content_type="application/grpc+proto"), message(GOOD), OK, ""),
    ("parameters", more(content_type="application/grpc; a=b"), message(GOOD), OK, ""),
    ("no te", headers_of(drop=("te",)), message(GOOD), OK, ""),
    ("host for authority", headers_of(drop=(":authority",), more=[("host", "a")]), message(GOOD), OK, ""),
    ("deadline far away", more(("grpc-timeout", "99999999H")), message(GOOD), OK, ""),
    ("many headers", more(*[("x-%d" % i, "y" * 100) for i in range(80)]), message(GOOD), OK, ""),
    ("version 1", more((VERSION, "1")), message(GOOD), OK, ""),
    ("version of logs", more((VERSION, "7"), path=OTLP + "logs.v1.LogsService/Export"), message(b""), OK, ""),
    ("logs", more(path=OTLP + "logs.v1.LogsService/Export"), message(b"\x0a\x00"), OK, ""),
    ("metrics", more(GZIP, path=OTLP + "metrics.v1.MetricsService/Export"), gz(b"\x0a\x00"), OK, ""),
    ("traces", more(path=OTLP + "trace.v1.TraceService/Export"), message(b""), OK, ""),
    ("version 2", more((VERSION, "2")), message(GOOD), INVALID, VERSION),
    ("version 01", more((VERSION, "01")), message(GOOD), INVALID, VERSION),
    ("version 1,1", more((VERSION, "1,1")), message(GOOD), INVALID, VERSION),
    ("version empty", more((VERSION, "")), message(GOOD), INVALID, VERSION),
    ("version twice", more((VERSION, "1"), (VERSION, "1")), message(GOOD), INVALID, VERSION),
    ("unknown service", more(path="/a.b/Export"), message(GOOD), UNIMPLEMENTED, "unknown service"),
    ("unknown method", more(path=EXPORT + "s"), message(GOOD), UNIMPLEMENTED, "unknown method"),
    ("method in small letters", more(path=EXPORT.lower()), message(GOOD), UNIMPLEMENTED, "unknown service"),
    ("slash too many", more(path=EXPORT + "/"), message(GOOD), UNIMPLEMENTED, "unknown method"),
    ("query", more(path=EXPORT + "?a"), message(GOOD), UNIMPLEMENTED, "unknown method"),
    ("path without method", more(path="/opentelemetry"), message(GOOD), UNIMPLEMENTED, "not a path"),
    ("path of nothing", more(path="/"), message(GOOD), UNIMPLEMENTED, "not a path"),
    ("two slashes", more(path="//"), message(GOOD), UNIMPLEMENTED, "unknown service"),
    ("reflection", more(path="/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"), message(b""), UNIMPLEMENTED, "service"),
    ("long path", more(path="/" + "a" * 8000 + "/b"), message(GOOD), UNIMPLEMENTED, "unknown service"),
    ("GET", more(method="GET"), None, INTERNAL, "POST"),
    ("PUT", more(method="PUT"), message(GOOD), INTERNAL, "POST"),
    ("no content type", headers_of(drop=("content-type",)), message(GOOD), INVALID, "content type"),
    ("content type of HTTP", more(content_type="application/x-protobuf"), message(GOOD), INVALID, "content type"),
    ("content type +json", more(content_type="application/grpc+json"), message(GOOD), INVALID, "content type"),
    ("content type of gRPC-Web", more(content_type="application/grpc-web"), message(GOOD), INVALID, "content type"),
    ("encoding snappy", more(("grpc-encoding", "snappy")), message(GOOD, 1), UNIMPLEMENTED, "snappy"),
    ("encoding deflate", more(("grpc-encoding", "deflate")), message(zlib.compress(GOOD), 1), UNIMPLEMENTED, "deflate"),
    ("encoding empty", more(("grpc-encoding", "")), message(GOOD), UNIMPLEMENTED, "grpc-encoding"),
    ("two encodings", more(("grpc-encoding", "gzip,gzip")), gz(GOOD), UNIMPLEMENTED, "gzip,gzip"),
    ("timeout without unit", more(("grpc-timeout", "100")), message(GOOD), INTERNAL, "grpc-timeout"),
    ("timeout without number", more(("grpc-timeout", "S")), message(GOOD), INTERNAL, "grpc-timeout"),
    ("timeout too long", more(("grpc-timeout", "123456789n")), message(GOOD), INTERNAL, "grpc-timeout"),
    ("timeout negative", more(("grpc-timeout", "-1S")), message(GOOD), INTERNAL, "grpc-timeout"),
    ("timeout in seconds of others", more(("grpc-timeout", "10s")), message(GOOD), INTERNAL, "grpc-timeout"),
    ("no time at all", more(("grpc-timeout", "0n")), message(GOOD), DEADLINE, "deadline"),
    ("headers too large", more(("x", "y" * 17000)), message(GOOD), EXHAUSTED, "headers"),
    ("too many headers", more(*[("x-%d" % i, "") for i in range(500)]), message(GOOD), EXHAUSTED, "headers"),
    ("flag 2", more(), message(GOOD, 2), INTERNAL, "not with 2"),
    ("flag 255", more(), message(GOOD, 255), INTERNAL, "not with 255"),
    ("compressed without encoding", more(), gz(GOOD), INTERNAL, "no grpc-encoding"),
    ("compressed with identity", more(("grpc-encoding", "identity")), gz(GOOD), INTERNAL, "no grpc-encoding"),
    ("no body", more(), None, UNIMPLEMENTED, "no message"),
    ("empty body", more(), b"", UNIMPLEMENTED, "no message"),
    ("one byte", more(), b"\0", INTERNAL, "ends after 0"),
    ("half a prefix", more(), b"\0\0\0", INTERNAL, "ends after 0"),
    ("prefix alone", more(), b"\0\0\0\0\5", INTERNAL, "ends after 0 of its 5"),
    ("cut message", more(), message(GOOD)[:-1], INTERNAL, "ends after"),
    ("a byte too many", more(), message(GOOD) + b"\0", UNIMPLEMENTED, "more than one"),
    ("two messages", more(), message(GOOD) * 2, UNIMPLEMENTED, "more than one"),
    ("empty and another", more(), message(b"") * 2, UNIMPLEMENTED, "more than one"),
    ("said to be too large", more(), b"\0" + struct.pack(">I", LIMIT + 1), EXHAUSTED, "larger than 1048576"),
    ("said to have 4 GiB", more(), b"\0" + b"\xff" * 4, EXHAUSTED, "4294967295"),
    ("said to have 4 GiB, gzip", more(GZIP), b"\1" + b"\xff" * 4, EXHAUSTED, "4294967295"),
    ("not gzip", more(GZIP), message(GOOD, 1), INVALID, "gzip"),
    ("gzip, nothing there", more(GZIP), message(b"", 1), INVALID, "gzip"),
    ("gzip cut", more(GZIP), message(gzip.compress(GOOD)[:-9], 1), INVALID, "gzip"),
    ("gzip with wrong crc", more(GZIP), message(gzip.compress(GOOD)[:-8] + b"\0" * 4 + gzip.compress(GOOD)[-4:], 1), INVALID, "gzip"),
    ("gzip and garbage", more(GZIP), message(gzip.compress(GOOD) + b"garbage", 1), INVALID, "gzip"),
    ("gzip claims 4 GiB", more(GZIP), message(lying(gzip.compress(GOOD), 0xffffffff), 1), INVALID, "gzip"),
    ("gzip of garbage", more(GZIP), gz(b"\xff" * 50), INVALID, "byte 0"),
    ("bomb", more(GZIP), gz(bytes(50 << 20)), EXHAUSTED, "larger than 1048576"),
    ("bomb that lies", more(GZIP), message(lying(gzip.compress(bytes(50 << 20)), 1000), 1), EXHAUSTED, "larger than"),
    ("not zstd", more(ZSTD), message(GOOD, 1), INVALID, "zstd"),
    ("zstd cut", more(ZSTD), message(zstd(TINY)[:-1], 1), INVALID, "zstd"),
    ("not protobuf", more(), message(b"<html>hello</html>"), INVALID, "byte 0"),
    ("wrong wire type", more(), message(field(1, 5)), INVALID, "wire type varint"),
    ("cut protobuf", more(), message(GOOD[:-3]), INVALID, "byte"),
    ("index beyond its table", more((VERSION, "1")), message(resource((), [[profile([sample([77], 1)])]]) + dictionary()), INVALID, "77"),
    ("string that is not UTF-8", more(), message(request((("container.id", b"b\xffd"),))), INVALID, "UTF-8"),
    ("nested too deep", more(), message(nested(10000)), INVALID, "deep"),
    ("sink full", more(), message(request((("test.errno", errno.EAGAIN),))), UNAVAILABLE, "full"),
    ("sink broken", more(), message(request((("test.errno", errno.EIO),))), INTERNAL, "passed on"),
    ("health", more(path=HEALTH + "Check"), message(b""), OK, ""),
    ("health, gzip", more(GZIP, path=HEALTH + "Check"), gz(b""), OK, ""),
    ("health of a service", more(path=HEALTH + "Check"), message(field(1, EXPORT.split("/")[1])), OK, ""),
    ("health of nobody", more(path=HEALTH + "Check"), message(field(1, "nobody")), NOT_FOUND, "nobody"),
    ("health of garbage", more(path=HEALTH + "Check"), message(b"\xff"), INTERNAL, "HealthCheckRequest"),
    ("health, cut", more(path=HEALTH + "Check"), message(b"\x0a\x05ab"), INTERNAL, "HealthCheckRequest"),
    ("health, too large", more(path=HEALTH + "Check"), message(bytes(5000)), EXHAUSTED, "larger than 4096"),
    ("health, bomb", more(GZIP, path=HEALTH + "Check"), gz(bytes(4 << 20)), EXHAUSTED, "larger than 4096"),
    ("health, small bomb", more(GZIP, path=HEALTH + "Check"), gz(bytes(1 << 20)), INTERNAL, "unpack"),
    ("health, unknown method", more(path=HEALTH + "Chuck"), message(b""), UNIMPLEMENTED, "unknown method"),
]
SERVING = message(b"\x08\x01")
HTTP_STATUS = {"GET": "405", "PUT": "405", "no content type": "415", "content type of HTTP": "415", "content type +json": "415",
               "content type of gRPC-Web": "415"}


def check_details(name, s):
    """UNAVAILABLE says when to come again: a google.rpc.Status with a RetryInfo of one second."""
    text = s.header("grpc-status-details-bin")
    raw = base64.b64decode(text + "=" * (-len(text) % 4)) if text else b""
    url = b"type.googleapis.com/google.rpc.RetryInfo"
    check(raw == field(1, UNAVAILABLE) + field(2, unquoted(s)) + field(3, field(1, url) + field(2, field(1, field(1, 1)))),
          "%s: details %r" % (name, raw))


def unquoted(s):
    return re.sub("%([0-9A-F]{2})", lambda m: chr(int(m.group(1), 16)), s.header("grpc-message") or "")


def check_call(name, s, code, says):
    check(s.status == code, "%s: status %s, not %d: %s reset %s" % (name, s.status, code, s.blocks, s.reset))
    check(s.header(":status") == HTTP_STATUS.get(name, "200"), "%s: HTTP status %s" % (name, s.header(":status")))
    check(s.header("content-type") == "application/grpc", "%s: %s" % (name, s.blocks))
    check(says in unquoted(s), "%s: '%s' does not say '%s'" % (name, unquoted(s), says))
    if code == OK:
        expected = SERVING if name.startswith("health") else message(b"")
        check(s.data == expected and len(s.blocks) == 2, "%s: %r" % (name, s.data))
    else:
        check(len(s.blocks) == 1 and s.data == b"", "%s: an error is trailers only" % name)
    if code == UNAVAILABLE:
        check_details(name, s)
    if code == UNIMPLEMENTED and "encoding" in name:
        check(s.header("grpc-accept-encoding") == "identity,gzip,zstd", "%s: accepts what?" % name)


def calls():
    """Every call on one connection: whatever was wrong, the next one on it is served."""
    with Client(PORT) as client, Client(PORT) as neighbour:
        for name, headers, body, code, says in CALLS:
            check_call(name, client.wait(client.call(headers, body)), code, says)
            good(client, name)
            good(neighbour, name + ", on another connection")
        check(client.goaway is None, "GOAWAY %s after the calls" % client.goaway)
    print("%d calls" % len(CALLS))


# --- frames: right ones in unusual shapes, and every rule of HTTP/2 broken once ---

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


def setting(number, value):
    return struct.pack(">HI", number, value)


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
]


def cut(name, what, error):
    raw = what if isinstance(what, bytes) else None
    with Client(PORT, opening=raw) as client:
        if raw is None:
            client.send(b"".join(frame(*f) for f in what))
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


# --- more than one frame can tell ---

def truncated():
    """Cut at every length, the stream ends in the middle; with a length that is true, the message does."""
    with Client(PORT) as client:
        whole = message(GOOD)
        for first in range(1, len(whole), 50):
            streams = [(n, client.call(body=whole[:n])) for n in range(first, min(first + 50, len(whole)))]
            for n, stream in streams:
                check(client.wait(stream).status == INTERNAL, "%d bytes of a call: %s" % (n, client.streams[stream].blocks))
            good(client, "cut calls")


def truncated_messages():
    with Client(PORT) as client:
        for n in range(len(GOOD)):
            s = client.wait(client.call(body=message(GOOD[:n])))
            check(s.status in (OK, INVALID), "message of %d bytes: %s" % (n, s.blocks))
        good(client, "cut messages")


def send_within_windows(client, stream, body):
    """As a client should; what is left is left to later calls. All that the windows let through is sent."""
    s = client.streams[stream]
    while body:
        room = min(s.window, client.window, 16384)
        if room <= 0 or s.reset is not None or s.ended:
            return body
        piece, body = body[:room], body[room:]
        s.window -= len(piece)
        client.window -= len(piece)
        client.send(frame(DATA, 0 if body else END_STREAM, stream, piece))
    return body


def windows():
    """A message larger than the first window gets one that it fits in, and the connection's is given back: whoever obeys
    windows gets through, with more than the connection's, too."""
    with Client(PORT) as client:
        client.sock.settimeout(5)
        body = message(request(padding=1000000))
        for _ in range(20):
            stream = client.call(end=False)
            left = send_within_windows(client, stream, body)
            while left:
                client.read_frame()
                left = send_within_windows(client, stream, left)
            check(client.wait(stream).status == OK, "large message within windows: %s" % client.streams[stream].blocks)


def memory():
    """Four messages of 1 MiB fill the budget; the next ones wait, held back by their windows, and get their turn."""
    size = LIMIT - 100
    body = message(request(padding=size - len(GOOD) - 8))
    with Client(PORT) as client, Client(PORT) as neighbour:
        while client.window < 10 * LIMIT:  # the connection's is to hold nobody back
            client.read_frame()
        streams = [client.call(end=False) for _ in range(10)]
        left = {s: send_within_windows(client, s, body) for s in streams}
        client.settle()
        client.quiet()
        open_streams = [s for s in streams if client.streams[s].window > 0]
        check(1 <= len(open_streams) <= 4, "%d of ten messages of 1 MiB let in at once, by a budget of 4 MiB" % len(open_streams))
        small = neighbour.call(body=message(GOOD))  # has to wait, too: first come, first served
        waiting = [s for s in streams if s not in open_streams][-1]
        client.send(frame(DATA, 0, waiting, b"x"))  # it has no window left
        check(client.wait(waiting).reset == FLOW, "beyond its window: reset %s" % client.streams[waiting].reset)
        streams.remove(waiting)
        for s in open_streams[:1]:
            client.send(frame(RST_STREAM, 0, s, b"\0\0\0\x08"))  # who goes gives its memory back
            streams.remove(s)
        deadline = time.time() + 20
        while any(left[s] for s in streams) and time.time() < deadline:
            client.read_frame()
            for s in streams:
                left[s] = send_within_windows(client, s, left[s])
        for s in streams:
            check(client.wait(s).status == OK, "waited for memory: %s" % client.streams[s].blocks)
        check(neighbour.wait(small).status == OK, "a small one waited for memory: %s" % neighbour.streams[small].blocks)


def early_bytes():
    """First windows of more calls than there is room for: those beyond are told to come again, the others wait."""
    head = b"\0" + struct.pack(">I", LIMIT)
    first = head + bytes(65535 - len(head))
    clients = [Client(PORT) for _ in range(3)]
    streams = []
    for client in clients:
        for _ in range(90):
            stream = client.call(end=False)
            streams.append((client, stream))
            send_within_windows(client, stream, first + b"x")
            while client.window < 65535:
                client.read_frame()
    for client in clients:
        client.settle()
        client.quiet()
    told = [c.streams[s] for c, s in streams if c.streams[s].ended]
    check(120 <= len(told) <= 150, "%d of 270 calls told to come again" % len(told))
    for s in told:
        check(s.status == UNAVAILABLE, "told %s" % s.blocks)
        check_details("early", s)
    for client in clients:
        client.sock.close()
    with Client(PORT) as client:
        good(client, "early bytes")


def many_streams():
    with Client(PORT) as client:
        streams = [client.call(end=False) for _ in range(101)]
        client.settle()
        client.quiet()  # pings are answered before streams are reset
        check([client.streams[s].reset for s in streams] == [None] * 100 + [REFUSED],
              "of who cannot know the limit yet the 101st stream is refused, no other")
        for s in streams[:100]:
            client.send(frame(DATA, END_STREAM, s, message(GOOD)))
        check(all(client.wait(s).status == OK for s in streams[:100]), "100 calls at once")
        good(client, "100 calls")
        for _ in range(101):
            client.call(end=False)
        check(client.wait_closed() == PROTOCOL, "who knows the limit must keep it: GOAWAY %s" % client.goaway)


def pings():
    with Client(PORT) as client:
        for i in range(50):
            client.send(frame(PING, 0, 0, b"ping%04d" % i))
        good(client, "pings")
        client.settle()
        check(client.pings[:50] == [b"ping%04d" % i for i in range(50)], "answers to pings: %s" % client.pings)


def busy():
    """Thousands of calls, each with what real clients send around one, use up nobody's patience."""
    with Client(PORT) as client:
        for _ in range(3000):
            client.send(frame(PING, 0, 0, bytes(8)) + frame(WINDOW_UPDATE, 0, 0, b"\0\0\0\1"))
            stream = client.call(body=message(TINY))
            if client.wait(stream).status != OK:
                check(False, "a busy client was cut: GOAWAY %s" % client.goaway)
                return


def ignored():
    """What means nothing is passed over."""
    with Client(PORT) as client:
        client.send(frame(99, 0, 0) * 20000)
        good(client, "frames of unknown type")
        stream = client.call(body=message(GOOD))
        client.wait(stream)
        for late in (frame(RST_STREAM, 0, stream, bytes(4)), frame(WINDOW_UPDATE, 0, stream, b"\0\0\0\1"), frame(PRIORITY, 0, stream, bytes(5)),
                     frame(SETTINGS, 0, 0, setting(0x1234, 5)), frame(SETTINGS, 0, 0)):
            client.send(late)
            good(client, "frame %d that comes late" % late[3])


def cancelled():
    with Client(PORT) as client:
        for body in (None, b"\0", message(GOOD)[:50], message(GOOD)):
            stream = client.call(body=body, end=False)
            client.send(frame(RST_STREAM, 0, stream, b"\0\0\0\x08"))
            good(client, "a cancelled call")


def deadline():
    with Client(PORT) as client:
        began = time.time()
        stream = client.call(more(("grpc-timeout", "300m")), message(GOOD)[:20], end=False)
        s = client.wait(stream)
        check(s.status == DEADLINE and s.reset in (None, NO_ERROR), "deadline: %s" % s.blocks)
        check(time.time() - began >= 0.3, "deadline came early")
        client.settle()
        check(s.reset == NO_ERROR, "what is left of a call after its answer is not wanted: reset %s" % s.reset)
        good(client, "a deadline")


def slow():
    """Calls that bring too little, or never end, are answered; an answer that nobody takes is taken back."""
    with Client(IMPATIENT) as client, Client(IMPATIENT, settings=setting(4, 0)) as deaf:
        unread = deaf.call(body=message(GOOD))
        s = client.wait(client.call(body=message(GOOD)[:20], end=False))
        check(s.status == DEADLINE and "too few bytes" in unquoted(s), "slow: %s" % s.blocks)
        stream, sent = client.new_stream(), 0
        client.send(frame(HEADERS, END_HEADERS, stream, client.block(headers_of())) + frame(DATA, 0, stream, b"\0\0\x08\0\0"))
        while not client.streams[stream].ended and sent < 400:
            client.send(frame(DATA, 0, stream, bytes(200)))
            client.quiet(0.05)
            sent += 1
        s = client.streams[stream]
        check(s.status == DEADLINE and "not done after" in unquoted(s), "endless: %s" % s.blocks)
        good(client, "slow calls")
        check(deaf.wait(unread).reset == 8 and deaf.streams[unread].data == b"", "an answer without a window: reset %s" % deaf.streams[unread].reset)


def no_memory():
    """Who waits for memory too long is told to come again."""
    with Client(PORT) as holder, Client(IMPATIENT) as client:
        while holder.window < 10 * LIMIT:
            holder.read_frame()
        for _ in range(4):
            holder.call(body=message(bytes(LIMIT))[:50000], end=False)
        holder.settle()
        s = client.wait(client.call(body=message(bytes(LIMIT))[:50000], end=False))
        check(s.status == UNAVAILABLE and "too many large" in unquoted(s), "no memory: %s" % s.blocks)
        check_details("no memory", s)


def idle():
    with Client(IMPATIENT) as client:
        good(client, "coming")
        began = time.time()
        check(client.wait_closed() == NO_ERROR and client.last_stream >= 1, "idle: GOAWAY %s" % client.goaway)
        check(time.time() - began >= 0.5, "idle for %.1f s only" % (time.time() - began))


def crowded():
    """The fifth connection waits until there is room."""
    clients = [Client(IMPATIENT) for _ in range(4)]
    for client in clients:
        client.settle()
    with Client(IMPATIENT) as fifth:
        stream = fifth.call(body=message(GOOD))
        fifth.quiet(0.2)
        check(not fifth.streams[stream].ended, "a fifth connection of four was served")
        clients[0].sock.close()
        check(fifth.wait(stream).status == OK, "the fifth connection")
    for client in clients[1:]:
        client.sock.close()


def watch():
    with Client(PORT) as client:
        stream = client.call(more(path=HEALTH + "Watch"), message(b""))
        unknown = client.call(more(path=HEALTH + "Watch"), message(field(1, "nobody")))
        good(client, "watching")
        check(client.streams[stream].data == SERVING and not client.streams[stream].ended, "watch")
        check(client.streams[unknown].data == message(b"\x08\x03") and not client.streams[unknown].ended, "watch of nobody")


def many_connections():
    clients = [Client(PORT) for _ in range(300)]
    for i, client in enumerate(clients):
        client.call(body=message(GOOD)[:50 + i % 50], end=False)
    for client in clients[::30]:
        good(client, "many connections")
    for client in clients:
        client.sock.close()


def run(fn):
    began = time.time()
    try:
        fn()
    except Exception as e:  # a broken connection is a finding like any other
        check(False, "%s: %s" % (fn.__name__, repr(e)[:300]))
    with Client(PORT) as client:
        good(client, fn.__name__)
    print("%-20s %5.2f s" % (fn.__name__, time.time() - began))


for test in (calls, shapes, resets, cuts, truncated, truncated_messages, windows, memory, early_bytes, many_streams, pings, busy,
             ignored, cancelled, deadline, slow, no_memory, idle, crowded, watch, many_connections):
    run(test)
sys.exit(1 if failures else 0)
