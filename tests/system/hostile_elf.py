#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes hostile copies of an x86-64 program that still run: the kernel and the dynamic linker read the program headers, a
profiler reads the rest.

usage: hostile_elf.py KIND PROGRAM OUT      (hostile_elf.py --list: the kinds)
       hostile_elf.py --cut-under LIBRARY FUNCTION SECONDS
The last one maps the library's code, calls the function (which must use no data) for so long, and soon cuts the file off
right behind that code while it does.
"""
import ctypes
import mmap
import os
import random
import struct
import sys
import time

DEF_CFA, OFFSET_EXTENDED, SAME_VALUE, ADVANCE_LOC, DEF_CFA_EXPRESSION, REMEMBER = 0x0C, 0x05, 0x08, 0x40, 0x0F, 0x0A
RBX, RSP, RIP = 3, 7, 16


class Program:
    def __init__(self, path):
        with open(path, "rb") as f:
            self.data = bytearray(f.read())
        self.bytes = 0  # of the file, when it ends in a hole
        self.shoff, = struct.unpack_from("<Q", self.data, 40)
        _, self.shnum, names = struct.unpack_from("<HHH", self.data, 58)
        strings = self.header(names)[4]
        self.sections = {}
        for i in range(self.shnum):
            header = self.header(i)
            name = self.data[strings + header[0] :].split(b"\0", 1)[0].decode()
            self.sections[name] = i

    def header(self, i):  # name, type, flags, addr, offset, size, link, info, align, entsize
        return struct.unpack_from("<IIQQQQIIQQ", self.data, self.shoff + i * 64)

    def place(self, name):
        header = self.header(self.sections[name])
        return header[3], header[4], header[5]

    def lie(self, name, field, value):
        struct.pack_into("<Q", self.data, self.shoff + self.sections[name] * 64 + {"offset": 24, "size": 32}[field], value)

    def fill(self, name, content):
        _, offset, size = self.place(name)
        assert len(content) <= size, f"{name} has room for {size} bytes, not {len(content)}"
        self.data[offset : offset + size] = content + bytes(size - len(content))

    def frames(self, cie_program, fde_program):
        """.eh_frame says one thing of all code. Without an index, so that it is searched from the front."""
        text, _, size = self.place(".text")
        frames = self.place(".eh_frame")[0]
        self.fill(".eh_frame_hdr", bytes([1, 0x1B, 0xFF, 0xFF]) + struct.pack("<i", frames - self.place(".eh_frame_hdr")[0] - 4))
        cie = struct.pack("<I", 0) + b"\1zR\0" + uleb(1) + b"\x78" + uleb(RIP) + uleb(1) + b"\x1b" + cie_program
        cie = with_length(cie)
        here = frames + len(cie) + 8
        fde = struct.pack("<IiI", len(cie) + 4, text - here, size) + uleb(0) + fde_program
        self.fill(".eh_frame", cie + with_length(fde))


def uleb(n):
    out = bytearray()
    while True:
        out.append(n & 0x7F | (0x80 if n > 0x7F else 0))
        n >>= 7
        if not n:
            return bytes(out)


def with_length(body):
    body += bytes(-len(body) % 8 + 4)  # DW_CFA_nop
    return struct.pack("<I", len(body)) + body


USUAL = bytes([DEF_CFA]) + uleb(RSP) + uleb(8) + bytes([0x80 | RIP]) + uleb(1)
MANY_ROWS = bytes([ADVANCE_LOC | 3]) * 900  # another row after every three bytes of code


def registers(p, count):
    """rbx's rule is one that is left to libdw, which has room for as many registers as there may be by their numbers."""
    p.frames(USUAL + bytes([OFFSET_EXTENDED]) + uleb(count) + uleb(1) + bytes([SAME_VALUE]) + uleb(RBX), MANY_ROWS)


def registers_slow(p):
    """A register number that costs 128 MB and its copying at every row."""
    registers(p, 1 << 23)


def registers_2gb(p):
    registers(p, 1 << 27)


def expression_loop(p):
    """The CFA is found by a program that jumps back to its own start for ever."""
    p.frames(USUAL, bytes([DEF_CFA_EXPRESSION]) + uleb(3) + b"\x2f" + struct.pack("<h", -3))


def remember_bomb(p):
    """A state that is never taken back, at each of many instructions, over a large register file."""
    p.frames(USUAL + bytes([OFFSET_EXTENDED]) + uleb(1 << 19) + uleb(1), bytes([REMEMBER]) * 800)


def length_lies(p):
    """Lengths of 4 GB, 0 and 2^64, in this order."""
    p.fill(".eh_frame", struct.pack("<IIIIIQ", 0xFFFFFFF0, 0, 0, 0, 0xFFFFFFFF, 0xFFFFFFFFFFFFFFF0))


def size_lies(p):
    """Sections that reach far behind the end of the file, or over each other."""
    for name in p.sections:
        if name in (".symtab", ".strtab"):
            p.lie(name, "size", 2 << 30)
        elif name in (".eh_frame", ".eh_frame_hdr", ".dynsym", ".note.gnu.build-id"):
            p.lie(name, "offset", 64)
            p.lie(name, "size", (1 << 63) - 1)


def symbol_noise(p):
    for name in (".symtab", ".strtab"):
        p.fill(name, random.Random(name).randbytes(p.place(name)[2]))


def frame_noise(p):
    for name in (".eh_frame", ".eh_frame_hdr"):
        p.fill(name, random.Random(name).randbytes(p.place(name)[2]))


def no_headers(p):
    """Cut off in front of the section headers, whose place and number still stand."""
    del p.data[p.shoff :]


def many_sections(p):
    struct.pack_into("<HH", p.data, 60, 0xFFFE, 0xFFFD)


def sparse(p):
    """Symbols, their names and frames lie in a hole of 2 GB behind the end, which takes no room on the disk: all of it zeros."""
    end = (len(p.data) + 4095) // 4096 * 4096
    for i, name in enumerate((".symtab", ".strtab", ".eh_frame", ".eh_frame_hdr")):
        p.lie(name, "offset", end + (i << 29))
        p.lie(name, "size", 1 << 29)
    p.bytes = end + (2 << 30)


def cut_under(path, function, seconds):
    p = Program(path)
    text = p.header(p.sections[".text"])
    _, offset, size = p.place(".dynsym")
    _, strings, _ = p.place(".dynstr")
    for at in range(offset, offset + size, 24):
        name, _, _, _, value, _ = struct.unpack_from("<IBBHQQ", p.data, at)
        if p.data[strings + name :].startswith(function.encode() + b"\0"):
            break
    else:
        sys.exit(f"{path} has no function {function}")
    start = text[4] // 4096 * 4096
    length = (text[4] + text[5] + 4095) // 4096 * 4096 - start
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    with open(path, "rb") as f:
        code = libc.mmap(None, length, mmap.PROT_READ | mmap.PROT_EXEC, mmap.MAP_PRIVATE, f.fileno(), start)
    call = ctypes.CFUNCTYPE(ctypes.c_ulong, ctypes.c_ulong)(code + value - text[3] + text[4] - start)
    with open("/proc/self/comm", "w", encoding="ascii") as f:
        f.write("cut_under")
    begin = time.monotonic()
    is_cut = False
    while time.monotonic() < begin + seconds:
        call(1)
        if not is_cut and time.monotonic() > begin + 1:
            os.truncate(path, start + length)
            is_cut = True


KINDS = {
    f.__name__: f
    for f in (
        registers_slow, registers_2gb, expression_loop, remember_bomb, length_lies, size_lies, symbol_noise, frame_noise,
        no_headers, many_sections, sparse,
    )
}


def main():
    if sys.argv[1:] == ["--list"]:
        print(*KINDS, sep="\n")
    elif len(sys.argv) == 5 and sys.argv[1] == "--cut-under":
        cut_under(sys.argv[2], sys.argv[3], float(sys.argv[4]))
    elif len(sys.argv) == 4 and sys.argv[1] in KINDS:
        program = Program(sys.argv[2])
        KINDS[sys.argv[1]](program)
        with open(sys.argv[3], "wb") as f:
            f.write(program.data)
            f.truncate(program.bytes or len(program.data))
        os.chmod(sys.argv[3], 0o755)
    else:
        sys.exit(__doc__)


main()
