#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Good and bad gRPC calls and HTTP/2 frames against running servers; test_grpc.c starts them and this.

usage: grpc_requests.py PORT IMPATIENT_PORT

PORT takes messages up to 1 MiB and has 4 MiB for all. IMPATIENT_PORT as well, but gives a call 2.4 s, an idle connection
0.6 s, and has room for four connections. A profile whose resource says test.errno=N makes the sink fail with that error.
"""
from grpc_common import *
from grpc_frames import cuts, refused_at_once, resets, setting, shapes


# --- calls: one answer with a grpc-status each ---

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
    ("disk full", more(), message(request((("test.errno", errno.ENOSPC),))), UNAVAILABLE, "No space left"),
    ("sink broken", more(), message(request((("test.errno", errno.EPERM),))), INTERNAL, "passed on"),
    ("disk broken", more(), message(request((("test.errno", errno.EIO),))), UNAVAILABLE, "could not be kept"),
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


def calls():
    """Every call on one connection: whatever was wrong, the next one on it is served."""
    with Client(PORT) as client, Client(PORT) as neighbour:
        for name, headers, body, code, says in CALLS:
            check_call(name, client.wait(client.call(headers, body)), code, says)
            good(client, name)
            good(neighbour, name + ", on another connection")
        check(client.goaway is None, "GOAWAY %s after the calls" % client.goaway)
    print("%d calls" % len(CALLS))


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
        client.send(frame(99, 0, 0) * 200)
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


for test in (calls, shapes, resets, cuts, refused_at_once, truncated, truncated_messages, windows, memory, early_bytes, many_streams, pings, busy,
             ignored, cancelled, deadline, slow, no_memory, idle, crowded, watch, many_connections):
    run(test)
sys.exit(1 if failures else 0)
