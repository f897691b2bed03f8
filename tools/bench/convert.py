# SPDX-License-Identifier: Apache-2.0
"""Converting a capture of ten million samples and 100,000 distinct stacks: samples a second into pprof, the time of a picture and of
a page; and rewriting the pprof file beside `go tool pprof -proto`, which does the same. The capture is made here, byte by byte."""
import os
import random
import resource
import shutil
import struct
import subprocess
import tempfile

from measure import QUICK, fail, figure, median, note

SAMPLES, STACKS, FUNCTIONS, THREADS = (1_000_000 if QUICK else 10_000_000), 100_000, 2000, 50
PERIOD, START = 10101010, 1_700_000_000_000_000_000


def varint(n):
    out = bytearray()
    while n >= 0x80:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def number(field, n):
    return varint(field << 3) + varint(n)


def part(field, *data):
    data = b"".join(data)
    return varint(field << 3 | 2) + varint(len(data)) + data


def packed(field, numbers):
    return part(field, *map(varint, numbers))


def make(path):
    """OTLP ProfilesData: stacks of 12 to 40 frames, the 10 outermost the same; samples dealt out evenly, with a time each."""
    dice = random.Random(1)
    texts = [b"", b"samples", b"count", b"cpu", b"nanoseconds", b"thread.name", b"profile.frame.type", b"/usr/lib/libx.so"]
    roots = [dice.randrange(1, FUNCTIONS) for _ in range(10)]
    d = [part(1), part(1, number(4, 7)), part(2)]
    d += [part(2, number(1, 1), number(2, 4096 + 16 * i), part(3, number(1, i + 1), number(2, i % 500 + 1)), packed(4, [1]))
          for i in range(FUNCTIONS)]
    d += [part(3)] + [part(3, number(1, len(texts) + i)) for i in range(FUNCTIONS)]
    d += [part(4)] + [part(5, t) for t in texts] + [part(5, b"function_number_%d" % i) for i in range(FUNCTIONS)]
    d += [part(6), part(6, number(1, 6), part(2, part(1, b"native")))]
    d += [part(6, number(1, 5), part(2, part(1, b"thread-%d" % i))) for i in range(THREADS)] + [part(7)]
    d += [part(7, packed(1, [dice.randrange(1, FUNCTIONS + 1) for _ in range(dice.randrange(2, 30))] + roots)) for _ in range(STACKS)]
    each = SAMPLES // STACKS
    samples = [part(2, number(1, i + 1), packed(2, [2 + i % THREADS]),
                    part(5, struct.pack(f"<{each}Q", *range(START + i * each * 997, START + (i + 1) * each * 997, 997))))
               for i in range(STACKS)]
    profile = part(2, part(1, number(1, 1), number(2, 2)), *samples, varint(3 << 3 | 1), struct.pack("<Q", START),
                   number(4, SAMPLES * 1000), part(5, number(1, 3), number(2, 4)), number(6, PERIOD))
    with open(path, "wb") as f:
        f.write(part(1, part(1), part(2, part(1), profile)) + part(2, *d))


def seconds(*command):
    """CPU time of the command, which other work on the machine disturbs less than its time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        fail(f"{' '.join(command)}: {done.stderr.decode(errors='replace')[-300:]}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def convert(host):
    hearth, rounds = host.hearth, 3
    with tempfile.TemporaryDirectory() as folder:
        source = f"{folder}/x.otlp"
        make(source)
        note(f"{SAMPLES:,} samples, {STACKS:,} stacks, {os.stat(source).st_size >> 20} MB of OTLP")
        took = {f: median(seconds(hearth, "convert", source, f"{folder}/x.{f}") for _ in range(rounds)) for f in ("pb.gz", "svg", "html")}
        figure("convert to pprof, million samples a CPU second", "M/s", SAMPLES / took["pb.gz"] / 1e6, bar=2, absolute=True, least=True)
        figure("convert to a picture (.svg), CPU time", "s", took["svg"], bar=1, absolute=True)
        figure("convert to a page (.html), CPU time", "s", took["html"], bar=1, absolute=True)
        if not shutil.which("go"):
            note("go is not here: nothing to compare with")
            return
        pairs = [(seconds(hearth, "convert", f"{folder}/x.pb.gz", f"{folder}/y.pb.gz"),
                  seconds("go", "tool", "pprof", "-proto", f"-output={folder}/z.pb.gz", f"{folder}/x.pb.gz")) for _ in range(rounds)]
        mine, other = (median(p[i] for p in pairs) for i in (0, 1))
        figure("pprof read and written again, against go tool pprof", "s", mine, other, bar=1)
