#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A client of gRPC's own library (grpcio) and one that sends frames, against `hearth serve`.

usage: grpc_clients.py plain PORT REQUEST
       grpc_clients.py tls PORT REQUEST CA TOKEN
       grpc_clients.py full PORT REQUEST
       grpc_clients.py stop PORT REQUEST PID

REQUEST is a file with an ExportProfilesServiceRequest. stop ends the server while a call is half sent.
"""
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../unit/backend"))
HOST, REQUEST = "localhost:" + sys.argv[2], open(sys.argv[3], "rb").read()
EXPORT = "/opentelemetry.proto.collector.%s/Export"
PROFILES = EXPORT % "profiles.v1development.ProfilesService"


def call(channel, path, data, **options):
    import grpc
    method = channel.unary_unary(path, request_serializer=bytes, response_deserializer=bytes)
    try:
        return "OK", method(data, timeout=20, **options)
    except grpc.RpcError as e:
        return e.code().name, e.details()


def expect(code, answer, says=None):
    if answer[0] != code or (says is not None and (answer[1] != says if code == "OK" else says not in answer[1])):
        sys.exit("%s %r, expected %s %r" % (*answer, code, says))


def plain():
    import grpc
    for compression in (grpc.Compression.NoCompression, grpc.Compression.Gzip):
        with grpc.insecure_channel(HOST, compression=compression) as channel:
            expect("OK", call(channel, PROFILES, REQUEST), b"")
            for signal_service in ("logs.v1.LogsService", "metrics.v1.MetricsService", "trace.v1.TraceService"):
                expect("OK", call(channel, EXPORT % signal_service, b""), b"")
            expect("INVALID_ARGUMENT", call(channel, PROFILES, REQUEST[:-1]), "byte")
            expect("INVALID_ARGUMENT", call(channel, PROFILES, REQUEST, metadata=[("otlp-profiles-development-version", "2")]), "version")
            expect("RESOURCE_EXHAUSTED", call(channel, PROFILES, bytes(33 << 20)), "larger than 33554432")
            expect("UNIMPLEMENTED", call(channel, EXPORT % "profiles.v2.ProfilesService", REQUEST), "unknown service")
            expect("UNIMPLEMENTED", call(channel, PROFILES + "All", REQUEST), "unknown method")
            expect("OK", call(channel, "/grpc.health.v1.Health/Check", b""), b"\x08\x01")
            expect("NOT_FOUND", call(channel, "/grpc.health.v1.Health/Check", b"\x0a\x01x"), "unknown service")
            expect("OK", call(channel, PROFILES, REQUEST), b"")


def full():
    import grpc
    with grpc.insecure_channel(HOST) as channel:
        expect("UNAVAILABLE", call(channel, PROFILES, REQUEST), "could not be kept")


def tls():
    import grpc
    credentials = grpc.ssl_channel_credentials(open(sys.argv[4], "rb").read())
    with grpc.secure_channel(HOST, credentials, compression=grpc.Compression.Gzip) as channel:
        expect("UNAUTHENTICATED", call(channel, PROFILES, REQUEST), "token is needed")
        expect("UNAUTHENTICATED", call(channel, PROFILES, REQUEST, metadata=[("authorization", "Bearer wrong")]), "not a token")
        expect("UNAUTHENTICATED", call(channel, PROFILES, bytes(8 << 20)), "token is needed")
        token = [("authorization", "Bearer " + sys.argv[5])]
        expect("OK", call(channel, PROFILES, REQUEST, metadata=token), b"")
        expect("RESOURCE_EXHAUSTED", call(channel, PROFILES, bytes(33 << 20), metadata=token), "larger")
        large = REQUEST + b"\x0a\x00" * (4 << 20)  # of many records
        expect("OK", call(channel, PROFILES, large, metadata=token, compression=grpc.Compression.NoCompression), b"")
        expect("OK", call(channel, "/grpc.health.v1.Health/Check", b""), b"\x08\x01")
    with grpc.insecure_channel(HOST) as channel:
        expect("UNAVAILABLE", call(channel, PROFILES, REQUEST), "")


def stop():
    from h2_client import Client, END_STREAM, DATA, frame, headers_of, message
    body = message(REQUEST)
    with Client(int(sys.argv[2])) as client, Client(int(sys.argv[2])) as idle:
        idle.settle()
        watched = client.call(headers_of("/grpc.health.v1.Health/Watch"), message(b""))
        half = client.call(body=body[:50], end=False)
        client.settle()
        os.kill(int(sys.argv[4]), signal.SIGTERM)
        while client.last_stream != half:  # GOAWAY: at first of no stream, then from the next one on
            if not client.read_frame():
                sys.exit("connection closed under a call; GOAWAY %s, last stream %s" % (client.goaway, client.last_stream))
        client.send(frame(DATA, END_STREAM, half, body[50:]))
        s, w = client.wait(half), client.wait(watched)
        if s.status != 0 or s.data != message(b""):
            sys.exit("call under way at the stop: %s %r" % (s.blocks, s.data))
        if w.data != message(b"\x08\x01") + message(b"\x08\x02") or w.status != 14:
            sys.exit("watch at the stop: %r %s" % (w.data, w.blocks))
        if client.wait_closed() != 0 or idle.wait_closed() != 0:
            sys.exit("GOAWAY %s and %s" % (client.goaway, idle.goaway))


{"full": full, "plain": plain, "tls": tls, "stop": stop}[sys.argv[1]]()
