#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes portable PDBs for images of .NET that have none, in which line N is the N-th byte of a method's instructions (IL).

usage: dotnet_pdb.py [--embed] FOLDER IMAGE...

So the runtime tells, as lines of its stack traces, where in a method it is, as exactly as it knows. Each PDB has the name and the id that
the image says. Images that say none, and files that are no images, are left out. --embed: each PDB is put into its image, packed, and the
image written to the FOLDER, in the place of what is there."""
import os
import struct
import sys
import zlib

LINES = 4096
TABLES, METHOD, DOCUMENT, METHOD_DEBUG = 64, 6, 0x30, 0x31


def compressed(value):
    return bytes([value]) if value < 0x80 else struct.pack(">H", value | 0x8000) if value < 0x4000 else struct.pack(">I", value | 0xC0000000)


class Image:
    """What a PDB has to know of an image: its id, the PDB's name, and the rows of each table."""

    def __init__(self, path):
        self.data = open(path, "rb").read()
        pe = self.word("I", 0x3C)
        if self.data[:2] != b"MZ" or self.data[pe:pe + 4] != b"PE\0\0":
            raise ValueError("no image")
        self.pe = pe
        self.directories = directories = pe + 24 + (112 if self.word("H", pe + 24) == 0x20B else 96)
        self.first = first = pe + 24 + self.word("H", pe + 20)
        self.sections = [struct.unpack_from("<IIII", self.data, first + 40 * i + 8) for i in range(self.word("H", pe + 6))]
        self.read_id(directories + 6 * 8)
        self.read_rows(self.at(self.word("I", self.at(self.word("I", directories + 14 * 8)) + 8)))

    def word(self, form, at):
        return struct.unpack_from("<" + form, self.data, at)[0]

    def at(self, rva):
        for _, start, size, offset in self.sections:
            if start <= rva < start + size:
                return offset + rva - start
        raise ValueError("no such address")

    def read_id(self, directory):
        at = self.at(self.word("I", directory))
        for entry in range(at, at + self.word("I", directory + 4), 28):
            _, stamp, _, minor, kind, size, _, offset = struct.unpack_from("<IIHHIIII", self.data, entry)
            if kind == 2 and minor == 0x504D:
                self.id = self.data[offset + 4:offset + 20] + struct.pack("<I", stamp)
                path = self.data[offset + 24:offset + size].split(b"\0")[0].decode()
                self.pdb = os.path.basename(path.replace("\\", "/"))
                return
        raise ValueError("no PDB")

    def with_pdb(self, pdb):
        """The image with the PDB behind its last section, which has become longer: the debug directory, and in it one entry more."""
        pack = zlib.compressobj(9, zlib.DEFLATED, -15)
        packed = b"MPDB" + struct.pack("<I", len(pdb)) + pack.compress(pdb) + pack.flush()
        aligned, file_aligned = self.word("I", self.pe + 56), self.word("I", self.pe + 60)
        last = max(range(len(self.sections)), key=lambda i: self.sections[i][1])
        _, start, _, offset = self.sections[last]
        if any(section[3] > offset for section in self.sections):
            raise ValueError("the last section is not the file's last")
        image = bytearray(self.data + b"\0" * (-len(self.data) % file_aligned))
        debug, place = self.directories + 6 * 8, len(image)
        rva = start + place - offset
        old = self.data[self.at(self.word("I", debug)):][:self.word("I", debug + 4)]
        behind = len(old) + 28
        image += old + struct.pack("<IIHHIIII", 0, 0, 0x100, 0x100, 17, len(packed), rva + behind, place + behind) + packed
        image += b"\0" * (-len(image) % file_aligned)
        size = len(image) - offset
        struct.pack_into("<IIII", image, self.first + 40 * last + 8, size, start, size, offset)
        struct.pack_into("<I", image, self.pe + 80, start + -(-size // aligned) * aligned)
        struct.pack_into("<II", image, debug, rva, behind)
        return bytes(image)

    def read_rows(self, root):
        at = root + 16 + self.word("I", root + 12) + 4
        tables = None
        for _ in range(self.word("H", at - 2)):
            end = self.data.index(b"\0", at + 8)
            if self.data[at + 8:end] == b"#~":
                tables = root + self.word("I", at)
            at += 8 + (end - at - 8 + 4 & ~3)
        self.there = self.word("Q", tables + 8)
        at, self.rows = tables + 24, {}
        for i in (i for i in range(TABLES) if self.there >> i & 1):
            self.rows[i] = self.word("I", at)
            at += 4


def points():
    """Sequence points: a line for each byte of IL, of one column."""
    text = compressed(0)
    for i in range(LINES):
        text += compressed(i > 0) + compressed(0) + compressed(1)
        text += b"\2\0" if i else compressed(1) + compressed(1)
    return text


def pdb_of(image, name):
    blobs = bytearray(b"\0")

    def blob(content):
        at = len(blobs)
        blobs.extend(compressed(len(content)) + content)
        return at

    document = blob(b"/" + compressed(0) + compressed(blob(b"il")) + compressed(blob(name.encode())))
    methods = image.rows.get(METHOD, 0)
    lines = blob(points())
    tables = struct.pack("<IBBBBQQ", 0, 2, 0, 4, 1, 1 << DOCUMENT | 1 << METHOD_DEBUG, 0) + struct.pack("<II", 1, methods)
    tables += struct.pack("<IHIH", document, 0, 0, 0) + struct.pack("<HI", 1, lines) * methods
    there = b"".join(struct.pack("<I", image.rows[i]) for i in sorted(image.rows))
    parts = [(b"#Pdb", image.id + struct.pack("<IQ", 0, image.there) + there), (b"#~", tables), (b"#Strings", b"\0"), (b"#US", b"\0"),
             (b"#GUID", b""), (b"#Blob", bytes(blobs))]
    head = struct.pack("<IHHII", 0x424A5342, 1, 1, 0, 12) + b"PDB v1.0\0\0\0\0" + struct.pack("<HH", 0, len(parts))
    start = len(head) + sum(8 + (len(name) + 4 & ~3) for name, _ in parts)
    heads, body = b"", b""
    for name, content in parts:
        content += b"\0" * (-len(content) % 4)
        heads += struct.pack("<II", start + len(body), len(content)) + name + b"\0" * (4 - len(name) % 4)
        body += content
    return head + heads + body


def main():
    args = sys.argv[1:]
    embeds = args[:1] == ["--embed"]
    folder, paths = (args[embeds:] or [""])[0], args[embeds + 1:]
    if not paths:
        sys.exit(__doc__)
    made = 0
    for path in paths:
        name = os.path.basename(path)
        try:
            image = Image(path)
            pdb = pdb_of(image, name)
            content = image.with_pdb(pdb) if embeds else pdb
        except (ValueError, struct.error, IndexError):
            continue
        to = os.path.join(folder, name if embeds else image.pdb)
        if os.path.lexists(to):
            os.unlink(to)  # it may be a link to the runtime's own
        with open(to, "wb") as f:
            f.write(content)
        made += 1
    print(f"{made} PDBs made")


main()
