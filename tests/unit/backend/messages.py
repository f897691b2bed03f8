# SPDX-License-Identifier: Apache-2.0
"""OTLP messages encoded by hand after the protobuf specification, so that nothing of hearth checks itself."""
import struct


def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def packed(number, values):
    return field(number, b"".join(varint(v) for v in values))


def key_value(key, value):
    return field(1, key) + field(2, field(3 if isinstance(value, int) else 1, value))


def sample(attributes, events, stack=1):
    times = field(5, b"".join(struct.pack("<Q", 1700000000000000000 + i) for i in range(events)))
    return field(1, stack) + packed(2, attributes) + times


STRINGS = ["", "samples", "count", "cpu", "nanoseconds", "process.executable.name", "profile.frame.type", "main", "thread.name"]
# attribute 1: executable "worker", 2 and 3: frame types, 4: another key, 5: an empty executable
ATTRIBUTES = [(0, None), (5, "worker"), (6, "native"), (6, "kernel"), (8, "worker"), (5, "")]


def dictionary(extra_string=""):
    out = field(1, b"")
    locations = [b"",
                 field(3, field(1, 1)) + field(3, field(1, 1)) + packed(4, [2]),  # native, two lines
                 field(2, 4096) + packed(4, [3]),                                 # kernel, no line
                 field(2, 8192)]                                                  # says nothing
    out += b"".join(field(2, location) for location in locations)
    out += field(3, b"") + field(3, field(1, 7))
    out += field(4, b"")
    out += b"".join(field(5, s) for s in STRINGS + [extra_string])
    for key, value in ATTRIBUTES:
        out += field(6, field(1, key) + field(2, field(1, value)) if value is not None else b"")
    out += field(7, b"") + field(7, packed(1, [1, 2, 3]))
    return field(2, out)


def profile(samples):
    head = field(1, field(1, 1) + field(2, 2)) + b"".join(field(2, s) for s in samples)
    head += b"\x19" + struct.pack("<Q", 1700000000000000000) + field(4, 10**9)
    return head + field(5, field(1, 3) + field(2, 4)) + field(6, 50000000)


def resource(attributes, scopes):
    out = field(1, b"".join(field(1, key_value(k, v)) for k, v in attributes))
    return field(1, out + b"".join(field(2, field(1, b"") + b"".join(field(2, p) for p in profiles)) for profiles in scopes))


def request(attributes=(("container.id", "box"),), padding=0):
    return resource(attributes, [[profile([sample([1, 4], 2)])]]) + dictionary("x" * padding)


def nested(depth):
    value = field(1, "leaf")
    for _ in range(depth):
        value = field(5, field(1, value))
    return field(1, field(1, field(1, field(1, "k") + field(2, value))))
