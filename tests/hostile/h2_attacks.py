#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Attacks on the gRPC port of a running `hearth serve`, frame by frame: h2_attacks.py PID URL PORT [--narrow URL PORT] [--seconds N] [--seed N]
[--most-mb N] [--only NAME]

After each attack, and while connections are held open, an honest client is answered within 5 s, and so is a question to the page; the
attack is counted where it was refused; the server's anonymous memory stays within so many MB; what was acknowledged is in the store at the
end. Then sessions that were sound before bytes and frames of them were changed at random (h2_mutate.py), for --seconds; --seed does the same
again. --narrow: a server with room for 40 connections, all of which are taken. --seconds 60 and more: attacks that take a minute as well.
"""
import argparse
import os
import random
import struct
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import h2_mutate  # noqa: E402
from h2 import *  # noqa: E402, F403
from h2 import Connection, Server  # noqa: E402

NARROW_CLIENTS = 60  # of the server with room for 40
WATCH = frame(HEADERS, END_HEADERS, 1, block(HEALTH + "Watch")) + frame(DATA, END_STREAM, 1, message(b""))
NO_PATH = literal(":method", "POST") + literal(":scheme", "http") + literal(":authority", "a")
CANCEL, MUCH = b"\0\0\0\x08", 20000


def counter(name):
    kind, reason = name.split(":")
    return {"cut": 'hearth_grpc_connections_cut_total{reason="%s"}', "rejected": 'hearth_rejected_requests_total{reason="%s"}'}[kind] % reason


def setting(number, value):
    return struct.pack(">HI", number, value)


def opened(stream=1, *more):
    return frame(HEADERS, END_HEADERS, stream, block(EXPORT, *more))


# --- a connection that is cut: name, what it sends, the counter ---

CUTS = [
    ("settings", frame(SETTINGS, 0, 0) * MUCH, "cut:flood"),
    ("settings that change windows", opened() + b"".join(frame(SETTINGS, 0, 0, setting(4, i)) for i in range(MUCH)), "cut:flood"),
    ("settings acknowledged for nothing", frame(SETTINGS, ACK, 0) * MUCH, "cut:protocol"),
    ("pings", frame(PING, 0, 0, bytes(8)) * MUCH, "cut:flood"),
    ("rapid reset", b"".join(opened(i) + frame(RST_STREAM, 0, i, CANCEL) for i in range(1, MUCH, 2)), "cut:flood"),
    ("rapid reset of whole calls", b"".join(call(i, message(b"")) + frame(RST_STREAM, 0, i, CANCEL) for i in range(1, MUCH, 2)), "cut:flood"),
    ("resets that we are made to send, by windows", b"".join(opened(i) + frame(WINDOW_UPDATE, 0, i, b"\x7f\xff\xff\xff")
                                                             for i in range(1, MUCH, 2)), "cut:flood"),
    ("resets that we are made to send, by headers", b"".join(frame(HEADERS, END_HEADERS | END_STREAM, i, NO_PATH)
                                                             for i in range(1, MUCH, 2)), "cut:flood"),
    ("resets that we are made to send, by length", b"".join(opened(i, ("content-length", "3")) + frame(DATA, END_STREAM, i, bytes(9))
                                                            for i in range(1, MUCH, 2)), "cut:flood"),
    ("empty pieces of headers", frame(HEADERS, 0, 1, block()) + frame(CONTINUATION, 0, 1) * MUCH, "cut:flood"),
    ("pieces of headers without end", frame(HEADERS, 0, 1, block()) + frame(CONTINUATION, 0, 1, literal("x", "y" * 200) * 75) * 400, "cut:flood"),
    ("pieces of one header without end", frame(HEADERS, 0, 1, block() + b"\0\x01x\x7f\x80\x80\x80\x04") + frame(CONTINUATION, 0, 1, b"y" * 16000) * 400,
     "cut:protocol"),
    ("window beyond 2 GiB", frame(WINDOW_UPDATE, 0, 0, b"\x7f\xff\xff\xff"), "cut:protocol"),
    ("window updates", opened() + frame(WINDOW_UPDATE, 0, 1, b"\0\0\0\1") * MUCH, "cut:flood"),
    ("window update of nothing", frame(WINDOW_UPDATE, 0, 0, bytes(4)), "cut:protocol"),
    ("priorities in a loop", b"".join(frame(PRIORITY, 0, i, struct.pack(">IB", i % 9 + 2, 255)) for i in range(1, 10, 2)) * (MUCH // 4), "cut:flood"),
    ("priority of itself", opened() + frame(PRIORITY, 0, 1, b"\0\0\0\1\0") * MUCH, "cut:flood"),
    ("HPACK: a header of 4 KB, 8,000 times", frame(HEADERS, END_HEADERS, 1, block() + literal("x", "y" * 4000, b"\x40") + b"\xbe" * 8000), "cut:flood"),
    ("HPACK: index 0", frame(HEADERS, END_HEADERS, 1, block() + b"\x80"), "cut:protocol"),
    ("HPACK: index of nothing", frame(HEADERS, END_HEADERS, 1, block() + b"\xff\xff\x03"), "cut:protocol"),
    ("HPACK: an index of 2^70", frame(HEADERS, END_HEADERS, 1, block() + b"\xff" + b"\xff" * 9 + b"\x01"), "cut:protocol"),
    ("HPACK: a table of 2^28 bytes", frame(HEADERS, END_HEADERS, 1, b"\x3f\xe1\xff\xff\x7f" + block()), "cut:protocol"),
    ("HPACK: a table that changes within headers", frame(HEADERS, END_HEADERS, 1, block() + b"\x20"), "cut:protocol"),
    ("HPACK: Huffman's end of text", frame(HEADERS, END_HEADERS, 1, block() + b"\0\x01x\x84\xff\xff\xff\xff"), "cut:protocol"),
    ("HPACK: a text longer than its frame", frame(HEADERS, END_HEADERS, 1, block() + b"\0\x01x\x7f\xff\x7f"), "cut:protocol"),
    ("headers of 100 KB", frame(HEADERS, 0, 1, block()) + frame(CONTINUATION, 0, 1, literal("x", "y" * 16000)) * 6 + frame(CONTINUATION, END_HEADERS, 1),
     "cut:flood"),
    ("DATA of no stream", frame(DATA, 0, 7, b"abc"), "cut:protocol"),
    ("DATA behind a reset", opened() + frame(RST_STREAM, 0, 1, CANCEL) + frame(DATA, 0, 1, bytes(16384)) * 2400, "cut:flood"),
    ("DATA behind its end", opened() + frame(DATA, END_STREAM, 1, message(b"")[:4]) + frame(DATA, 0, 1, b"x"), "cut:protocol"),
    ("HEADERS behind the end", opened() + frame(DATA, END_STREAM, 1, message(b"")[:4]) + opened(), "cut:protocol"),
    ("streams behind newer ones", opened(9) + opened(3) * MUCH, "cut:flood"),
    ("padding longer than its frame", opened() + frame(DATA, PADDED, 1, b"\xffabc"), "cut:protocol"),
    ("padding longer than its headers", frame(HEADERS, END_HEADERS | PADDED, 1, b"\xff" + block()[:30]), "cut:protocol"),
    ("padding alone", opened() + frame(DATA, PADDED, 1, b"\xff" + bytes(255)) * MUCH, "cut:flood"),
    ("a frame beyond the limit", opened() + frame(DATA, 0, 1, bytes(16385)), "cut:protocol"),
    ("a frame that says it has 16 MiB", opened() + frame(DATA, 0, 1, bytes(100), length=0xffffff), "cut:protocol"),
    ("SETTINGS of 6 MB", frame(SETTINGS, 0, 0, b"", length=6000000), "cut:protocol"),
    ("GOAWAYs", frame(GOAWAY, 0, 0, bytes(8)) * MUCH, "cut:flood"),
    ("pushed by a client", opened() + frame(PUSH_PROMISE, END_HEADERS, 1, b"\0\0\0\2" + block()), "cut:protocol"),
    ("unknown frames", frame(200, 255, 1, bytes(50)) * MUCH, "cut:flood"),
    ("frames of extensions", b"".join(frame(kind, 0, 0, b"\0\0\0\1u=1") for kind in (10, 12, 16)) * MUCH, "cut:flood"),
]
OPENINGS = [  # the first bytes
    ("HTTP/1.1", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n" * 100),
    ("HTTP/1.1 that asks for HTTP/2", b"POST " + EXPORT.encode() + b" HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
     b"HTTP2-Settings: AAMAAABkAAQAAP__\r\nContent-Length: 0\r\n\r\n" + PREFACE + frame(SETTINGS, 0, 0)),
    ("TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500)),
    ("a preface and a half", PREFACE + PREFACE[:12]),
    ("frames without a preface", frame(SETTINGS, 0, 0) + opened()),
    ("calls before SETTINGS", PREFACE + call(1, message(b""))),
]


def check_cut(server, name, connection, seconds=8):
    connection.read(seconds, lambda c: False)
    if not connection.is_over:
        server.problem(f"{name}: is not cut: {[f[:3] for f in connection.frames][:20]}")


def attacks_of_cuts():
    for name, data, counted in CUTS:
        def run(server, name=name, data=data):
            with Connection(server) as c:
                c.send(data)
                check_cut(server, name, c)
        yield name, run, counted
    for name, data in OPENINGS:
        def run_opening(server, name=name, data=data):
            with Connection(server, opening=data) as c:
                check_cut(server, name, c)
        yield name, run_opening, "cut:protocol"


# --- a stream alone is refused, or nothing ---


def acked(server, c, stream, service, count=3):
    """A sound call in the middle of an attack: what of it is acknowledged must be kept."""
    c.send(call(stream, message(samples(service, count))))
    c.read(5, lambda c: c.has_ended(stream))
    if c.is_good(stream):
        server.acknowledge(service, count)
    return c.is_good(stream)


def large_headers(server):
    """More headers than are taken, fewer than a flood: an answer, and the connection serves on."""
    with Connection(server) as c:
        c.send(frame(HEADERS, 0, 1, block()) + frame(CONTINUATION, 0, 1, literal("x", "y" * 15000)) + frame(CONTINUATION, END_HEADERS, 1, literal("x", "y" * 5000)))
        c.read(5, lambda c: c.has_ended(1))
        if not acked(server, c, 3, "attacker headers"):
            server.problem("large headers: the connection does not serve on")


def trailers_first(server):
    with Connection(server) as c:
        c.send(frame(HEADERS, END_HEADERS | END_STREAM, 1, literal("grpc-status", "0")))
        c.read(5, lambda c: c.has_ended(1))
        if not acked(server, c, 3, "attacker trailers"):
            server.problem("trailers first: the connection does not serve on")


def goaway_in_the_middle(server):
    """Who says that it goes, within a call: that call is answered, and further ones of its own."""
    with Connection(server) as c:
        body = message(samples("attacker goaway", 3))
        c.send(opened() + frame(DATA, 0, 1, body[:20]) + frame(GOAWAY, 0, 0, bytes(8)) + frame(DATA, END_STREAM, 1, body[20:]))
        c.read(5, lambda c: c.has_ended(1))
        if c.is_good(1):
            server.acknowledge("attacker goaway", 3)
        else:
            server.problem(f"GOAWAY in the middle: the call under way is lost: {c.frames}")


def too_many_streams(server):
    """300 more than a connection may have, before its client can know how many these are: refused, and the others are served."""
    with Connection(server) as c:
        c.send(b"".join(opened(i) for i in range(1, 800, 2)))
        c.read(5, lambda c: len(c.frames) > 300)
        refused = [f for f in c.frames if f[0] == RST_STREAM and f[3] == b"\0\0\0\7"]
        if not 200 <= len(refused) <= 300:
            server.problem(f"400 streams of 100: {len(refused)} are refused")


def overflow_of_a_stream(server):
    with Connection(server) as c:
        c.send(opened(1) + frame(WINDOW_UPDATE, 0, 1, b"\x7f\xff\xff\xff"))
        c.send(opened(3) + frame(WINDOW_UPDATE, 0, 3, b"\x7f\xff\0\0") + frame(SETTINGS, 0, 0, setting(4, 0x7ffffff0)) + frame(SETTINGS, 0, 0, setting(4, 65535)))
        c.read(5, lambda c: c.has_ended(1) and c.has_ended(3))
        if not acked(server, c, 5, "attacker overflow"):
            server.problem("window of a stream beyond 2 GiB: the connection does not serve on")


def reset_behind_whole_calls(server):
    """Calls that are whole, and given up by their client at once: they may be kept or not."""
    with Connection(server) as c:
        for i in range(1, 100, 2):
            c.send(call(i, message(samples("attacker reset", 3))) + frame(RST_STREAM, 0, i, CANCEL))
        acked(server, c, 201, "attacker reset")


def hold(server, name, count, data, settings=b"", receive_bytes=None):
    """@count connections that sent @data and stay; meanwhile others are served."""
    held = [Connection(server, settings, receive_bytes=receive_bytes) for _ in range(count)]
    for c in held:
        c.send(data)
    time.sleep(0.2)
    server.note_memory()
    server.honest(f"while {name}")
    server.ask_page(f"while {name}")
    return held


def let_go(held):
    for c in held:
        c.close()


def many_streams(server):
    """12,000, of which all have half a message, where 10,000 may be."""
    half = message(samples("attacker never", 3))[:60]
    let_go(hold(server, "12,000 streams are open", 120, b"".join(opened(i) + frame(DATA, 0, i, half) for i in range(1, 200, 2))))


def zero_windows(server):
    """2,000 answers that nobody lets us send."""
    body = message(b"")
    let_go(hold(server, "2,000 answers wait for a window", 20, b"".join(call(i, body) for i in range(1, 200, 2)), setting(4, 0)))


def half_headers(server):
    let_go(hold(server, "headers do not end", 100, frame(HEADERS, 0, 1, block())))


def unread_answers(server):
    """Answers and pings that a client does not read, whose buffers are small."""
    data = b"".join(call(i, message(b""), EXPORT + "s") for i in range(1, 200, 2)) + frame(PING, 0, 0, bytes(8)) * 300
    let_go(hold(server, "answers are not read", 50, data, receive_bytes=2048))


SINGLE = [
    ("headers of 20 KB", large_headers, "rejected:too large"),
    ("trailers first", trailers_first, "rejected:incomplete"),
    ("GOAWAY in the middle", goaway_in_the_middle, None),
    ("too many streams", too_many_streams, "rejected:too many calls"),
    ("window of a stream beyond 2 GiB", overflow_of_a_stream, "rejected:incomplete"),
    ("whole calls that are reset", reset_behind_whole_calls, None),
    ("10,000 streams", many_streams, "rejected:too many calls"),
    ("windows of zero", zero_windows, None),
    ("headers that do not end", half_headers, "rejected:incomplete"),
    ("answers that are not read", unread_answers, "rejected:unknown path"),
]


# --- all connections are taken ---


class Crowd(threading.Thread):
    """More clients than there is room for, which come again as soon as they are cut; each sends @drop each quarter of a second."""

    def __init__(self, server, first, drop=b"", settings=b""):
        super().__init__(daemon=True)
        self.server, self.first, self.drop, self.settings = server, first, drop, settings
        self.is_ended, self.held = False, []

    def client(self):
        c = Connection(self.server, self.settings, acks=False)
        c.send(self.first)
        return c

    def run(self):
        self.held = [self.client() for _ in range(NARROW_CLIENTS)]
        while not self.is_ended:
            for i, c in enumerate(self.held):
                c.send(self.drop)
                c.read(0.001)
                if c.is_over:
                    c.close()
                    self.held[i] = self.client()
            time.sleep(0.25)
        let_go(self.held)


CROWDS = [
    ("who say nothing", b"", b"", b""),
    ("who watch", WATCH, b"", b""),
    ("whose headers do not end", frame(HEADERS, 0, 1, block()), b"", b""),
    ("whose messages do not come", opened(), b"", b""),
    ("whose messages come by bytes", opened() + frame(DATA, 0, 1, b"\0\0\x10\0\0"), frame(DATA, 0, 1, b"x"), b""),
    ("who let no answer out", b"".join(call(i, message(b"")) for i in range(1, 20, 2)), b"", setting(4, 0)),
]


def crowds(server, rounds, only):
    for name, first, drop, settings in (crowd for crowd in CROWDS if only in crowd[0]):
        before = server.counters().get(counter("cut:room"), 0)
        crowd = Crowd(server, first, drop, settings)
        crowd.start()
        time.sleep(1)
        for _ in range(rounds):
            server.honest(f"all connections are taken by clients {name}")
        crowd.is_ended = True
        crowd.join()
        time.sleep(0.1)
        if server.counters().get(counter("cut:room"), 0) <= before:
            server.problem(f"all connections are taken by clients {name}: nobody is cut for others, or it is not counted")
        print(f"all connections taken by clients {name}: slowest honest answer so far {server.slowest:.2f} s", flush=True)


# --- a minute each ---


def held_for_long(server):
    """Headers without end, answers without a window and answers that are not read, for as long as the server bears them."""
    before = server.counters()
    names = {"rejected:too slow": 0, "cut:slow": 0}
    held = [Connection(server) for _ in range(5)]
    for c in held:
        c.send(frame(HEADERS, 0, 1, block()))
    deaf = [Connection(server, setting(4, 0)) for _ in range(5)]
    for c in deaf:
        c.send(call(1, message(b"")))
    silent = [Connection(server, opening=PREFACE) for _ in range(5)]
    for _ in range(75):
        time.sleep(1)
        server.honest("while others are held for long")
    after = server.counters()
    for name in names:
        if after[counter(name)] <= before.get(counter(name), 0):
            server.problem(f"held for long: {name} is not counted")
    for c in deaf:
        c.read(1, lambda c: c.has_ended(1))
        if not c.is_over and not c.has_ended(1):
            server.problem("an answer without a window is not taken back")
    let_go(held + deaf + silent)


LONG = [("connections that are held for long", held_for_long, None)]


# --- all of it ---


def attack(server, name, run, counted):
    before = server.counters()
    began = time.monotonic()
    try:
        run(server)
    except OSError as e:
        server.problem(f"{name}: {e!r}")
    server.honest(f"after {name}")
    server.note_memory()
    took = time.monotonic() - began
    if counted:
        key, end = counter(counted), time.monotonic() + 3
        while server.counters().get(key, 0) <= before.get(key, 0) and time.monotonic() < end:
            time.sleep(0.05)
        if server.counters().get(key, 0) <= before.get(key, 0):
            server.problem(f"{name}: {key} does not count it")
    if took > 2:
        print(f"{name}: {took:.1f} s", flush=True)


def keep_asking(server, stop):
    while not stop.wait(0.25):
        server.honest("beside the attacks", "honest beside")


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("server", nargs=3)
    parser.add_argument("--narrow", nargs=3, metavar=("PID", "URL", "PORT"))
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32))
    parser.add_argument("--most-mb", type=float, default=64)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    server = Server(*args.server)
    servers = [server]
    for _ in range(20):
        server.honest("at the beginning")
    before, stop = server.note_memory(), threading.Event()
    beside = threading.Thread(target=keep_asking, args=(server, stop))
    beside.start()
    rows = [r for r in [*attacks_of_cuts(), *SINGLE, *(LONG if args.seconds >= 60 else [])] if args.only in r[0]]
    for row in rows:
        attack(server, *row)
    print(f"{len(rows)} attacks", flush=True)
    if args.narrow:
        servers.append(Server(*args.narrow))
        crowds(servers[1], 2 if args.seconds < 60 else 20, args.only)
    h2_mutate.run(server, args.seed, args.seconds)
    stop.set()
    beside.join()
    server.ask_page("at the end")
    for s in servers:
        s.check_kept()
    print(f"slowest honest answer {max(s.slowest for s in servers):.2f} s, {sum(s.refused for s in servers)} were told to come again; acknowledged and kept {sum(sum(s.acknowledged.values()) for s in servers)} samples; "
          f"anonymous memory {before / 1e6:.1f} MB before, {server.most_bytes / 1e6:.1f} at most, {server.note_memory() / 1e6:.1f} at the end", flush=True)
    if server.most_bytes - before > args.most_mb * 1e6:
        server.problem(f"the attacks took {(server.most_bytes - before) / 1e6:.1f} MB")
    sys.exit(any(s.problems for s in servers))


if __name__ == "__main__":
    main()
