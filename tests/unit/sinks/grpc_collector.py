#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A gRPC collector that answers as told: grpc_collector.py [--tls CERT KEY] [--client-ca FILE] PORT|PATH ANSWER...

It speaks HTTP/2 frame by frame (python3-h2), so that it can also answer what no gRPC library would. The first line on stdout is
"port N" (PORT 0: one that is free; PATH, with a slash: a Unix socket, "port 0"); then one line a request, as collector.py does.
The answers are used up in order, the last one stays.

  OK                   an empty message, status 0 in trailers
  OK:gzip=N, OK:partial=N    a partial success that rejects N profiles, compressed or not
  limit=BYTES          RESOURCE_EXHAUSTED for messages that are larger unpacked, else OK
  nozstd=ANSWER        that answer for messages packed by zstd, else OK
  CODE                 that status, in the only headers; CODE:message=TEXT with a percent-encoded message
  CODE:accept=NAMES    with a grpc-accept-encoding
  CODE:late=TEXT       headers first, then the status and the message as trailers
  CODE:retry=MS        with a RetryInfo of so many milliseconds; CODE:bare=MS without base64's padding
  OK:goaway, CODE:goaway     headers, the message, trailers and the connection's end, all at once
  http=STATUS          an HTTP answer without a gRPC status
  none                 a message, and no status
  hang=SECONDS         no answer for so long, then none
  close, reset, cut    the connection, the stream ends without an answer; the connection ends behind half of one
"""
import base64
import gzip
import socket
import ssl
import sys
import threading
import time

import h2.config
import h2.connection
import h2.events
from collector import count_events, delimited, unpacked


def varint(value):
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def framed(message, compressed=False):
    return bytes([compressed]) + len(message).to_bytes(4, "big") + message


def retry_details(code, milliseconds):
    duration = b"\x08" + varint(milliseconds // 1000) + b"\x10" + varint(milliseconds % 1000 * 1000000)
    info = delimited(1, b"type.googleapis.com/google.rpc.RetryInfo") + delimited(2, delimited(1, duration))
    other = delimited(1, b"type.googleapis.com/google.rpc.Help") + delimited(2, b"\x0a\x00")
    return base64.b64encode(b"\x08" + varint(code) + delimited(2, b"wait") + delimited(3, other) + delimited(3, info)).decode()


class Connection:
    def __init__(self, sock, answers):
        self.sock = sock
        self.answers = answers
        self.h2 = h2.connection.H2Connection(config=h2.config.H2Configuration(client_side=False))
        self.requests = {}

    def send(self):
        self.sock.sendall(self.h2.data_to_send())

    def run(self):
        self.h2.initiate_connection()
        self.send()
        while data := self.sock.recv(65536):
            for event in self.h2.receive_data(data):
                if isinstance(event, h2.events.RequestReceived):
                    self.requests[event.stream_id] = (dict(event.headers), bytearray())
                elif isinstance(event, h2.events.DataReceived):
                    self.requests[event.stream_id][1].extend(event.data)
                    self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                elif isinstance(event, h2.events.StreamEnded):
                    if not self.answer(event.stream_id):
                        return
            self.send()

    def answer(self, stream):
        headers, raw = self.requests.pop(stream)
        headers = {key.decode(): value.decode() for key, value in headers.items()}
        assert int.from_bytes(raw[1:5], "big") == len(raw) - 5, "not one whole message"
        encoding = headers.get("grpc-encoding")
        assert raw[0] == (encoding in ("gzip", "zstd")), "compressed flag"
        body = unpacked(bytes(raw[5:]), encoding)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if answer.startswith("nozstd="):
            answer = answer[7:] if encoding == "zstd" else "OK"
        if answer.startswith("limit="):
            answer = "OK" if len(body) <= int(answer[6:]) else "8:message=message larger than max"
        names = (":method", ":scheme", ":path", "content-type", "te", "grpc-encoding", "grpc-accept-encoding", "grpc-timeout",
                 "otlp-profiles-development-version", "x-test", "authorization")
        print(f"request answer={answer} " + " ".join(f"{name}={headers.get(name)}" for name in names) +
              f" sent={len(raw)} size={len(body)} events={count_events(body)} agent={headers['user-agent']}", flush=True)
        return self.reply(stream, answer)

    def headers(self, stream, end=False, **more):
        lines = [(":status", "200"), ("content-type", "application/grpc")]
        self.h2.send_headers(stream, lines + [(key.replace("_", "-"), value) for key, value in more.items()], end_stream=end)

    def trailers(self, stream, code, message=None):
        lines = [("grpc-status", code)] + ([("grpc-message", message)] if message else [])
        self.h2.send_headers(stream, lines, end_stream=True)

    def last_words(self, stream, word):
        """As a server that stops: it reads until the other side has closed."""
        self.headers(stream)
        if word == "OK":
            self.h2.send_data(stream, framed(b""))
        self.trailers(stream, "0" if word == "OK" else word)
        self.h2.close_connection()
        self.send()
        self.sock.shutdown(socket.SHUT_WR)
        while self.sock.recv(65536):
            pass
        return False

    def reply(self, stream, answer):
        """Whether the connection goes on."""
        first, _, more = answer.partition(":")
        kind, _, value = more.partition("=")
        word, _, number = first.partition("=")
        if kind == "goaway":
            return self.last_words(stream, word)
        if word == "hang":
            time.sleep(float(number))
        if word in ("hang", "close"):
            return False
        if word == "cut":
            self.headers(stream)
            self.h2.send_data(stream, framed(b"half")[:7])
            self.send()
            return False
        if word == "reset":
            self.h2.reset_stream(stream, 2)
        elif word == "http":
            self.h2.send_headers(stream, [(":status", number), ("content-type", "text/html")])
            self.h2.send_data(stream, b"<html>", end_stream=True)
        elif word == "none":
            self.headers(stream)
            self.h2.send_data(stream, framed(b""), end_stream=True)
        elif word == "OK":
            partial = delimited(1, b"\x08" + bytes([int(value)]) + delimited(2, b"too old")) if kind else b""
            self.headers(stream, grpc_encoding="gzip" if kind == "gzip" else "identity")
            self.h2.send_data(stream, framed(gzip.compress(partial), True) if kind == "gzip" else framed(partial))
            self.trailers(stream, "0")
        elif kind == "accept":
            self.headers(stream, True, grpc_status=word, grpc_accept_encoding=value)
        elif kind == "late":
            self.headers(stream)
            self.trailers(stream, word, value)
        elif kind in ("retry", "bare"):
            details = retry_details(int(word), int(value))
            self.headers(stream, True, grpc_status=word,
                         grpc_status_details_bin=details.rstrip("=") if kind == "bare" else details)
        else:
            self.headers(stream, True, grpc_status=word, **({"grpc_message": value} if value else {}))
        return True


def serve(sock, context, answers):
    try:
        if context:
            sock = context.wrap_socket(sock, server_side=True)
        Connection(sock, answers).run()
    except OSError:
        pass
    finally:
        sock.close()


def main(arguments):
    context = None
    while arguments[0].startswith("--"):
        option = arguments.pop(0)
        if option == "--tls":
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(arguments.pop(0), arguments.pop(0))
            context.set_alpn_protocols(["h2"])
        elif option == "--client-ca":
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(arguments.pop(0))
    where, answers = arguments[0], arguments[1:]
    if "/" in where:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(where)
    else:
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", int(where)))
    listener.listen(64)
    print(f"port {0 if '/' in where else listener.getsockname()[1]}", flush=True)
    while True:
        sock, _ = listener.accept()
        threading.Thread(target=serve, args=(sock, context, answers), daemon=True).start()


if __name__ == "__main__":
    main(sys.argv[1:])
