# SPDX-License-Identifier: Apache-2.0
"""OTLP/HTTP clients for the tests of the server: requests, answers, counters, and what was found wrong.

The first two arguments of the script are the ports. PORT takes bodies up to 1 MiB. IMPATIENT as well, but gives a request
2.4 s, an idle connection 0.6 s, and has room for four connections.
"""
import http.client
import json
import socket
import sys
import time

from messages import *

PORT, IMPATIENT = int(sys.argv[1]), int(sys.argv[2])
LIMIT = 1 << 20
PROFILES = "/v1development/profiles"
PROTOBUF = "application/x-protobuf"
failures = []


def status_message(body):
    """(code, message) of a google.rpc.Status."""
    assert body[0] == 8 and body[2] == 18, body
    length, at, shift = 0, 3, 0
    while True:
        length |= (body[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if body[at - 1] < 128:
            break
    assert at + length == len(body), body
    return body[1], body[at:].decode()


# --- HTTP ---

def connect(port=PORT):
    sock = socket.create_connection(("127.0.0.1", port), timeout=20)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def head_of(method, path, headers):
    return ("%s %s HTTP/1.1\r\nHost: localhost\r\n" % (method, path) + "".join("%s: %s\r\n" % h for h in headers) + "\r\n").encode()


def chunked(body, size=60000):
    pieces = [body[i:i + size] for i in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in pieces) + b"0\r\n\r\n"


def answer(sock, method="POST"):
    response = http.client.HTTPResponse(sock, method=method)
    response.begin()
    response.body = response.read()
    return response


def send(sock, method="POST", path=PROFILES, headers=None, body=b"", length=True):
    headers = list([("Content-Type", PROTOBUF)] if headers is None else headers)
    if length:
        headers.append(("Content-Length", str(len(body))))
    sock.sendall(head_of(method, path, headers) + body)
    return answer(sock, method)


def get(path, method="GET"):
    with connect() as sock:
        return send(sock, method, path, [], length=False)


def series():
    text = get("/metrics").body.decode()
    return {line.rsplit(" ", 1)[0]: json.loads(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line and line[0] != "#"}


def check(ok, what):
    if not ok:
        failures.append(what)
        print("FAIL", what)


def test(fn):
    began = time.time()
    try:
        fn()
    except Exception as e:  # a broken connection is a finding like any other
        check(False, "%s: %s" % (fn.__name__, repr(e)[:300]))
    with connect() as sock:
        check(send(sock, body=request()).status == 200, "a good request after " + fn.__name__)
    print("%-20s %5.2f s" % (fn.__name__, time.time() - began))


def is_closed(sock, within):
    """The server ends the connection without an answer."""
    sock.settimeout(within)
    try:
        return sock.recv(1) == b""
    except ConnectionResetError:
        return True
    except socket.timeout:
        return False
