#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Good and bad requests against running servers; test_server.c starts them and this.

usage: requests.py PORT IMPATIENT_PORT

A profile whose resource says test.errno=N makes the sink fail with that error.
"""
import errno
import gzip
import json
import re
import socket
import struct
import sys
import threading
import time
import zlib

from resource import RLIMIT_NOFILE, getrlimit

from otlp_client import *

# --- the tests ---

GZ = [("Content-Type", PROTOBUF), ("Content-Encoding", "gzip")]
GOOD = request()


def typed(value):
    return [("Content-Type", value)]


def version(*values):
    return typed(PROTOBUF) + [("OTLP-Profiles-Development-Version", v) for v in values]


def lying(body, length):
    return body[:-4] + struct.pack("<I", length)


def raw_index(bad):
    return resource((), [[profile([sample([bad], 1)])]]) + dictionary()


def json_errno(number):
    """A profile that makes the sink fail."""
    attribute = {"key": "test.errno", "value": {"intValue": str(number)}}
    return json.dumps({"resourceProfiles": [{"resource": {"attributes": [attribute]}}]}).encode()


TABLE = [  # name, method, path, headers, body, status
    ("good", "POST", PROFILES, typed(PROTOBUF), GOOD, 200),
    ("other path", "POST", "/v1/profiles", typed(PROTOBUF), GOOD, 200),
    ("query", "POST", PROFILES + "?a=b", typed(PROTOBUF), GOOD, 200),
    ("parameters", "POST", PROFILES, typed("Application/X-Protobuf; charset=utf-8"), GOOD, 200),
    ("other name", "POST", PROFILES, typed("application/protobuf"), GOOD, 200),
    ("empty", "POST", PROFILES, typed(PROTOBUF), b"", 200),
    ("identity", "POST", PROFILES, typed(PROTOBUF) + [("Content-Encoding", "identity")], GOOD, 200),
    ("gzip", "POST", PROFILES, GZ, gzip.compress(GOOD), 200),
    ("gzip with a name", "POST", PROFILES, GZ,
     b"\x1f\x8b\x08\x08\0\0\0\0\0\xffname\0" + gzip.compress(GOOD)[10:], 200),
    ("gzip of nothing", "POST", PROFILES, GZ, gzip.compress(b""), 200),
    ("gzip at the limit", "POST", PROFILES, GZ, gzip.compress(request(padding=LIMIT - len(request()) - 4)), 200),
    ("logs", "POST", "/v1/logs", typed(PROTOBUF), b"\x0a\x00", 200),
    ("metrics", "POST", "/v1/metrics", GZ, gzip.compress(b"\x0a\x00"), 200),
    ("traces", "POST", "/v1/traces", typed(PROTOBUF), b"", 200),
    ("version 1", "POST", PROFILES, version("1"), GOOD, 200),
    ("version of logs", "POST", "/v1/logs", version("7"), b"", 200),
    ("version 2", "POST", PROFILES, version("2"), GOOD, 400),
    ("version 01", "POST", PROFILES, version("01"), GOOD, 400),
    ("version 1,1", "POST", PROFILES, version("1,1"), GOOD, 400),
    ("version empty", "POST", PROFILES, version(""), GOOD, 400),
    ("version twice", "POST", PROFILES, version("1", "1"), GOOD, 400),
    ("version word", "POST", PROFILES, version("one"), GOOD, 400),
    ("not gzip", "POST", PROFILES, GZ, GOOD, 400),
    ("gzip of garbage", "POST", PROFILES, GZ, gzip.compress(b"\xff" * 50), 400),
    ("gzip, nothing there", "POST", PROFILES, GZ, b"", 400),
    ("gzip header only", "POST", PROFILES, GZ, gzip.compress(GOOD)[:10], 400),
    ("gzip cut", "POST", PROFILES, GZ, gzip.compress(GOOD)[:-9], 400),
    ("gzip with wrong crc", "POST", PROFILES, GZ, gzip.compress(GOOD)[:-8] + b"\0" * 4 + gzip.compress(GOOD)[-4:], 400),
    ("gzip and garbage", "POST", PROFILES, GZ, gzip.compress(GOOD) + b"garbage", 400),
    ("gzip in two members", "POST", PROFILES, GZ, gzip.compress(GOOD[:9]) + gzip.compress(GOOD[9:]), 200),
    ("gzip claims too much", "POST", PROFILES, GZ, lying(gzip.compress(GOOD), len(GOOD) + 1), 400),
    ("gzip claims too little", "POST", PROFILES, GZ, lying(gzip.compress(GOOD), len(GOOD) - 1), 400),
    ("gzip claims 4 GiB", "POST", PROFILES, GZ, lying(gzip.compress(GOOD), 0xffffffff), 400),
    ("zlib, not gzip", "POST", PROFILES, GZ, zlib.compress(GOOD), 400),
    ("bomb", "POST", PROFILES, GZ, gzip.compress(bytes(50 << 20)), 413),
    ("bomb that lies", "POST", PROFILES, GZ, lying(gzip.compress(bytes(50 << 20)), 1000), 413),
    ("bomb of logs", "POST", "/v1/logs", GZ, gzip.compress(bytes(50 << 20)), 413),
    ("zstd", "POST", PROFILES, typed(PROTOBUF) + [("Content-Encoding", "zstd")], GOOD, 400),
    ("two encodings", "POST", PROFILES, typed(PROTOBUF) + [("Content-Encoding", "gzip, gzip")], GOOD, 400),
    ("not protobuf", "POST", PROFILES, typed(PROTOBUF), b"<html>hello</html>", 400),
    ("cut message", "POST", PROFILES, typed(PROTOBUF), GOOD[:-3], 400),
    ("wrong wire type", "POST", PROFILES, typed(PROTOBUF), field(1, 5), 400),
    ("index beyond its table", "POST", PROFILES, version("1"), raw_index(77), 400),
    ("string that is not UTF-8", "POST", PROFILES, typed(PROTOBUF), request((("container.id", b"b\xffd"),)), 400),
    ("nested too deep", "POST", PROFILES, typed(PROTOBUF), nested(10000), 400),
    ("no type", "POST", PROFILES, [], GOOD, 415),
    ("nearly the type", "POST", PROFILES, typed("application/x-protobufs"), GOOD, 415),
    ("unknown path", "POST", "/v1/nothing", typed(PROTOBUF), GOOD, 404),
    ("path below", "POST", PROFILES + "/x", typed(PROTOBUF), GOOD, 404),
    ("json", "POST", PROFILES, typed("application/json"), b"{}", 200),
    ("json and gzip", "POST", PROFILES, typed("application/json; charset=utf-8") + GZ[1:], gzip.compress(b"{}"), 200),
    ("json that is none", "POST", PROFILES, typed("application/json"), b"{", 400),
    ("json, sink full", "POST", PROFILES, typed("application/json"), json_errno(errno.EAGAIN), 503),
    ("json, disk full", "POST", PROFILES, typed("application/json"), json_errno(errno.ENOSPC), 503),
    ("json, sink broken", "POST", PROFILES, typed("application/json"), json_errno(errno.EPERM), 500),
    ("json, disk broken", "POST", PROFILES, typed("application/json"), json_errno(errno.EIO), 503),
    ("get profiles", "GET", PROFILES, [], b"", 405),
    ("put profiles", "PUT", PROFILES, typed(PROTOBUF), GOOD, 405),
    ("post metrics page", "POST", "/metrics", typed(PROTOBUF), GOOD, 405),
    ("delete health", "DELETE", "/healthz", [], b"", 405),
    ("sink full", "POST", PROFILES, typed(PROTOBUF), request((("test.errno", errno.EAGAIN),)), 503),
    ("disk full", "POST", PROFILES, typed(PROTOBUF), request((("test.errno", errno.ENOSPC),)), 503),
    ("disk over quota", "POST", PROFILES, typed(PROTOBUF), request((("test.errno", errno.EDQUOT),)), 503),
    ("sink broken", "POST", PROFILES, typed(PROTOBUF), request((("test.errno", errno.EPERM),)), 500),
    ("disk broken", "POST", PROFILES, typed(PROTOBUF), request((("test.errno", errno.EIO),)), 503),
]
CODES = {400: 3, 413: 8, 500: 13, 503: 14}


def check_answer(name, response, method, path, headers, status):
    sent_type = dict(headers).get("Content-Type", "").split(";")[0].lower()
    got_type = response.getheader("Content-Type")
    check(response.status == status, "%s: status %d, not %d: %r" % (name, response.status, status, response.body[:200]))
    if response.status in CODES:
        if got_type == "application/json":
            code, message = (json.loads(response.body)[key] for key in ("code", "message"))
        else:
            code, message = status_message(response.body)
        check(code == CODES[response.status] and len(message) > 10, "%s: Status %d %s" % (name, code, message))
        check(got_type == sent_type, "%s: answered in %s" % (name, got_type))
    elif response.status == 200:
        check(response.body == (b"{}" if sent_type == "application/json" else b"") and got_type == sent_type, "%s: answered %r in %s" % (name, response.body, got_type))
    else:
        check(got_type.startswith("text/plain"), "%s: answered in %s" % (name, got_type))
    if status == 405:
        allow = "GET, HEAD" if path in ("/metrics", "/healthz") else "POST"
        check(response.getheader("Allow") == allow, "%s: Allow %s" % (name, response.getheader("Allow")))
        check(response.body.decode() == "405 method not allowed, supported: [%s]" % allow, "%s: %r" % (name, response.body))
    if status == 415:
        check(response.body == b"415 unsupported media type, supported: [application/json, application/x-protobuf]", "%s: %r" % (name, response.body))
    check((response.getheader("Retry-After") == "1") == (status == 503), "%s: Retry-After" % name)


def table():
    """Every request on one connection: whatever was wrong, the next one on it is served."""
    before = series()
    with connect() as sock:
        for name, method, path, headers, body, status in TABLE:
            check_answer(name, send(sock, method, path, headers, body), method, path, headers, status)
            check(send(sock, body=GOOD).status == 200, "a good request after " + name)
    after = series()
    for status in (200, 400, 404, 405, 413, 415, 500, 503):
        def total(all_series):
            return sum(v for k, v in all_series.items()
                       if k.startswith("hearth_received_requests_total{") and 'code="%d"' % status in k)
        expected = sum(row[5] == status for row in TABLE) + (len(TABLE) + 1 if status == 200 else 0)  # and /metrics itself
        check(total(after) - total(before) == expected, "%d answers with %d counted, not %d" %
              (total(after) - total(before), status, expected))
    bytes_name = "hearth_received_bytes_total"
    to_receiver = [row for row in TABLE if row[2].startswith("/v1") and row[2] not in ("/v1/nothing", PROFILES + "/x")]
    expected = sum(len(row[4]) for row in to_receiver) + len(GOOD) * len(TABLE)
    check(after[bytes_name] - before[bytes_name] == expected,
          "%d bytes counted, not %d" % (after[bytes_name] - before[bytes_name], expected))


def strangers():
    """Pages of elsewhere, and sites that point their own name at this address: refused before the body, on every route that matters."""
    own = "127.0.0.1:%d" % PORT
    hosts = [("localhost", 200), (own, 200), ("[::1]:4318", 200), ("LOCALHOST:80", 200), ("x.localhost", 200),
             ("evil.example", 403), ("evil.example:%d" % PORT, 403), ("localhost.evil.example", 403), ("127.0.0.1.evil.example", 403)]
    origins = [(None, 200), ("http://" + own, 200), ("https://" + own, 200), ("http://evil.example", 403), ("null", 403),
               ("http://localhost", 403), ("http://%s.evil.example" % own, 403), ("", 403)]
    cases = [(host, None, status) for host, status in hosts] + [(own, origin, status) for origin, status in origins]
    before = series()
    for path in (PROFILES, "/v1/profiles", "/v1/logs", "/v1/metrics", "/v1/traces"):
        for kind in (PROTOBUF, "application/json", "text/plain"):
            for host, origin, status in cases:
                body = b"{}" if kind != PROTOBUF else b""
                status = 415 if status == 200 and kind == "text/plain" else status
                head = "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n" % (path, host, kind, len(body))
                head += "" if origin is None else "Origin: %s\r\n" % origin
                with connect() as sock:
                    sock.sendall(head.encode() + b"\r\n" + body)
                    got = answer(sock).status
                check(got == status, "%s by %s from %s in %s: %d, not %d" % (path, host, origin, kind, got, status))
    refused = 'hearth_rejected_requests_total{reason="origin"}'
    check(series()[refused] - before[refused] == 5 * 3 * sum(case[2] == 403 for case in cases), "strangers are not counted")


def chunked_bodies():
    with connect() as sock:
        headers = typed(PROTOBUF) + [("Transfer-Encoding", "chunked")]
        check(send(sock, headers=headers, body=chunked(GOOD, 7), length=False).status == 200, "chunked")
        large = request(padding=LIMIT // 2)
        check(send(sock, headers=headers, body=chunked(large), length=False).status == 200, "large and chunked")
        response = send(sock, headers=headers, body=chunked(bytes(2 * LIMIT)), length=False)
        check_answer("chunked, too large", response, "POST", PROFILES, headers, 413)
        check(send(sock, body=GOOD).status == 200, "same connection after a chunked body that was too large")


def chunked_without_end():
    with connect() as sock:
        sock.sendall(head_of("POST", PROFILES, typed(PROTOBUF) + [("Transfer-Encoding", "chunked")]))
        sent = 0
        try:
            while sent < 32 * LIMIT:
                sock.sendall(b"10000\r\n" + bytes(65536) + b"\r\n")
                sent += 65536
        except OSError:
            pass
        check(sent < 32 * LIMIT, "an endless body was read on and on")


def announced_too_large():
    for length in (LIMIT + 1, 10**15, 2**64 - 1):
        with connect() as sock:
            headers = typed(PROTOBUF) + [("Content-Length", str(length))]
            sock.sendall(head_of("POST", PROFILES, headers))  # and no body: the answer must not wait for it
            response = answer(sock)
            if length < 2**64 - 1:
                check_answer("announced %d bytes" % length, response, "POST", PROFILES, headers, 413)
            else:  # which libmicrohttpd from 1.0 on refuses itself, by a page of its own
                check(response.status == 413, "announced %d bytes: status %d" % (length, response.status))


def expect_continue():
    for headers, status in ((typed(PROTOBUF), 200), (typed("text/html"), 415)):
        with connect() as sock:
            sock.sendall(head_of("POST", PROFILES, headers + [("Content-Length", str(len(GOOD))), ("Expect", "100-continue")]))
            if status == 200:
                interim = sock.recv(1000)
                check(interim.startswith(b"HTTP/1.1 100 "), "no 100 Continue: %r" % interim)
                sock.sendall(GOOD)
            check(answer(sock).status == status, "Expect: 100-continue, then not %d" % status)


def broken_http():
    name = 'hearth_rejected_requests_total{reason="incomplete"}'
    before = series()[name]
    for text in (b"\r\n\r\n", b"GARBAGE\r\n\r\n", b"POST / HTTP/9.9\r\n\r\n", b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\n\r\n",
                 b"GET /healthz HTTP/1.1\r\n" + b"X: y\r\n" * 20000 + b"\r\n", bytes(range(256)) * 20,
                 b"POST /v1/logs HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
                 b"POST /v1/logs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-protobuf\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"):
        with connect() as sock:
            try:
                sock.sendall(text)
                sock.shutdown(socket.SHUT_WR)
                got = sock.recv(100)
            except OSError:
                got = b""
            check(not got or got.startswith(b"HTTP/1.1 4") or got.startswith(b"HTTP/1.0 4") or got.startswith(b"HTTP/1.1 505"),
                  "%r answered with %r" % (text[:30], got))
    check(series()[name] - before >= 2, "%d of the broken requests counted" % (series()[name] - before))


def disconnects():
    name = 'hearth_rejected_requests_total{reason="incomplete"}'
    before = series()[name]
    whole = head_of("POST", PROFILES, typed(PROTOBUF) + [("Content-Length", str(len(GOOD)))]) + GOOD
    cuts = [len(whole) - len(GOOD) + 1, len(whole) - 1, len(whole) - len(GOOD), 60]
    for cut in cuts:
        with connect() as sock:
            sock.sendall(whole[:cut])
    deadline = time.time() + 5
    while series()[name] - before < len(cuts) and time.time() < deadline:
        time.sleep(0.02)
    check(series()[name] - before == len(cuts), "%d of %d clients that went away counted" % (series()[name] - before, len(cuts)))


def pipelining():
    one = head_of("POST", PROFILES, typed(PROTOBUF) + [("Content-Length", str(len(GOOD)))]) + GOOD
    health = head_of("GET", "/healthz", [])
    with connect() as sock:
        sock.sendall(one * 3 + health)
        stream = sock.makefile("rb")

        class Wrapped:
            def makefile(self, _mode):
                return Unclosed(stream)
        statuses = []
        for method in ("POST", "POST", "POST", "GET"):
            statuses.append(answer(Wrapped(), method).status)
        check(statuses == [200] * 4, "pipelined: %r" % statuses)


class Unclosed:
    """A stream whose owner closes it, not HTTPResponse."""
    def __init__(self, stream):
        self.readline, self.read, self.readinto, self.read1 = stream.readline, stream.read, stream.readinto, stream.read1
        self.flush = lambda: None
        self.close = lambda: None
        self.closed = False


def many_clients():
    errors = []

    def client():
        try:
            with connect() as sock:
                for _ in range(3):
                    if send(sock, body=GOOD).status != 200:
                        errors.append("status")
        except Exception as e:
            errors.append(repr(e))
    threads = [threading.Thread(target=client) for _ in range(200)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    check(not errors, "200 clients at once: %d failed: %r" % (len(errors), errors[:3]))


def half_sent():
    """Many clients in the middle of their bodies delay nobody."""
    socks = [connect() for _ in range(150)]
    for sock in socks:
        sock.sendall(head_of("POST", PROFILES, typed(PROTOBUF) + [("Content-Length", str(len(GOOD)))]) + GOOD[:10])
    began = time.time()
    with connect() as sock:
        check(send(sock, body=GOOD).status == 200, "a request beside 150 half-sent ones")
    check(time.time() - began < 2, "a request beside 150 half-sent ones took %.1f s" % (time.time() - began))
    for sock in socks:
        sock.sendall(GOOD[10:])
    check(all(answer(sock).status == 200 for sock in socks), "half-sent requests when the rest came")
    for sock in socks:
        sock.close()


MEMORY = "hearth_receive_memory_bytes"


def wait_for(name, value, most=False):
    deadline = time.time() + 5
    while (series()[name] > value if most else series()[name] < value) and time.time() < deadline:
        time.sleep(0.02)
    return series()[name]


def hold_memory():
    """Four bodies of the largest size, all but their last byte: all that there is memory for."""
    head = head_of("POST", PROFILES, typed(PROTOBUF) + [("Content-Length", str(LIMIT))])
    holders = [connect() for _ in range(4)]
    for sock in holders:
        sock.sendall(head + bytes(LIMIT - 1))
    check(wait_for(MEMORY, 4 * LIMIT) == 4 * LIMIT, "memory for four bodies")
    return holders


def memory_budget():
    large = request(padding=LIMIT // 2)
    holders = hold_memory()
    with connect() as sock, connect() as gone, connect(IMPATIENT) as refused, connect() as chunks, connect() as packed:
        gone.sendall(head_of("POST", PROFILES, typed(PROTOBUF) + [("Content-Length", "100000")]))
        gone.shutdown(socket.SHUT_RDWR)  # while it waits
        for other, headers, body in ((sock, [("Content-Length", str(len(large)))], large),
                                     (chunks, [("Transfer-Encoding", "chunked")], chunked(large)),
                                     (packed, [("Content-Encoding", "gzip"), ("Content-Length", str(len(gzip.compress(large))))],
                                      gzip.compress(large))):
            other.sendall(head_of("POST", PROFILES, typed(PROTOBUF) + headers))
            other.settimeout(0.1)
            try:
                other.sendall(body)
                check(other.recv(1) == b"x", "answered without memory")
            except socket.timeout:
                pass
            other.settimeout(20)
        check_answer("no memory for too long", send(refused, body=large), "POST", PROFILES, typed(PROTOBUF), 503)
        check(get("/healthz").status == 200, "a page while there is no memory")
        check(send(connect(), body=b"").status == 200, "an empty request while there is no memory")
        holders.pop().close()
        for other, name in ((sock, "announced"), (packed, "packed"), (chunks, "chunked")):
            check(answer(other).status == 200, name + " body when there is memory again")
    for holder in holders:
        holder.close()
    check(wait_for(MEMORY, 0, most=True) == 0, "memory is given back: %d" % series()[MEMORY])
    check(series()["hearth_receive_memory_waits_total"] >= 5, "waits counted")


def crowd():
    """Sixty clients with bodies of every kind, for whose sum there is no memory: all are served, none waits for ever."""
    errors, plain = [], [request(padding=LIMIT // n - 2000) for n in (1, 2, 3, 10)]
    gz = [gzip.compress(body, 1) for body in plain]

    def client(i):
        try:
            with connect() as sock:
                for n in range(4):
                    body, headers = plain[(i + n) % 4], typed(PROTOBUF)
                    if i % 3 == 0:
                        body, headers = gz[(i + n) % 4], GZ
                    if i % 2:
                        headers, body = headers + [("Transfer-Encoding", "chunked")], chunked(body)
                    status = send(sock, headers=headers, body=body, length=i % 2 == 0).status
                    if status != 200:
                        errors.append(status)
        except Exception as e:
            errors.append(repr(e))
    threads = [threading.Thread(target=client, args=(i,)) for i in range(60)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    check(not errors, "a crowd of 60: %d failed: %r" % (len(errors), errors[:3]))
    check(wait_for(MEMORY, 0, most=True) == 0, "memory is given back: %d" % series()[MEMORY])


def closed_when_slow(name, first, piece, pause, least, most):
    with connect(IMPATIENT) as sock:
        began = time.time()
        sock.sendall(first)
        try:
            while time.time() - began < most + 2:
                sock.sendall(piece)
                sock.settimeout(pause)
                try:
                    if sock.recv(1) == b"":
                        break
                    check(False, name + ": was answered")
                    return
                except socket.timeout:
                    pass
        except OSError:
            pass
        took = time.time() - began
        check(least <= took <= most, "%s: closed after %.2f s, expected %.2f to %.2f" % (name, took, least, most))


def slow_clients():
    """A request has 2.4 s, and from a sixth of that on must bring 1 KiB a second; an idle connection has 0.6 s."""
    name = 'hearth_rejected_requests_total{reason="too slow"}'
    before = series()[name]
    length = typed(PROTOBUF) + [("Content-Length", "100000")]
    chunks = typed(PROTOBUF) + [("Transfer-Encoding", "chunked")]
    closed_when_slow("body by single bytes", head_of("POST", PROFILES, length), b"x", 0.02, 0.35, 2.2)
    closed_when_slow("headers without end", b"POST / HTTP/1.1\r\n", b"A: b\r\n", 0.02, 0.35, 2.2)
    closed_when_slow("quick body without end", head_of("POST", PROFILES, chunks), b"400\r\n" + bytes(1024) + b"\r\n", 0.01, 2.3, 5)
    check(series()[name] - before == 3, "%d slow clients counted, not 3" % (series()[name] - before))
    closed_when_slow("request line without end", b"POST /", b"a", 0.05, 0.55, 3)
    with connect(IMPATIENT) as sock:
        check(send(sock, body=GOOD).status == 200, "impatient server, good request")
        began = time.time()
        check(is_closed(sock, 5) and 0.5 < time.time() - began < 3, "idle connection closed after %.2f s" % (time.time() - began))


def connection_limit():
    idle = [connect(IMPATIENT) for _ in range(4)]
    time.sleep(0.1)
    began = time.time()
    with connect(IMPATIENT) as sock:
        check(send(sock, body=GOOD).status == 200, "a fifth client is served in the end")
        check(time.time() - began > 0.3, "a fifth client was served at once, with room for four")
    for sock in idle:
        sock.close()


def pages():
    health = get("/healthz")
    check((health.status, health.body) == (200, b"ok\n"), "healthz: %d %r" % (health.status, health.body))
    metrics, head = get("/metrics"), get("/metrics", "HEAD")
    check(metrics.getheader("Content-Type") == "text/plain; version=0.0.4; charset=utf-8", "type of /metrics")
    check(head.status == 200 and int(head.getheader("Content-Length")) > 1000 and head.body == b"", "HEAD /metrics")
    for line in metrics.body.decode().splitlines():
        check(re.fullmatch(r'# (HELP|TYPE) \w+ .+|\w+(\{(\w+="([^"\\]|\\.)*",?)+\})? \d+(\.\d+)?', line), "line of /metrics: " + line)
    now = series()
    check(abs(now["process_start_time_seconds"] - time.time()) < 300, "start time %d" % now["process_start_time_seconds"])
    check(10**6 < now["process_resident_memory_bytes"] < 10**10, "resident memory %d" % now["process_resident_memory_bytes"])
    check(5 < now["process_open_fds"] < 100, "open files %d" % now["process_open_fds"])
    check(now["process_resident_memory_bytes"] < now["process_virtual_memory_bytes"], "address space %d" % now["process_virtual_memory_bytes"])
    check(now["process_max_fds"] == getrlimit(RLIMIT_NOFILE)[0], "files at most %d" % now["process_max_fds"])
    before = now["hearth_process_cpu_seconds_total"]
    check(0.001 < before <= series()["hearth_process_cpu_seconds_total"] < 1000, "CPU time %f" % before)
    check(now["process_cpu_seconds_total"] == before, "CPU time %f" % now["process_cpu_seconds_total"])


def partial():
    """A profile that nobody can use among others: the others are taken."""
    bad = profile([sample([1, 4], 2) + packed(4, [1, 2, 3])])
    good = profile([sample([1, 4], 2) + packed(4, [1, 2])])
    body = resource([], [[good, bad, good], [bad]]) + dictionary()
    why = "resource_profiles[0].scope_profiles[0].profiles[1].samples[0] has 3 values for 2 time stamps"
    before = series()
    with connect() as sock:
        response = send(sock, body=body, headers=version("1"))
        check(response.status == 200 and response.body == field(1, field(1, 2) + field(2, why)), "partial: %r" % response.body)
    after = series()
    for name, value in (("received_profiles", 2), ("rejected_profiles", 2), ("received_samples", 4)):
        name = "hearth_%s_total" % name
        check(after[name] - before[name] == value, "%s: %d" % (name, after[name] - before[name]))
    text = {"resourceProfiles": [{"scopeProfiles": [{"profiles": [{"samples": [
        {"values": ["1", "2"], "timestampsUnixNano": ["5"]}]}]}]}]}
    with connect() as sock:
        response = send(sock, body=json.dumps(text).encode(), headers=typed("application/json"))
        answer = json.loads(response.body)["partialSuccess"]
        check(answer["rejectedProfiles"] == "1" and "2 values for 1 time stamps" in answer["errorMessage"], "partial: %r" % answer)


def counters():
    """The lazy backend's three, by its own rules, and ours."""
    samples = [sample([1, 4], 2), sample([4], 1), sample([5], 3), sample([1], 1)]
    body = resource([("container.id", "counted")], [[profile(samples), profile(samples)], []])
    body += resource([("process.executable.name", 'q"\\\n')], [[profile([sample([], 5)])]])
    body += resource([("container.id", "")], [])
    body += resource([("container.id", "b\x7fd\0\u00e4\n\x1f")], [[]])
    body += dictionary()
    before = series()
    with connect() as sock:
        check(send(sock, body=body).status == 200, "counted request")
    after = series()
    changed = {k: v - before.get(k, 0) for k, v in after.items() if v != before.get(k, 0) and k.startswith("lazy")}
    received = "lazybackend_received_"
    expected = {received + 'profiles_total{container_id="counted"}': 2, received + 'profiles_total{container_id="unknown"}': 1,
                received + 'profiles_total{container_id="b\x7fd?\u00e4\\n?"}': 1}
    for container, executable, count in (("counted", "worker", 4), ("counted", "unknown", 4), ("unknown", 'q\\"\\\\\\n', 1)):
        labels = 'container_id="%s",process_executable_name="%s"' % (container, executable)
        expected[received + "samples_total{%s}" % labels] = count
        for language, lines in (("native", 2), ("kernel", 1), ("unknown", 1)):
            expected[received + 'locations_total{%s,language="%s"}' % (labels, language)] = count * lines
    check(changed == expected, "lazy backend's counters: %r, not %r" % (changed, expected))
    check(after["hearth_received_profiles_total"] - before["hearth_received_profiles_total"] == 3, "profiles counted")
    check(after["hearth_received_samples_total"] - before["hearth_received_samples_total"] == 2 * 7 + 5, "samples counted")


def cardinality():
    """Label sets without end are folded into one."""
    before = sum(v for k, v in series().items() if k.startswith("lazybackend_received_samples_total"))
    count = 0
    with connect() as sock:
        for batch in range(25):
            names = ["%d-%d-%s" % (batch, i, "y" * 300) for i in range(100)]
            body = b"".join(resource([("container.id", n)], [[profile([sample([1], 1)])]]) for n in names) + dictionary()
            check(send(sock, body=body).status == 200, "many containers")
            count += len(names)
    after = {k: v for k, v in series().items() if k.startswith("lazybackend_received_samples_total")}
    check(sum(after.values()) - before == count, "%d samples counted, not %d" % (sum(after.values()) - before, count))
    check(500 < len(after) < 2100, "%d series" % len(after))
    other = 'lazybackend_received_samples_total{container_id="other",process_executable_name="other"}'
    check(after.get(other, 0) > 100, "nothing under other")
    check(max(map(len, after)) < 300, "label values are cut")


for t in (table, strangers, chunked_bodies, chunked_without_end, announced_too_large, expect_continue, broken_http, disconnects, pipelining,
          many_clients, half_sent, memory_budget, crowd, slow_clients, connection_limit, partial, counters, pages, cardinality):
    test(t)
print("%d failures" % len(failures))
sys.exit(1 if failures else 0)
