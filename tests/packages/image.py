#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks an OCI layout in a tar: every reference leads to a blob of that size and sum, each image says its CPU and has hearth of it.

usage: image.py TAR [FOLDER ARCH]      unpacks the root of that CPU's image into FOLDER
"""
import gzip
import hashlib
import io
import json
import sys
import tarfile

MACHINES = {"amd64": 62, "arm64": 183}
layout = tarfile.open(sys.argv[1])


def read(name):
    return layout.extractfile(name).read()


def blob(ref):
    data = read("blobs/" + ref["digest"].replace(":", "/"))
    assert len(data) == ref["size"] and "sha256:" + hashlib.sha256(data).hexdigest() == ref["digest"], ref
    return data


assert json.loads(read("oci-layout")) == {"imageLayoutVersion": "1.0.0"}
todo = list(json.loads(read("index.json"))["manifests"])
seen = []
while todo:
    ref = todo.pop()
    value = json.loads(blob(ref))
    if "manifests" in value:
        todo += value["manifests"]
        continue
    config = json.loads(blob(value["config"]))
    arch = config["architecture"]
    assert config["os"] == "linux" and config["config"]["Entrypoint"] == ["/opt/hearth/bin/hearth"]
    assert config["config"]["Labels"]["org.opencontainers.image.title"] == "hearth"
    assert "licenses" in " ".join(config["config"]["Labels"]) and "User" not in config["config"]
    packed = blob(value["layers"][0])
    root = gzip.decompress(packed)
    assert config["rootfs"]["diff_ids"] == ["sha256:" + hashlib.sha256(root).hexdigest()]
    with tarfile.open(fileobj=io.BytesIO(root)) as tar:
        names = tar.getnames()
        assert not any(n.endswith(("/sh", "/bash")) for n in names), "a shell"
        for name in ("opt/hearth/bin/hearth", "opt/hearth/lib/hearth", "opt/hearth/lib/ld.so"):
            head = tar.extractfile(name).read(20)
            assert head[:4] == b"\x7fELF" and head[18] == MACHINES[arch], "%s is not for %s" % (name, arch)
        if sys.argv[2:] and arch == sys.argv[3]:
            tar.extractall(sys.argv[2])
    seen.append("%s %.1f MB" % (arch, len(packed) / 1e6))
assert seen
print("  image: " + ", ".join(sorted(seen)))
