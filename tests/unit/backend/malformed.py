#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Malformed requests, each rule of the schema and of HTTP broken once, each with its expected status, and a good request
between each two; test_server.c starts the server and this.

usage: malformed.py PORT IMPATIENT_PORT
"""
import gzip
import json
import socket
import struct
import sys
import zlib

from otlp_client import *

TYPE = ("Content-Type", PROTOBUF)
V1 = ("OTLP-Profiles-Development-Version", "1")  # no layout of an older release is tried
JSON = ("Content-Type", "application/json")
rows = []  # (name, headers, body, status), to the profiles' path


def row(name, body, status=400, headers=(TYPE, V1)):
    rows.append((name, list(headers), body, status))


# --- the schema: message -> fields (number, kind); a capital is a message's name, "*" a packed list, "#TABLE" an index ---

SCHEMA = {
    "Data": {1: "ResourceProfiles", 2: "Dictionary"},
    "ResourceProfiles": {1: "Resource", 2: "ScopeProfiles", 3: "string"},
    "Resource": {1: "KeyValue", 2: "varint", 3: "EntityRef"},
    "EntityRef": {1: "string", 2: "string", 3: "string", 4: "string"},
    "ScopeProfiles": {1: "Scope", 2: "Profile", 3: "string"},
    "Scope": {1: "string", 2: "string", 3: "KeyValue", 4: "varint"},
    "Profile": {1: "ValueType", 2: "Sample", 3: "fixed64", 4: "varint", 5: "ValueType", 6: "varint", 7: "bytes", 8: "varint",
                9: "string", 10: "bytes", 11: "*#6"},
    "Sample": {1: "#7", 2: "*#6", 3: "#4", 4: "*varint", 5: "*fixed64"},
    "ValueType": {1: "#5", 2: "#5"},
    "KeyValue": {1: "string", 2: "AnyValue", 3: "#5"},
    "AnyValue": {1: "string", 2: "varint", 3: "varint", 4: "fixed64", 5: "ArrayValue", 6: "KeyValueList", 7: "bytes", 8: "#5"},
    "ArrayValue": {1: "AnyValue"},
    "KeyValueList": {1: "KeyValue"},
    "Dictionary": {1: "Mapping", 2: "Location", 3: "Function", 4: "Link", 5: "string", 6: "KeyValueAndUnit", 7: "Stack"},
    "Mapping": {1: "varint", 2: "varint", 3: "varint", 4: "#5", 5: "*#6"},
    "Location": {1: "#1", 2: "varint", 3: "Line", 4: "*#6"},
    "Line": {1: "#3", 2: "varint", 3: "varint"},
    "Function": {1: "#5", 2: "#5", 3: "#5", 4: "varint"},
    "Link": {1: "bytes", 2: "bytes"},
    "KeyValueAndUnit": {1: "#5", 2: "AnyValue", 3: "#5"},
    "Stack": {1: "*#2"},
}
EMPTY_DICTIONARY = field(2, b"".join(field(n, b"") for n in range(1, 8)))


def paths():
    """The way from the top to each message, as field numbers."""
    found, queue = {"Data": []}, ["Data"]
    while queue:
        name = queue.pop(0)
        for number, kind in SCHEMA[name].items():
            if kind[0].isupper() and kind not in found:
                found[kind] = found[name] + [number]
                queue.append(kind)
    return found


PATHS = paths()


def inside(message, content):
    for number in reversed(PATHS[message]):
        content = field(number, content)
    return content + EMPTY_DICTIONARY  # merges with the one that is there


def tag(number, wire):
    return varint(number << 3 | wire)


VALUES = {0: b"\x01", 1: bytes(8), 2: b"\x00", 5: bytes(4)}
WIRES = {"varint": (0,), "fixed64": (1,), "string": (2,), "bytes": (2,)}


def allowed_wires(kind):
    if kind.startswith("*"):
        return (2, 1 if kind == "*fixed64" else 0)
    return WIRES.get(kind, (0,) if kind.startswith("#") else (2,))


def schema_rows():
    for message, fields in SCHEMA.items():
        for number, kind in fields.items():
            where = "%s.%d" % (message, number)
            for wire in (0, 1, 2, 5):
                if wire not in allowed_wires(kind):
                    row("%s with wire type %d" % (where, wire), inside(message, tag(number, wire) + VALUES[wire]))
            for wire in (3, 4, 6, 7):
                if number == 1:
                    row("%s with wire type %d" % (where, wire), inside(message, tag(number, wire)))
            if kind == "string":
                for bad, what in ((b"a\xff", "0xff"), (b"\xc0\x80", "an overlong NUL"), (b"\xed\xa0\x80", "a surrogate"),
                                  (b"\xf4\x90\x80\x80", "beyond U+10FFFF"), (b"\xe2\x82", "a cut character")):
                    if what == "0xff" or number == 1:
                        row("%s holds %s" % (where, what), inside(message, field(number, bad)))
            if "#" in kind:
                for index, what in ((99, "beyond its table"), (1, "one beyond its table"), (-1 & (1 << 64) - 1, "negative"),
                                    (1 << 31, "2^31")):
                    value = packed(number, [index]) if kind[0] == "*" else field(number, index)
                    row("%s is %s" % (where, what), inside(message, value))
            if allowed_wires(kind)[0] == 2:
                row("%s longer than what holds it" % where, inside(message, tag(number, 2) + varint(50) + b"x"))
                row("%s of 4 GiB" % where, inside(message, tag(number, 2) + varint((1 << 32) - 1) + b"x"))
                row("%s of 2^63" % where, inside(message, tag(number, 2) + varint(1 << 63) + b"x"))
                row("%s of a negative length" % where, inside(message, tag(number, 2) + varint((1 << 64) - 5) + b"x"))
            if kind.startswith("*"):
                cut = b"\x80" if kind != "*fixed64" else bytes(7)
                row("%s with a cut element" % where, inside(message, field(number, cut)))
            if kind == "varint":
                row("%s of eleven bytes" % where, inside(message, tag(number, 0) + b"\x80" * 10 + b"\x01"))
                row("%s cut" % where, inside(message, tag(number, 0) + b"\x80"))
    for message, number, right in (("Profile", 7, 16), ("Link", 1, 16), ("Link", 2, 8)):
        for n in (0, 1, 4, 7, 8, 9, 15, 16, 17, 32):
            row("%s.%d of %d bytes" % (message, number, n), inside(message, field(number, b"\x01" * n)),
                200 if n in (0, right) else 400)
    for name, bad in (("field number 0", b"\x00\x01"), ("a tag of six bytes", b"\x80\x80\x80\x80\x80\x01\x01"),
                      ("a tag cut", b"\x80"), ("a group", b"\x0b\x0c"), ("text", b"<html></html>"), ("JSON", b'{"a": 1}'),
                      ("0xff", b"\xff" * 20)):
        row(name, bad)
    both = field(1, field(1, field(1, field(1, "k") + field(3, 1))))
    row("a key in both ways", both + field(2, field(5, "") + field(5, "x")))


def nested_rows():
    for inner, outer, name in ((lambda v: field(5, field(1, v)), b"", "arrays"),
                               (lambda v: field(6, field(1, field(2, v))), b"", "maps")):
        for depth, status in ((30, 200), (33, 400), (100, 400), (10000, 400)):
            value = field(1, "leaf")
            for _ in range(depth):
                value = inner(value)
            row("%d nested %s" % (depth, name), field(1, field(1, field(1, field(1, "k") + field(2, value)))), status)


GOOD = request()


def cut_rows():
    for n in range(len(GOOD)):
        row("cut after %d bytes" % n, GOOD[:n], 200 if n == 0 else 400)
    for encoding, whole in (("gzip", gzip.compress(GOOD)), ("zstd", ZSTD)):
        for n in range(len(whole)):
            row("%s cut after %d bytes" % (encoding, n), whole[:n], 400, (TYPE, ("Content-Encoding", encoding)))


# RFC 8878, by hand: a frame of one raw block, its length not said; and of a block that repeats a byte 128 KiB - 1 times.
ZSTD = b"\x28\xb5\x2f\xfd\x00\x58" + struct.pack("<I", 1 | len(GOOD) << 3)[:3] + GOOD


def zstd_bomb(blocks):
    block = struct.pack("<I", 2 | 131071 << 3)[:3] + b"x"
    last = struct.pack("<I", 3 | 131071 << 3)[:3] + b"x"
    return b"\x28\xb5\x2f\xfd\x00\x58" + block * (blocks - 1) + last


def packed_rows():
    gz = (TYPE, ("Content-Encoding", "gzip"))
    zs = (TYPE, ("Content-Encoding", "zstd"))
    whole = gzip.compress(GOOD)
    row("zstd", ZSTD, 200, zs)
    row("zstd in two frames", ZSTD + b"\x50\x2a\x4d\x18\x02\0\0\0ab", 200, zs)
    row("zstd and garbage", ZSTD + b"garbage", 400, zs)
    row("zstd with a reserved block", ZSTD[:6] + b"\x07\0\0" + ZSTD[9:], 400, zs)
    row("zstd with a dictionary", b"\x28\xb5\x2f\xfd\x01\x58\x07" + ZSTD[6:], 400, zs)
    row("zstd bomb", zstd_bomb(400), 413, zs)
    row("zstd that says 1 TiB", b"\x28\xb5\x2f\xfd\xc0\x58" + struct.pack("<Q", 1 << 40) + ZSTD[6:], 413, zs)
    row("zstd that says too little", b"\x28\xb5\x2f\xfd\x20\x05" + ZSTD[6:], 400, zs)
    row("gzip bomb of 50 MB", gzip.compress(bytes(50 << 20)), 413, gz)
    row("gzip bomb in members", gzip.compress(bytes(1 << 19)) * 5, 413, gz)
    row("gzip in gzip", gzip.compress(whole), 400, gz)
    row("gzip method 7", whole[:2] + b"\x07" + whole[3:], 400, gz)
    row("gzip reserved flag", whole[:3] + b"\x20" + whole[4:], 400, gz)
    row("gzip CRC", whole[:-8] + bytes(4) + whole[-4:], 400, gz)
    row("gzip length", whole[:-4] + b"\x01\0\0\0", 400, gz)
    row("gzip, stored", zlib.compress(GOOD), 400, gz)
    row("not gzip", GOOD, 400, gz)
    row("not zstd", GOOD, 400, zs)
    for value in ("br", "deflate", "compress", "gzip, gzip", "gzip;q=1", "snappy", "x", "zstd,gzip"):
        row("encoding " + value, GOOD, 400, (TYPE, ("Content-Encoding", value)))


# --- JSON ---

def json_rows():
    good = {"resourceProfiles": [{"resource": {"attributes": [{"key": "k", "value": {"stringValue": "v"}}]},
                                  "scopeProfiles": [{"profiles": [{"samples": [{"stackIndex": 1, "values": ["1"]}]}]}]}],
            "dictionary": {"stackTable": [{}, {"locationIndices": [0]}], "locationTable": [{}], "stringTable": [""]}}
    text = json.dumps(good)

    def bad(name, body, status=400):
        row("JSON: " + name, body if isinstance(body, bytes) else body.encode(), status, (JSON,))

    bad("good", text, 200)
    for n in (0, 1, 8, 15, 16, 17):
        bad("a profileId of %d bytes" % n, '{"resourceProfiles":[{"scopeProfiles":[{"profiles":[{"profileId":"%s"}]}]}]}' % ("01" * n),
            200 if n in (0, 16) else 400)
        bad("a spanId of %d bytes" % n, '{"dictionary":{"linkTable":[{"spanId":"%s"}]}}' % ("01" * n), 200 if n in (0, 8) else 400)
    bad("lone surrogate, replaced", '{"dictionary":{"stringTable":["","\\ud800"]}}', 200)
    for n in range(len(text)):
        bad("cut after %d bytes" % n, text[:n])
    for name, body in (("array", "[]"), ("number", "1"), ("null", "null"), ("string", '"x"'), ("two values", "{}{}"),
                       ("trailing comma", '{"resourceProfiles":[],}'), ("comment", "{}//x"), ("single quotes", "{'a':1}"),
                       ("bare name", "{a:1}"), ("NaN", '{"a":NaN}'), ("hex", '{"a":0x1}'), ("leading zero", '{"a":01}'),
                       ("plus", '{"a":+1}'), ("dot", '{"a":1.}'), ("no colon", '{"a" 1}'), ("bad escape", '{"a":"\\x"}'),
                       ("control byte", '{"a":"\x01"}'), ("open string", '{"a":"'), ("byte order mark", "\ufeff{}"), ("tru", '{"a":tru}'),
                       ("not UTF-8", b'{"dictionary":{"stringTable":["\xff"]}}'), ("brackets", "[" * 10000),
                       ("deep", '{"a":' * 10000 + "1" + "}" * 10000), ("protobuf", GOOD)):
        bad(name, body)
    typed_as = {"profiles": 1, "samples": "x", "scopeProfiles": {}, "resource": [], "attributes": {}, "key": 7,
                "stackIndex": {}, "values": 1, "stringTable": [1], "stackTable": 1, "locationIndices": ["x"],
                "locationTable": [[]], "dictionary": [], "resourceProfiles": {}, "value": []}
    for name, value in typed_as.items():
        bad("type of " + name, json.dumps(replace(good, name, value)))
    for value in (2, -1, 1.5, 1e30, "1x", 4294967297):
        bad("stackIndex %r" % value, json.dumps(replace(good, "stackIndex", value)))
    for value in ("9223372036854775808", "1.5", "", "abc", 1e300, True):
        bad("values %r" % value, json.dumps(replace(good, "values", [value])))
    for value in ({"intValue": "x"}, {"boolValue": 1}, {"doubleValue": "x"}, {"bytesValue": "*"}, {"arrayValue": []},
                  {"kvlistValue": 1}, {"stringValue": 5}, {"stringValueStrindex": 9}):
        bad("value %r" % value, json.dumps(replace(good, "value", value)))
    value = {"stringValue": "leaf"}
    for _ in range(40):
        value = {"arrayValue": {"values": [value]}}
    bad("nested", json.dumps(replace(good, "value", value)))


def replace(node, name, value):
    """A copy with every member @name set to @value."""
    if isinstance(node, list):
        return [replace(item, name, value) for item in node]
    if isinstance(node, dict):
        return {k: value if k == name else replace(v, name, value) for k, v in node.items()}
    return node


# --- other headers, methods and paths: (name, method, path, headers, body, status) ---

def header_rows():
    out = []
    for value in ("", "text/plain", "application/json2", "application/x-protobufs", "application/grpc", "protobuf", "*/*",
                  "application", "application/x-protobuf,application/json", "multipart/form-data; boundary=x"):
        out.append(("type '%s'" % value, "POST", PROFILES, [("Content-Type", value)], GOOD, 415))
    out.append(("no type", "POST", PROFILES, [], GOOD, 415))
    for value in ("0", "2", "-1", "+1", "1.0", "01", "1,1", "one", "18446744073709551617", "1 1", "1;"):
        out.append(("version '%s'" % value, "POST", PROFILES, [TYPE, (V1[0], value)], GOOD, 400))
    out.append(("version twice", "POST", PROFILES, [TYPE, V1, V1], GOOD, 400))
    for method in ("GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND", "post"):
        for path in (PROFILES, "/v1/logs"):
            out.append(("%s %s" % (method, path), method, path, [TYPE], b"", 405))
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        out.append((method + " /metrics", method, "/metrics", [TYPE], b"", 405))
    for path in ("/v1", "/v1/", "/v1/logs/", "/v1//logs", "//v1/logs", "/V1/LOGS", "/v1/log", "/v1/../v1/logs", "/v1development",
                 "/v1development/profiles/x", "*", "/%00", "/v1/logs%00"):
        out.append(("path " + path, "POST", path, [TYPE], GOOD, 404))
    for signal in ("logs", "metrics", "traces"):
        out.append(("bomb of " + signal, "POST", "/v1/" + signal, [TYPE, ("Content-Encoding", "gzip")],
                    gzip.compress(bytes(50 << 20)), 413))
        out.append(("cut gzip of " + signal, "POST", "/v1/" + signal, [TYPE, ("Content-Encoding", "gzip")],
                    gzip.compress(b"")[:-1], 400))
        for n, (bad, kind) in enumerate(((b"\x0a\x01", PROTOBUF), (b"\x08\x01", PROTOBUF), (b"\x0a\x02\x12\x05", PROTOBUF),
                                         (b"text", PROTOBUF), (b"{", JSON[1]), (b"[]", JSON[1]), (b"", JSON[1]))):
            out.append(("bad %s %d" % (signal, n), "POST", "/v1/" + signal, [("Content-Type", kind)], bad, 400))
        out.append(("%s in JSON" % signal, "POST", "/v1/" + signal, [JSON], b"{}", 200))
        out.append(("type of " + signal, "POST", "/v1/" + signal, [("Content-Type", "text/xml")], b"", 415))
    return out


# --- HTTP itself: (name, bytes, statuses or None: closed without an answer is right) ---

def raw_rows():
    def post(headers, body=b""):
        return b"POST /v1/logs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-protobuf\r\n" + headers + b"\r\n" + body

    def chunks(body):
        return post(b"Transfer-Encoding: chunked\r\n", body)

    rows400 = [
        ("no host", b"POST /v1/logs HTTP/1.1\r\nContent-Type: application/x-protobuf\r\nContent-Length: 0\r\n\r\n"),
        ("two lengths", post(b"Content-Length: 0\r\nContent-Length: 5\r\n", b"hello")),
        ("the same length twice", post(b"Content-Length: 0\r\nContent-Length: 0\r\n")),
        ("length and chunks", post(b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", b"0\r\n\r\n")),
        ("chunked twice", post(b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", b"0\r\n\r\n")),
        ("negative length", post(b"Content-Length: -1\r\n")),
        ("length with a sign", post(b"Content-Length: +0\r\n")),
        ("length in hex", post(b"Content-Length: 0x0\r\n")),
        ("length with a list", post(b"Content-Length: 0, 0\r\n")),
        ("length empty", post(b"Content-Length: \r\n")),
        ("length word", post(b"Content-Length: none\r\n")),
        ("length beyond 64 bits", post(b"Content-Length: 99999999999999999999999\r\n")),
        ("chunk size word", chunks(b"zz\r\nhello\r\n0\r\n\r\n")),
        ("chunk size negative", chunks(b"-1\r\nx\r\n0\r\n\r\n")),
        ("chunk size empty", chunks(b"\r\nx\r\n0\r\n\r\n")),
        ("chunk size beyond 64 bits", chunks(b"fffffffffffffffff\r\nx\r\n0\r\n\r\n")),
        ("chunk longer than said", chunks(b"1\r\nhello\r\n0\r\n\r\n")),
        ("HTTP/2 without asking", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
        ("HTTP/9.9", b"POST /v1/logs HTTP/9.9\r\nHost: localhost\r\n\r\n"),
        ("no version", b"GET /healthz\r\n\r\n"),
        ("a target too long", b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        ("headers without end", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + b"X: y\r\n" * 20000 + b"\r\n"),
        ("a header too long", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 100000 + b"\r\n\r\n"),
        ("a header without colon", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nnothing\r\n\r\n"),
    ]
    closed = [  # by libmicrohttpd, where it finds no HTTP, or by who looks after clients that have gone
        ("garbage", b"GARBAGE\r\n\r\n"),
        ("bytes", bytes(range(128, 256)) * 20 + b"\r\n\r\n"),
        ("a handshake of TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(505)),
        ("nothing", b""),
        ("an empty line", b"\r\n"),
        ("half a request line", b"POST /v1/lo"),
        ("half the headers", b"POST /v1/logs HTTP/1.1\r\nHost: localhost\r\nContent-"),
        ("half a body", post(b"Content-Length: 10\r\n", b"hello")),
        ("chunks without end", chunks(b"5\r\nhello\r\n")),
        ("half a chunk", chunks(b"5\r\nhel")),
        ("half a chunk size", chunks(b"5")),
    ]
    return rows400, closed


NEXT = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


REFUSED = "400 or nothing"


def ambiguous_rows():
    """Requests that two readers could end in two places, with another request where one of them sees a body: (name, bytes, status)."""
    def post(headers, body=NEXT, version=b"1.1", path=PROFILES.encode()):
        return b"POST " + path + b" HTTP/" + version + b"\r\nHost: localhost\r\nContent-Type: application/x-protobuf\r\n" + headers + b"\r\n" + body

    length, chunks = b"Content-Length: %d\r\n" % len(NEXT), b"Transfer-Encoding: chunked\r\n"
    in_chunks = b"%x\r\n%s\r\n0\r\n\r\n" % (len(NEXT), NEXT)
    smuggled = b"0\r\n\r\n" + NEXT
    headers = {
        "space before the length's colon": b"Content-Length : %d\r\n" % len(NEXT),
        "tab before the length's colon": b"Content-Length\t: %d\r\n" % len(NEXT),
        "space before the name": b"X: y\r\n Content-Length: %d\r\n" % len(NEXT),
        "an empty name": length + b": x\r\n",
        "space in a name": length + b"Content Length: 0\r\n",
        "control character in a name": length + b"X\x01: y\r\n",
        "NUL in a name": length + b"X\0Y: y\r\n",
        "byte above 127 in a name": length + b"X\xe9: y\r\n",
        "NUL in a value": b"X: a\0b\r\n" + length,
        "NUL at a value's end": b"X: a\0\r\n" + length,
        "NUL in the last value": length + b"X: a\0b\r\n",
        "NUL at the last value's end": length + b"X: a\0\r\n",
        "NUL before a value": b"X:\0 a\r\n" + length,
        "NUL in the length": b"Content-Length: %d\0 0\r\n" % len(NEXT),
        "control character in a value": length + b"X: a\x01b\r\n",
        "DEL in a value": length + b"X: a\x7fb\r\n",
        "CR in a value": length + b"X: a\rb\r\n",
        "CR for a line's end": b"X: a\rContent-Length: 0\r\n" + length,
        "LF for a line's end": b"X: a\n" + length,
        "LF for the last line's end": length + b"X: a\n",
        "NUL and LF": b"X: a\0b\n" + length,
        "folded value": b"X: a\r\n b\r\n" + length,
        "folded with a tab": b"X: a\r\n\tb\r\n" + length,
        "folded twice": b"X: a\r\n b\r\n c\r\n" + length,
        "last value folded": length + b"X: a\r\n b\r\n",
        "folded length": b"Content-Length:\r\n %d\r\n" % len(NEXT),
        "folded host": b"Host: localhost\r\n x\r\n" + length,
        "two hosts": length + b"Host: localhost\r\n",
        "two different hosts": length + b"Host: elsewhere\r\n",
        "two lengths": length + b"Content-Length: 0\r\n",
        "two equal lengths": length + length,
        "lengths in a list": b"Content-Length: %d, %d\r\n" % (len(NEXT), len(NEXT)),
        "length with a sign": b"Content-Length: +%d\r\n" % len(NEXT),
        "negative length": b"Content-Length: -%d\r\n" % len(NEXT),
        "length in hex": b"Content-Length: 0x%x\r\n" % len(NEXT),
        "length with a word": b"Content-Length: %d bytes\r\n" % len(NEXT),
        "length with a dot": b"Content-Length: %d.0\r\n" % len(NEXT),
    }
    codings = {
        "space before the coding's colon": b"Transfer-Encoding : chunked\r\n",
        "folded coding": b"Transfer-Encoding:\r\n chunked\r\n",
        "xchunked": b"Transfer-Encoding: xchunked\r\n",
        "chunkedx": b"Transfer-Encoding: chunkedx\r\n",
        "identity": b"Transfer-Encoding: identity\r\n",
        "gzip": b"Transfer-Encoding: gzip\r\n",
        "gzip, chunked": b"Transfer-Encoding: gzip, chunked\r\n",
        "chunked, identity": b"Transfer-Encoding: chunked, identity\r\n",
        "chunked, chunked": b"Transfer-Encoding: chunked, chunked\r\n",
        "chunked in quotes": b"Transfer-Encoding: \"chunked\"\r\n",
        "chunked;x": b"Transfer-Encoding: chunked;x\r\n",
        "vertical tab and chunked": b"Transfer-Encoding: \x0bchunked\r\n",
        "NUL behind chunked": b"Transfer-Encoding: chunked\0\r\n",
        "no coding": b"Transfer-Encoding:\r\n",
        "two codings": chunks + chunks,
        "two different codings": chunks + b"Transfer-Encoding: identity\r\n",
        "length, coding": length + chunks,
        "coding, length": chunks + length,
        "coding and length 0": chunks + b"Content-Length: 0\r\n",
        "length, folded coding": length + b"Transfer-Encoding:\r\n chunked\r\n",
        "length, coding with a space": length + b"Transfer-Encoding : chunked\r\n",
        "length, xchunked": length + b"Transfer-Encoding: xchunked\r\n",
    }
    rows = [(name, post(text), 400) for name, text in headers.items()]
    rows += [(name + ", " + what, post(text, body), 400) for name, text in codings.items()
             for what, body in (("chunks", in_chunks), ("none", smuggled))]
    rows += [
        ("chunks in HTTP/1.0", post(chunks, in_chunks, b"1.0"), 400),
        # libmicrohttpd from 1.0 on closes the connection without an answer.
        ("NUL in the target", post(length, path=b"/v1/lo\0gs"), REFUSED),
        ("NUL behind the target", post(length, path=b"/v1/logs\0"), REFUSED),
        ("two spaces before the target", post(length, path=b" /v1/logs"), 400),
        ("LF behind the first line", post(length).replace(b"HTTP/1.1\r\n", b"HTTP/1.1\n", 1), 400),
        ("length beyond 64 bits", post(b"Content-Length: %d\r\n" % ((1 << 64) + len(NEXT))), 413),
        ("neither length nor chunks", post(b""), 411),
        ("neither length nor chunks, HTTP/1.0", post(b"", NEXT, b"1.0"), 411),
        ("a length by another name", post(b"Content_Length: %d\r\n" % len(NEXT)), 411),
    ]
    rows += [("neither, to " + path, post(b"", path=path.encode()), 411)
             for path in ("/v1/profiles", "/v1/logs", "/v1/metrics", "/v1/traces", "/querier.v1.QuerierService/Series")]
    return rows


# --- running them ---

def is_good(sock, after):
    response = send(sock, body=GOOD)
    check(response.status == 200 and response.body == b"", "a good request after %s: %d" % (after, response.status))


def try_requests(table):
    sock = connect()
    for name, method, path, headers, body, status in table:
        try:
            response = send(sock, method, path, headers, body)
            check(response.status == status, "%s: status %d, not %d: %r" % (name, response.status, status, response.body[:200]))
            if response.getheader("Connection") == "close":
                sock.close()
                sock = connect()
            is_good(sock, name)
        except OSError as e:
            check(False, "%s: %r" % (name, e))
            sock = connect()
    sock.close()
    return len(table)


def all_answers(data, port=PORT, shut=True):
    """What comes until the server closes the connection; None: it does not."""
    sock = connect(port)
    sock.settimeout(5)
    got = b""
    try:
        sock.sendall(data)
        if shut:
            sock.shutdown(socket.SHUT_WR)
        while True:
            piece = sock.recv(65536)
            if not piece:
                break
            got += piece
    except socket.timeout:
        got = None
    except OSError:
        pass
    sock.close()
    return got


def first_line(data, port=PORT):
    return (all_answers(data, port) or b"").split(b"\r\n")[0]


def try_ambiguous():
    table = ambiguous_rows()
    before = series()
    with connect() as good:
        for name, data, status in table:
            got = all_answers(data, shut=False)
            check(got is not None, "%s: the connection is not closed" % name)
            lines = [line for line in (got or b"").split(b"\r\n") if line.startswith(b"HTTP/")]
            # libmicrohttpd's own refusal of a length may come twice, from before and after the body was thrown away.
            codes = {line[9:12].decode() for line in lines}
            check(codes == {str(status)} or status == REFUSED and codes <= {"400"}, "%s: answered %r, not %s" % (name, lines, status))
            is_good(good, name)
    after = series()
    for path in (PROFILES, "/healthz"):
        key = 'hearth_received_requests_total{path="%s",code="200"}' % path
        grown = after.get(key, 0) - before.get(key, 0)
        check(grown == (len(table) if path == PROFILES else 0), "%s was answered 200 %d times" % (path, grown))
    refused = 'hearth_rejected_requests_total{reason="headers"}'
    check(after[refused] > before[refused], "nothing is counted as refused for its headers")
    return len(table)


def try_raw():
    refused, closed = raw_rows()
    with connect() as good:
        for name, data in refused:
            line = first_line(data)
            # An answer may be lost when the server closes before it has read everything.
            check(line[:10] in (b"HTTP/1.1 4", b"HTTP/1.0 4", b"HTTP/1.1 5") or (not line and len(data) > 50000),
                  "%s: answered %r" % (name, line))
            is_good(good, name)
        for name, data in closed:
            line = first_line(data, IMPATIENT)  # it looks more often who has gone
            check(line == b"", "%s: answered %r" % (name, line))
            is_good(good, name)
    return len(refused) + len(closed)


schema_rows()
nested_rows()
cut_rows()
packed_rows()
json_rows()
count = try_requests([(name, "POST", PROFILES, headers, body, status) for name, headers, body, status in rows])
count += try_requests(header_rows())
count += try_raw()
count += try_ambiguous()
print("%d requests, %d failures" % (count, len(failures)))
sys.exit(1 if failures else 0)
