#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Asks a running hearth for everything that it can be asked for, over all routes and paths of its tables (backend/routes/routes.c,
backend/api/api_paths.c, api_trace.c) and all formats of files, as the user who runs this.

usage: who_may_look.py TOP URL FORMATS refused|hidden|seen
    refused: what shows profiles answers 403, with the cure, and nothing else does; hidden: it answers, and no answer has an address
    of the kernel, in whatever form; seen: some have, so that these forms are known.
One line a route that is wrong; exit status 1 when there was one."""
import base64
import gzip
import json
import lzma
import os
import re
import struct
import subprocess
import sys
import urllib.error
import urllib.request
import zlib

top, url, formats, mode = sys.argv[1], sys.argv[2], sys.argv[3].split(","), sys.argv[4]
KERNEL = 0xffff800000000000
BELOW_NUMBERS = 0xfffffffff0000000  # what stands above it is a small negative number
MOST = ("from=first", "to=now", "kind=samples", "label=comm", "function=leaf", "max_nodes=200000", "limit=1000")  # of a path what it takes


def source(path):
    with open(os.path.join(top, path), encoding="utf-8") as f:
        return f.read()


def routes():
    """(method, path, whether profiles are shown there) of the tables."""
    text = source("backend/routes/routes.c")
    connect = re.search(r'#define CONNECT_PATH "([^"]+)"', source("backend/api/api.h")).group(1)
    found = [("POST", p, False) for p in re.findall(r'\bRECEIVER\("([^"]+)"', text)]
    for entry in re.findall(r"\{\s*\.method.*?\}", text, re.S):
        path = re.search(r'\.path = (?:"([^"]+)"|CONNECT_PATH)', entry)
        if ".is_public" in entry or ".pages = ON(WORKLOADS)," in entry or path is None:
            continue  # no secret; or of another listener
        found.append((re.search(r'\.method = "(\w+)"', entry).group(1), path.group(1) or connect, "GUARD_PAGE" in entry))
    return found, connect


def questions():
    """Each route's, with what each of the API's paths wants to be told; (method, path, shows profiles, body)."""
    table, connect = routes()
    code = source("backend/api/api_paths.c")
    for name, value in reversed(re.findall(r"#define (\w+) +(.*)", source("backend/api/api_call.h") + code)):
        code = code.replace(name, value)
    paths = {connect + b if b else a: params.replace('"', "").split() for a, b, params in
             re.findall(r'\{ (?:"([^"]+)"|CONNECT_PATH "(\w+)"),\s+api_\w+,\s+(.*?) \}', code, re.S)}
    behind = ["", *re.findall(r'\{ "(\w+)", api_', source("backend/api/api_trace.c"))]
    every = "from=first&to=now"
    for method, path, shows in table:
        below = [p for p in paths if p.startswith(path) and p != path]
        if not path.endswith("/") or path in ("/", "/page/"):
            yield method, {"/page/": "/page/app.js"}.get(path, path), shows, b"{}" if method == "POST" else None
            continue
        assert below, path
        for p in below:
            if p == "/api/v1/export":
                for f in formats:
                    yield method, f"{p}?{every}&format={f}", shows, None
            elif method == "POST":
                yield method, p, shows, json.dumps({"profileTypeID": "process_cpu:cpu:nanoseconds:cpu:nanoseconds", "profile_typeID":
                                                    "process_cpu:cpu:nanoseconds:cpu:nanoseconds", "labelSelector": "{}", "step": 15,
                                                    "name": "service_name", "maxNodes": 100000, "groupBy": ["comm"]}).encode()
            else:
                yield method, p + "?" + "&".join(q for q in MOST if q.split("=")[0] in paths[p]), shows, None
        if path == "/api/v1/":
            for what in behind:
                yield method, "/api/v1/trace/" + "0" * 31 + "1" + (what and "/" + what) + "?" + every, shows, None
        if path.endswith("pprof/"):
            yield method, path + "profile?seconds=1", shows, None
            yield method, path + "symbol", shows, None


def ask(method, path, body):
    request = urllib.request.Request(url + path, data=body, method=method, headers={"Content-Type": "application/json", "Origin": url})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as e:
        return e.code, e.read()


def unpacked(data):
    """@data, and what is packed or written as text in it."""
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    elif data[:4] == b"\x28\xb5\x2f\xfd":
        data = subprocess.run(["zstd", "-dcq"], input=data, stdout=subprocess.PIPE, check=True).stdout
    elif data[:5] == b"\xfd7zXZ":
        data = lzma.decompress(data)
    yield data
    for text in re.findall(rb"[A-Za-z0-9+/]{400,}={0,2}", data):
        try:
            inner = base64.b64decode(text + b"=" * (-len(text) % 4))
            yield inner if inner[:2] not in (b"\x1f\x8b", b"\x78\x9c") else zlib.decompress(inner, 47)
        except (ValueError, zlib.error):
            pass


def varint(b):
    return sum((x & 127) << 7 * i for i, x in enumerate(b)) & (1 << 64) - 1


def addresses(data):
    """Addresses of the kernel in @data, as text in two bases, as 8 bytes, as a varint."""
    found = [int(t, 16) for t in re.findall(rb"(?i)(?<![0-9a-f])ffff[89a-f][0-9a-f]{11}(?![0-9a-f])", data)]
    found += [int(t) for t in re.findall(rb"(?<![0-9.])1844[0-9]{16}(?![0-9.])", data)]
    if not data.isascii():  # as 8 bytes: of the kernel's code and modules alone, as other bytes may look like the rest
        found += [struct.unpack("<Q", t)[0] for t in re.findall(rb"(?s)(?=(.{3}[\x80-\xef]\xff\xff\xff\xff))", data)]
        found += [varint(t) for t in re.findall(rb"(?<![\x80-\xff])([\x80-\xff]{9}\x01)", data)]
    return [a for a in found if KERNEL <= a < BELOW_NUMBERS]


wrong, with_addresses, count = [], [], 0
for method, path, shows, body in questions():
    if path.startswith(("/api/v1/clear", "/logout", "/login")) and mode != "refused":
        continue  # these change what is asked about
    status, data = ask(method, path, body)
    count += 1
    if mode == "refused":
        if shows and (status != 403 or f"--http-allow-uid {os.getuid()}".encode() not in data):
            wrong.append(f"{method} {path}: {status}: {data[:200]}")
        if not shows and status == 403:
            wrong.append(f"{method} {path}: {status}, though it shows no profiles: {data[:200]}")
    elif status >= 400 and shows and path not in ("/api/v1/symbols",):
        wrong.append(f"{method} {path}: {status}: {data[:200]}")
    seen = [a for piece in unpacked(data) for a in addresses(piece)]
    if seen:
        with_addresses.append(path)
        if mode != "seen":
            wrong.append(f"{method} {path}: {len(seen)} addresses of the kernel, as {seen[0]:#x}")
if mode == "seen" and not all(any(w in p for p in with_addresses) for w in ("perf-script", "format=otlp", "pprof/profile")):
    wrong.append(f"addresses are not known where they are: only {with_addresses}")
print(f"{count} questions, {len(with_addresses)} answers with addresses of the kernel" + (f": {with_addresses}" if mode == "seen" else ""))
for line in wrong:
    print("   ", line)
sys.exit(1 if wrong or count < 50 else 0)
