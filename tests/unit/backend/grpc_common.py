# SPDX-License-Identifier: Apache-2.0
"""What grpc_requests.py and grpc_frames.py share: the ports they were told, names of codes, requests, and how a failure is kept."""
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
