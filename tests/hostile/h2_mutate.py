# SPDX-License-Identifier: Apache-2.0
"""Sound HTTP/2 sessions, in which bytes and frames are changed at random; of one seed the same ones."""
import gzip
import random
import struct
import time

from h2 import *  # noqa: F403
from h2 import Connection

SERVICE = "attacker mutated"
HONEST_EACH = 50
KINDS = list(range(10)) + [10, 16, 255]


def session():
    """A client that calls, pings, gives up a call, sends packed messages and leaves: a list of frames."""
    body, packed = message(samples(SERVICE, 3)), message(gzip.compress(samples(SERVICE, 3)), 1)
    encoded = block(EXPORT, ("grpc-encoding", "gzip"), ("grpc-timeout", "5S"))
    return [
        frame(SETTINGS, 0, 0, struct.pack(">HIHI", 3, 100, 4, 65535)), frame(WINDOW_UPDATE, 0, 0, b"\0\1\0\0"), frame(SETTINGS, ACK, 0),
        frame(HEADERS, END_HEADERS, 1, block()), frame(DATA, 0, 1, body[:40]), frame(DATA, END_STREAM, 1, body[40:]),
        frame(PING, 0, 0, b"recorded"),
        frame(HEADERS, 0, 3, encoded[:50]), frame(CONTINUATION, END_HEADERS, 3, encoded[50:]), frame(DATA, END_STREAM | PADDED, 3, b"\5" + packed + bytes(5)),
        frame(HEADERS, END_HEADERS | HAS_PRIORITY, 5, b"\0\0\0\0\x10" + block()), frame(WINDOW_UPDATE, 0, 5, b"\0\0\1\0"), frame(DATA, 0, 5, body[:60]),
        frame(RST_STREAM, 0, 5, b"\0\0\0\x08"),
        frame(HEADERS, END_HEADERS, 7, block(HEALTH + "Check")), frame(DATA, END_STREAM, 7, message(b"")),
        frame(HEADERS, END_HEADERS, 9, block(HEALTH + "Watch")), frame(DATA, END_STREAM, 9, message(b"")),
        frame(PRIORITY, 0, 7, b"\0\0\0\1\x20"), frame(HEADERS, END_HEADERS, 11, block()), frame(DATA, 0, 11, body),
        frame(HEADERS, END_HEADERS | END_STREAM, 11, literal("x-end", "1")), frame(GOAWAY, 0, 0, bytes(8)),
    ]


def change_head(r, f):
    """Another length, type, flags or stream."""
    length, kind, flags, stream = int.from_bytes(f[:3], "big"), f[3], f[4], int.from_bytes(f[5:9], "big")
    what = r.randrange(4)
    if what == 0:
        length = r.choice([0, 1, 4, 5, 8, 9, length + 1, max(length - 1, 0), 16384, 16385, 0xffffff])
    elif what == 1:
        kind = r.choice(KINDS)
    elif what == 2:
        flags = r.getrandbits(8)
    else:
        stream = r.choice([0, 1, 2, 3, 5, 7, 9, 11, 13, 0x7fffffff, 0x80000001])
    return frame(kind, flags, stream, f[9:], length)


def change_bytes(r, f):
    f = bytearray(f)
    for _ in range(r.choice([1, 1, 2, 8])):
        at = r.randrange(len(f))
        f[at] = r.choice([0, 0xff, 0x7f, 0x80, f[at] ^ 1 << r.randrange(8), r.getrandbits(8)])
    return bytes(f)


def mutate(r, frames):
    for _ in range(r.choice([1, 1, 2, 3, 6])):
        i, what = r.randrange(len(frames)), r.randrange(9)
        if what <= 2:
            frames[i] = change_bytes(r, frames[i])
        elif what <= 4:
            frames[i] = change_head(r, frames[i])
        elif what == 5:
            frames.insert(r.randrange(len(frames) + 1), frames[i])
        elif what == 6 and len(frames) > 2:
            del frames[i]
        elif what == 7:
            j = r.randrange(len(frames))
            frames[i], frames[j] = frames[j], frames[i]
        else:
            frames[i] = frames[i][: r.randrange(len(frames[i]) + 1)] if r.random() < 0.3 else frames[i] * r.choice([2, 30, 1000])
        frames = [f for f in frames if len(f) >= 9] or [frame(PING, 0, 0, bytes(8))]
    return frames


def send(server, r, data):
    """In pieces, as TCP may cut them; then the client has nothing more to say. The answers are read."""
    with Connection(server, opening=b"") as c:
        at = 0
        for _ in range(r.randrange(3)):
            piece = r.randrange(len(data) + 1)
            c.send(data[at : at + piece])
            at += piece
        c.send(data[at:])
        c.read(0.002 if r.random() < 0.8 else 0.05)


def run(server, seed, seconds):
    print(f"sessions that are changed at random: seed {seed}", flush=True)
    end, count = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        r = random.Random(f"{seed} {count}")
        try:
            send(server, r, PREFACE + b"".join(mutate(r, session())))
        except OSError as e:
            server.problem(f"session {count} of seed {seed}: {e!r}")
        count += 1
        if count % HONEST_EACH == 0:
            server.honest(f"after session {count} of seed {seed}")
            server.note_memory()
    print(f"{count} of them", flush=True)
