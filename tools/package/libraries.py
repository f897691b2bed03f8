#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Says which libraries a program is loaded with, of which packages, without running it: of any CPU.

usage: libraries.py ROOT TRIPLE PROGRAM [SONAME...]      ROOT: / or a folder with another CPU's libraries; SONAME: further ones

Each line is: FILE PACKAGE VERSION, the loader (ld-linux) first.
"""
import functools
import glob
import gzip
import os
import re
import subprocess
import sys


def needed(path):
    """The names of libraries that the file asks for, and of its loader."""
    text = subprocess.run(["readelf", "-dl", "-W", path], capture_output=True, text=True, check=True, env={**os.environ, "LC_ALL": "C"}).stdout
    loader = re.search(r"program interpreter: ([^\]]+)", text)
    return re.findall(r"\(NEEDED\).*\[(.+)\]", text), loader and loader.group(1)


def folders(root, triple):
    names = ["lib/" + triple, "usr/lib/" + triple, "lib", "usr/lib", "lib64", "usr/local/lib"]
    for conf in sorted(glob.glob(os.path.join(root, "etc/ld.so.conf.d/*.conf"))):
        with open(conf, encoding="utf-8") as f:
            names += [line.strip().lstrip("/") for line in f if line.startswith("/")]
    return [os.path.join(root, name) for name in names]


def find(name, where):
    for folder in where:
        path = os.path.join(folder, name)
        if os.path.exists(path):
            return path
    sys.exit("libraries.py: there is no %s below %s" % (name, where[0]))


@functools.lru_cache(None)
def owner(name):
    """The package that a file of this name is of, by this machine's list: the same suite's has the same names."""
    for pattern in ("*/%s-linux-gnu/%s" % (os.uname().machine, name), "*/" + name):
        out = subprocess.run(["dpkg-query", "-S", pattern], capture_output=True, text=True, check=False).stdout
        if out:
            return out.split(":", 1)[0].split(",")[0]
    return None


def version(root, package):
    if root == "/":
        return subprocess.run(["dpkg-query", "-W", "-f", "${Version}", package], capture_output=True, text=True, check=True).stdout
    for log in ("changelog.Debian.gz", "changelog.gz"):
        path = os.path.join(root, "usr/share/doc", package, log)
        if os.path.exists(path):
            with gzip.open(path, "rt", encoding="utf-8", errors="replace") as f:
                return re.match(r"\S+ \(([^)]+)\)", f.readline()).group(1)
    return "unknown"


def main():
    root, triple, program, further = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]
    where = folders(root, triple)
    names, loader = needed(program)
    todo, seen = names + further, {}
    while todo:
        name = todo.pop(0)
        if name in seen:
            continue
        seen[name] = find(name, where)
        todo += needed(seen[name])[0]
    loader_name = os.path.basename(loader)
    seen.setdefault(loader_name, find(loader_name, where))
    for name in [loader_name] + sorted(set(seen) - {loader_name}):
        package = owner(os.path.basename(os.path.realpath(seen[name]))) or owner(name) or "unknown"
        print(seen[name], package, version(root, package) if package != "unknown" else "unknown")


main()
