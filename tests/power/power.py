#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Power cuts, out of a log that power.c wrote.

  power.py send URL LOG ACKS COUNT     sends COUNT requests of 100 samples, each of a second of its own, one after another; a line of ACKS
                                       each: the size of LOG when it was acknowledged
  power.py judge LOG ACKS FOLDER CUTS SEED HEARTH
                                       for CUTS random places of LOG: makes the FOLDER that a power cut there may have left, has HEARTH
                                       verify and read it, and holds it against what must be there

A disk may keep any part of what was not flushed: of each write its sectors of 512 bytes one by one, or all, or none; sizes that were set;
files that were made, removed or renamed since their folder was flushed. What was flushed stays. Of the store: it is whole, and has a
beginning of what was sent, with every request that was acknowledged before the last flush of its log or its file.
"""
import json
import os
import random
import shutil
import sqlite3
import struct
import subprocess
import sys
import time
import urllib.request

WRITE, SIZE, FLUSH, CREATE, REMOVE, RENAME = range(1, 7)
SECTOR = 512
SAMPLES = 100


def send(url, log, acks, count):
    base = int(time.time()) - 100_000
    with open(acks, "w", encoding="ascii") as told:
        for n in range(int(count)):
            names = ["", "samples", "count"] + [f"function {n} {i}" for i in range(40)]
            tables = {"mappingTable": [{}], "linkTable": [{}], "attributeTable": [{}], "stringTable": names}
            tables["functionTable"] = [{}] + [{"nameStrindex": 3 + i} for i in range(40)]
            tables["locationTable"] = [{}] + [{"lines": [{"functionIndex": 1 + i}]} for i in range(40)]
            rng = random.Random(n)
            tables["stackTable"] = [{}] + [{"locationIndices": rng.sample(range(1, 41), 10)} for _ in range(20)]
            samples = [{"stackIndex": 1 + i % 20, "timestampsUnixNano": [str((base + n) * 10**9 + i)]} for i in range(SAMPLES)]
            profile = {"sampleType": {"typeStrindex": 1, "unitStrindex": 2}, "samples": samples}
            body = json.dumps({"resourceProfiles": [{"scopeProfiles": [{"profiles": [profile]}]}], "dictionary": tables}).encode()
            request = urllib.request.Request(url + "/v1development/profiles", body, {"Content-Type": "application/json"})
            with urllib.request.urlopen(request, timeout=60) as answer:
                answer.read()
            told.write(f"{os.path.getsize(log)}\n")


def changes(log):
    """(where it ends in the log, kind, path, offset, data)"""
    at = 0
    while at < len(log):
        kind, path_bytes, offset, size = struct.unpack_from("<IIQQ", log, at)
        at += 24
        path = log[at : at + path_bytes].decode()
        at += path_bytes
        data = b""
        if kind in (WRITE, RENAME):
            data = log[at : at + size]
            at += size
        yield at, kind, path, offset, data


class Disk:
    """Files as they are once flushed, and what was done to each since."""

    def __init__(self):
        self.flushed = {}  # number -> bytearray
        self.since = {}  # number -> [(kind, offset, data)]
        self.names, self.names_flushed = {}, {}  # path -> number
        self.count = 0

    def number(self, path):
        if path not in self.names:
            self.names[path] = self.count
            self.flushed[self.count], self.since[self.count] = bytearray(), []
            self.count += 1
        return self.names[path]

    def do(self, kind, path, offset, data):
        if kind == FLUSH and os.path.basename(path).startswith("store"):  # the folder
            self.names_flushed = dict(self.names)
        elif kind == FLUSH:
            n = self.number(path)
            for change in self.since[n]:
                apply(self.flushed[n], *change)
            self.since[n] = []
            self.names_flushed[path] = n  # ext4, xfs and btrfs bring a new file's name out with its first flush
        elif kind in (WRITE, SIZE):
            self.since[self.number(path)].append((kind, offset, data))
        elif kind == CREATE:
            self.number(path)
        elif kind == REMOVE:
            self.names.pop(path, None)
        elif kind == RENAME:
            self.names[data.decode()] = self.number(path)
            del self.names[path]

    def left(self, rng):
        """path -> content, as a cut may leave it."""
        names = rng.choice((self.names, self.names_flushed))
        part = rng.choice((0, 0.1, 0.5, 0.9, 1))
        found = {}
        for path, n in names.items():
            content = bytearray(self.flushed[n])
            for kind, offset, data in self.since[n]:
                if kind == SIZE:
                    if rng.random() < part:
                        apply(content, kind, offset, data)
                    continue
                for at in range(0, len(data), SECTOR):
                    if rng.random() < part:
                        apply(content, WRITE, offset + at, data[at : at + SECTOR])
            found[path] = content
        return found


def apply(content, kind, offset, data):
    end = offset + len(data)
    if kind == SIZE:
        del content[offset:]
    if len(content) < end:
        content.extend(bytes(end - len(content)))
    content[offset:end] = data


def check(folder, hearth, least, sent):
    """None, or why what is in the folder is not what must be there."""
    done = subprocess.run([hearth, "store", "verify", "--store", folder], capture_output=True, text=True, check=False)
    path = folder + "/profiles.db"
    if not os.path.exists(path) or not os.path.getsize(path):
        return None if not least else f"no store, {least} must be there"
    if done.returncode and not least:  # it had just begun to be a store: whoever writes makes it one
        for command in ("prune", "verify"):
            done = subprocess.run([hearth, "store", command, "--store", folder], capture_output=True, text=True, check=False)
            if done.returncode:
                return f"{command}: {done.stdout}{done.stderr}"
        return None
    if done.returncode:
        return f"verify: {done.stdout}{done.stderr}"
    if [name for name in os.listdir(folder) if "damaged" in name]:
        return "moved aside"
    db = sqlite3.connect(path)
    if not db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'blocks'").fetchone():
        return None if not least else f"an empty store, {least} must be there"
    sound = db.execute("PRAGMA integrity_check").fetchone()[0]
    events = db.execute("SELECT coalesce(sum(events), 0) FROM blocks").fetchone()[0]
    first, last = db.execute("SELECT min(from_ns), max(to_ns) FROM blocks").fetchone()
    db.close()
    if sound != "ok":
        return f"sqlite3: {sound}"
    if events % SAMPLES or not least <= events // SAMPLES <= sent:
        return f"{events} samples; {least} to {sent} requests of {SAMPLES} must be there"
    seconds = last // 10**9 - first // 10**9 + 1 if events else 0
    return None if seconds == events // SAMPLES else f"{events} samples of {seconds} seconds: not the first ones"


def judge(log_path, acks_path, folder, cuts, seed, hearth):
    rng = random.Random(int(seed))
    with open(log_path, "rb") as file:
        log = file.read()
    with open(acks_path, encoding="ascii") as file:
        acks = [int(line) for line in file]
    all_changes = list(changes(log))
    places = sorted(rng.sample(range(len(all_changes)), min(int(cuts), len(all_changes))))
    disk, flushed_at, bad, kept = Disk(), 0, 0, []
    for i, (end, kind, path, offset, data) in enumerate(all_changes):
        disk.do(kind, path, offset, data)
        if kind == FLUSH and path.endswith(("profiles.db-wal", "profiles.db")):
            flushed_at = end
        if not places or i != places[0]:
            continue
        places.pop(0)
        shutil.rmtree(folder, ignore_errors=True)
        os.mkdir(folder, 0o700)
        for name, content in disk.left(rng).items():
            with open(os.path.join(folder, os.path.basename(name)), "wb") as file:
                file.write(content)
        least, sent = sum(a <= flushed_at for a in acks), min(sum(a <= end for a in acks) + 1, len(acks))
        why = check(folder, hearth, least, sent)
        kept.append(sent - least)
        if why:
            bad += 1
            print(f"cut behind change {i} of {len(all_changes)} ({kind} {os.path.basename(path)}): {why}")
            shutil.copytree(folder, f"{folder}.{i}")
    flushes = sum(c[1] == FLUSH for c in all_changes)
    print(f"{len(kept)} cuts in {len(all_changes)} changes with {flushes} flushes, {len(acks)} requests: {bad} bad; at most {max(kept)} acknowledged were not flushed yet")
    sys.exit(bad != 0)


if __name__ == "__main__":
    {"send": send, "judge": judge}[sys.argv[1]](*sys.argv[2:])
