#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A collector that answers as told: collector.py PORT ANSWER...

The first line on stdout is "port N" (PORT 0: one that is free); then one line a request: the answer it got, its headers and
the number of events in its body, counted here from the bytes. The answers are used up in order, the last one stays.

  CODE                 that status, no body
  limit=BYTES          413 for bodies that are larger unpacked, else 200
  nozstd=ANSWER        that answer for bodies packed by zstd, else 200
  CODE:status=TEXT     with a google.rpc.Status
  CODE:text=TEXT       with a text/plain body
  CODE:partial=N       with a partial success that rejects N profiles
  CODE:after=SECONDS   with Retry-After in seconds
  CODE:date=SECONDS    with Retry-After as a date that many seconds ahead
  slow=SECONDS         200 after so long
  slow401=SECONDS      401 after so long
  hang=SECONDS         no answer for so long, then none
  close                the connection ends without an answer
  cut                  the connection ends in the middle of the answer
"""
import ctypes
import email.utils
import gzip
import http.server
import json
import sys
import time


def unzstd(data):
    """One frame that says how long its content is."""
    lib = ctypes.CDLL("libzstd.so.1")
    lib.ZSTD_getFrameContentSize.restype = ctypes.c_ulonglong
    lib.ZSTD_decompress.restype = ctypes.c_size_t
    size = lib.ZSTD_getFrameContentSize(data, ctypes.c_size_t(len(data)))
    out = ctypes.create_string_buffer(max(size, 1))
    length = lib.ZSTD_decompress(out, ctypes.c_size_t(size), data, ctypes.c_size_t(len(data)))
    if length != size:
        raise ValueError("no zstd frame")
    return out.raw[:size]


def unpacked(data, encoding):
    return gzip.decompress(data) if encoding == "gzip" else unzstd(data) if encoding == "zstd" else data


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value, at


def fields(data):
    """Each (field number, value) of a message: bytes for length-delimited fields, None for the others."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        kind = tag & 7
        value = None
        if kind == 0:
            _, at = varint(data, at)
        elif kind == 2:
            length, at = varint(data, at)
            value = data[at:at + length]
            if len(value) != length:
                raise ValueError("truncated field")
            at += length
        else:
            at += {1: 8, 5: 4}[kind]
        yield tag >> 3, value


def below(messages, number):
    return [value for message in messages for field, value in fields(message) if field == number]


def count_events(body):
    """ProfilesData: resource_profiles 1, scope_profiles 2, profiles 2, samples 2, timestamps 5 (packed fixed64)."""
    samples = below(below(below(below([body], 1), 2), 2), 2)
    return sum(max(sum(len(times) // 8 for times in below([sample], 5)), 1) for sample in samples)


def count_json_events(body):
    return sum(max(len(sample.get("timestampsUnixNano", [])), 1)
               for resource in json.loads(body)["resourceProfiles"] for scope in resource["scopeProfiles"]
               for profile in scope["profiles"] for sample in profile.get("samples", []))


def delimited(number, data):
    return bytes([number << 3 | 2, len(data)]) + data


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        raw = self.rfile.read(int(self.headers["Content-Length"]))
        encoding = self.headers.get("Content-Encoding")
        body = unpacked(raw, encoding)
        answer = self.server.answers.pop(0) if len(self.server.answers) > 1 else self.server.answers[0]
        if answer.startswith("nozstd="):
            answer = answer[7:] if encoding == "zstd" else "200"
        names = ("Content-Type", "Content-Encoding", "otlp-profiles-development-version", "X-Test", "Authorization")
        headers = " ".join(f"{name}={self.headers.get(name)}" for name in names)
        shown = f"{answer}:{413 if len(body) > int(answer[6:]) else 200}" if answer.startswith("limit=") else answer
        print(f"request answer={shown} path={self.path} {headers} sent={len(raw)} size={len(body)} "
              f"events={self.events(body)} agent={self.headers['User-Agent']}", flush=True)
        self.reply(answer, len(body))

    def events(self, body):
        if self.path.endswith(("/v1/logs", "/v1/metrics", "/v1/traces")):
            if self.is_json():
                json.loads(body)
            return 1
        return (count_json_events if self.is_json() else count_events)(body)

    def is_json(self):
        return self.headers["Content-Type"] == "application/json"

    def reply(self, answer, size):
        status, _, more = answer.partition(":")
        if answer.startswith("limit="):
            status = "413" if size > int(answer[6:]) else "200"
        if answer.startswith("slow="):
            time.sleep(float(answer[5:]))
            status = "200"
        if answer.startswith("slow401="):
            time.sleep(float(answer[8:]))
            status = "401"
        if answer.startswith("hang="):
            time.sleep(float(answer[5:]))
        if not status.isdigit():
            if answer == "cut":
                self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
            self.close_connection = True
            return
        kind, _, value = more.partition("=")
        text = value.encode()
        body = b""
        if kind == "status":
            body = b"\x08\x03" + delimited(2, text)
        elif kind == "text":
            body = text + b"\nand a second line\n"
        elif kind == "partial":
            body = delimited(1, b"\x08" + bytes([int(value)]) + delimited(2, b"too old"))
        if self.is_json() and kind == "status":
            body = json.dumps({"code": 3, "message": value}).encode()
        elif self.is_json() and kind == "partial":
            body = json.dumps({"partialSuccess": {"rejectedProfiles": value, "errorMessage": "too old"}}).encode()
        self.send_response(int(status))
        self.send_header("Content-Type", "text/plain" if kind == "text" else
                         "application/json" if self.is_json() else "application/x-protobuf")
        self.send_header("Content-Length", str(len(body)))
        if kind == "after":
            self.send_header("Retry-After", value)
        if kind == "date":
            self.send_header("Retry-After", email.utils.formatdate(time.time() + float(value), usegmt=True))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


if __name__ == "__main__":
    server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
    server.answers = sys.argv[2:]
    print(f"port {server.server_port}", flush=True)
    server.serve_forever()
