#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the stacks of a perf recording as check.py wants them, for comparison.

usage: perf_stacks.py PERF.DATA FOLDER

Only processes that run a program of FOLDER. perf tells places in files; here they become the addresses that the files have. The
format is that of capture.py; perf does not say when a stack is truncated."""
import functools
import os
import re
import struct
import subprocess
import sys

MAPPED = re.compile(r".*PERF_RECORD_MMAP2 (\d+)/\d+: .* (/.*)$")
SAMPLE = re.compile(r"(?:\S.*? +)?(\d+)/\d+ *$")
FRAME = re.compile(r"\s+([0-9a-f]+) (.*) \((.*)\)$")
KERNEL_FROM = 1 << 63


@functools.cache
def segments(path):
    """(file offset, size, address) of what an ELF file has loaded; () for anything else."""
    try:
        with open(path, "rb") as f:
            header = f.read(64)
            if header[:5] != b"\x7fELF\x02":
                return ()
            at, size, count = struct.unpack_from("<Q", header, 32)[0], *struct.unpack_from("<HH", header, 54)
            f.seek(at)
            table = f.read(size * count)
    except OSError:
        return ()
    found = []
    for i in range(count):
        kind, _, offset, address, _, file_bytes = struct.unpack_from("<IIQQQQ", table, i * size)
        if kind == 1:
            found.append((offset, file_bytes, address))
    return tuple(found)


def in_file(path, offset):
    return next((address + offset - start for start, size, address in segments(path) if start <= offset < start + size), offset)


def frame_of(ip, name, module):
    name = "" if name == "[unknown]" else re.split(r"\+0x|@", name)[0]
    return f"kernel||{name}" if ip >= KERNEL_FROM else f"{module}|{in_file(module, ip):#x}|{name}"


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    folder = os.path.realpath(sys.argv[2])
    script = subprocess.Popen(["perf", "script", "-i", sys.argv[1], "--show-mmap-events", "--no-inline", "-F", "comm,pid,tid,ip,sym,dso"],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors="replace")
    programs, current, frames = {}, None, []
    for line in script.stdout:
        mapped, frame = MAPPED.match(line), FRAME.match(line)
        if mapped:
            if os.path.dirname(mapped[2]) == folder and ".so" not in mapped[2]:
                programs[mapped[1]] = mapped[2]
        elif frame:
            frames.append(frame_of(int(frame[1], 16), frame[2], frame[3]))
        elif line.strip():
            found = SAMPLE.match(line.rstrip())
            current = programs.get(found[1]) if found else None
        else:
            if current:
                print(1, current, "-", *reversed(frames), sep="\t")
            current, frames = None, []
    return script.wait()


if __name__ == "__main__":
    sys.exit(main())
