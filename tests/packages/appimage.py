#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that an AppImage, which may be another CPU's, has all files of a bundle, byte by byte, and what it needs besides.

usage: appimage.py APPIMAGE BUNDLE.tar.gz
"""
import os
import struct
import subprocess
import sys
import tarfile
import tempfile

app, bundle = sys.argv[1:]
with open(app, "rb") as f:
    head = f.read(64)
section_headers, size, count = struct.unpack_from("<Q", head, 40)[0], *struct.unpack_from("<HH", head, 58)
with tempfile.TemporaryDirectory() as folder:
    root = os.path.join(folder, "root")
    subprocess.run(["unsquashfs", "-q", "-n", "-o", str(section_headers + size * count), "-d", root, app], check=True, stdout=subprocess.DEVNULL)
    with tarfile.open(bundle) as tar:
        names = [m for m in tar if m.isfile()]
        for member in names:
            path = os.path.join(root, "usr", member.name.split("/", 1)[1])
            with open(path, "rb") as f:
                assert f.read() == tar.extractfile(member).read(), path
            assert os.stat(path).st_mode & 0o777 == member.mode & 0o755, path
    assert len(names) > 20
    for name in ("AppRun", "hearth.desktop", "hearth.svg", ".DirIcon"):
        assert os.path.exists(os.path.join(root, name)), name
    with open(os.path.join(root, "AppRun"), "rb") as f:
        machine = f.read(20)[18]
    assert machine == head[18], "AppRun is another CPU's"
    print("  AppImage: %.1f MB, for %s, %d files of the bundle" % (os.path.getsize(app) / 1e6, {62: "amd64", 183: "arm64"}[machine], len(names)))
