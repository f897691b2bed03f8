#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A file system that stops answering: usage: hanging_fs.py FOLDER FILE

Mounts a FUSE file system (include/uapi/linux/fuse.h, without libfuse) on FOLDER that holds one file, "program", with FILE's
content. The first opening of it is answered, as execve needs; every later one waits until this ends."""
import ctypes
import os
import struct
import sys

LOOKUP, FORGET, GETATTR, OPEN, READ, RELEASE, FLUSH, INIT, INTERRUPT, BATCH_FORGET = 1, 2, 3, 14, 15, 18, 25, 26, 36, 42
ENOENT, ENOSYS = 2, 38
FOREVER = 1 << 30
ROOT, PROGRAM = 1, 2
IN_HEADER = struct.Struct("<IIQQIIIHH")


class Server:
    def __init__(self, folder, path):
        with open(path, "rb") as f:
            self.content = f.read()
        self.opened = False
        self.fd = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        options = f"fd={self.fd},rootmode=40000,user_id=0,group_id=0,allow_other"
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.mount(b"hanging", folder.encode(), b"fuse.hanging", 0, options.encode()):
            sys.exit(f"hanging_fs.py: cannot mount: {os.strerror(ctypes.get_errno())}")

    def attributes(self, node):
        size = len(self.content) if node == PROGRAM else 0
        mode = 0o100755 if node == PROGRAM else 0o40755
        return struct.pack("<6Q10I", node, size, (size + 511) // 512, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)

    def answer(self, opcode, node, body):
        """The reply's body, an error number, or None for no reply."""
        if opcode == INIT:
            major, minor, readahead = struct.unpack_from("<III", body)
            return struct.pack("<IIIIHHIIHHI28x", major, min(minor, 31), readahead, 0, 16, 12, 65536, 1, 0, 0, 0)
        if opcode == LOOKUP:
            if body.rstrip(b"\0") != b"program":
                return ENOENT
            return struct.pack("<QQQQII", PROGRAM, 0, FOREVER, FOREVER, 0, 0) + self.attributes(PROGRAM)
        if opcode == GETATTR:
            return struct.pack("<QII", FOREVER, 0, 0) + self.attributes(node)
        if opcode == OPEN:
            if self.opened:
                return None
            self.opened = True
            return struct.pack("<QII", 1, 0, 0)
        if opcode == READ:
            _, offset, size = struct.unpack_from("<QQI", body)
            return self.content[offset : offset + size]
        if opcode in (FORGET, BATCH_FORGET, INTERRUPT):
            return None
        return b"" if opcode in (RELEASE, FLUSH) else ENOSYS

    def serve(self):
        while True:
            try:
                request = os.read(self.fd, 1 << 20)
            except OSError:  # unmounted
                return
            _, opcode, unique, node, *_ = IN_HEADER.unpack_from(request)
            reply = self.answer(opcode, node, request[IN_HEADER.size :])
            if isinstance(reply, int):
                os.write(self.fd, struct.pack("<IiQ", 16, -reply, unique))
            elif reply is not None:
                os.write(self.fd, struct.pack("<IiQ", 16 + len(reply), 0, unique) + reply)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    Server(sys.argv[1], sys.argv[2]).serve()
