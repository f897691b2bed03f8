#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes an OCI image, a layout in a folder and in a tar, of one or more bundles (bundle.sh): nothing but hearth and its libraries.

usage: image.py VERSION FOLDER ARCH=BUNDLE...      (amd64=build/package/bundle)

The same bundles make the same bytes: files are in order, of SOURCE_DATE_EPOCH, of root. Each image has the bundle at /opt/hearth,
/etc with what looks up names, the certificates of this machine, and empty folders for what hearth keeps.
"""
import gzip
import hashlib
import io
import json
import os
import sys
import tarfile
import time

EPOCH = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
CREATED = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(EPOCH))
LABELS = {
    "org.opencontainers.image.title": "hearth",
    "org.opencontainers.image.description": "continuous whole-system profiler",
    "org.opencontainers.image.licenses": "Apache-2.0 AND (GPL-2.0-only OR BSD-2-Clause)",
    "org.opencontainers.image.created": CREATED,
}
FILES = {
    "etc/passwd": b"root:x:0:0:root:/root:/\nhearth:x:65532:65532:hearth:/var/lib/hearth:/\nnobody:x:65534:65534:nobody:/:/\n",
    "etc/group": b"root:x:0:\nhearth:x:65532:\nnogroup:x:65534:\n",
    "etc/nsswitch.conf": b"passwd: files\ngroup: files\nhosts: files dns\n",
}
FOLDERS = ["etc", "etc/ssl", "etc/ssl/certs", "opt", "opt/hearth", "proc", "sys", "root", "run", "tmp", "usr", "usr/bin", "var", "var/cache",
           "var/cache/hearth", "var/lib", "var/lib/hearth"]
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"


class Layout:
    def __init__(self, folder):
        self.folder = folder
        os.makedirs(os.path.join(folder, "blobs", "sha256"), exist_ok=True)

    def add(self, data, media_type, **more):
        """Keeps data as a blob; what refers to it."""
        digest = hashlib.sha256(data).hexdigest()
        with open(os.path.join(self.folder, "blobs", "sha256", digest), "wb") as f:
            f.write(data)
        return {"mediaType": media_type, "digest": "sha256:" + digest, "size": len(data), **more}

    def add_json(self, value, media_type, **more):
        return self.add(json.dumps(value, sort_keys=True, separators=(",", ":")).encode(), media_type, **more)


def entry(name, kind, mode, size=0):
    info = tarfile.TarInfo(name)
    info.type, info.mode, info.size, info.mtime = kind, mode, size, EPOCH
    info.uname = info.gname = "root"
    return info


def layer(bundle):
    """The bytes of a tar of the root."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name in FOLDERS:
            tar.addfile(entry(name, tarfile.DIRTYPE, 0o1777 if name == "tmp" else 0o755))
        files = dict(FILES)
        if os.path.exists(CERTIFICATES):
            with open(CERTIFICATES, "rb") as f:
                files[CERTIFICATES[1:]] = f.read()
        for name, data in sorted(files.items()):
            tar.addfile(entry(name, tarfile.REGTYPE, 0o644, len(data)), io.BytesIO(data))
        for folder, below, names in os.walk(bundle):
            below.sort()
            inside = os.path.relpath(folder, bundle)
            for name in sorted(below):
                tar.addfile(entry(os.path.normpath(os.path.join("opt/hearth", inside, name)), tarfile.DIRTYPE, 0o755))
            for name in sorted(names):
                path = os.path.join(folder, name)
                with open(path, "rb") as f:
                    data = f.read()
                mode = 0o755 if os.access(path, os.X_OK) else 0o644
                info = entry(os.path.normpath(os.path.join("opt/hearth", inside, name)), tarfile.REGTYPE, mode, len(data))
                tar.addfile(info, io.BytesIO(data))
        # The collector distribution's name, so that its run lines and manifests stay as they are.
        for name in ("usr/bin/hearth", "usr/bin/otelcol-ebpf-profiler", "otelcol-ebpf-profiler"):
            link = entry(name, tarfile.SYMTYPE, 0o777)
            link.linkname = "/opt/hearth/bin/hearth"
            tar.addfile(link)
    return out.getvalue()


def image(layout, version, arch, bundle):
    data = layer(bundle)
    packed = gzip.compress(data, 6, mtime=0)
    config = {
        "created": CREATED, "architecture": arch, "os": "linux",
        "config": {"Entrypoint": ["/opt/hearth/bin/hearth"], "Env": ["PATH=/usr/bin", "SSL_CERT_FILE=" + CERTIFICATES],
                   "WorkingDir": "/", "StopSignal": "SIGTERM", "Volumes": {"/var/lib/hearth": {}, "/var/cache/hearth": {}},
                   "Labels": {**LABELS, "org.opencontainers.image.version": version}},
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(data).hexdigest()]},
        "history": [{"created": CREATED, "created_by": "tools/package/image.py"}],
    }
    manifest = {
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": layout.add_json(config, "application/vnd.oci.image.config.v1+json"),
        "layers": [layout.add(packed, "application/vnd.oci.image.layer.v1.tar+gzip")],
        "annotations": {**LABELS, "org.opencontainers.image.version": version},
    }
    return layout.add_json(manifest, manifest["mediaType"], platform={"architecture": arch, "os": "linux"})


def main():
    version, folder, bundles = sys.argv[1], sys.argv[2], sys.argv[3:]
    layout = Layout(folder)
    manifests = [image(layout, version, *bundle.split("=", 1)) for bundle in bundles]
    index = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": manifests,
             "annotations": {**LABELS, "org.opencontainers.image.version": version}}
    top = layout.add_json(index, index["mediaType"], annotations={"org.opencontainers.image.ref.name": version})
    # A single image is named by itself as well: not all tools follow an index in an index.
    named = [top] if len(manifests) > 1 else [{**manifests[0], "annotations": top["annotations"]}]
    for name, value in (("index.json", {"schemaVersion": 2, "mediaType": index["mediaType"], "manifests": named}),
                        ("oci-layout", {"imageLayoutVersion": "1.0.0"})):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            json.dump(value, f, sort_keys=True)
    with tarfile.open(folder + ".tar", "w", format=tarfile.USTAR_FORMAT) as tar:
        for root, below, names in os.walk(folder):
            below.sort()
            for name in sorted(names):
                path = os.path.join(root, name)
                info = entry(os.path.relpath(path, folder), tarfile.REGTYPE, 0o644, os.path.getsize(path))
                with open(path, "rb") as f:
                    tar.addfile(info, f)


main()
