#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills `hearth serve --store` at random points while clients send, and looks into the file with Python's own SQLite:
store_crash.py HEARTH FOLDER ROUNDS. Each request carries a process.pid of its own and some samples; what was answered 200 must
be there in the end, whole, and nothing may be there that was never sent. Samples are of now, of hours that are over (these are
merged at once) and of too long ago (these are removed)."""
import http.client
import json
import os
import random
import sqlite3
import subprocess
import sys
import threading
import time

DAY = 86400 * 10**9
hearth, folder, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
acknowledged, sent = {}, {}
lock = threading.Lock()


def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def field(number, data):
    if isinstance(data, int):
        return varint(number << 3) + varint(data)
    return varint(number << 3 | 2) + varint(len(data)) + data


def request(pid, times):
    """One sample with @times of process @pid, on a stack of 20 frames that others have in part."""
    pid_attribute = field(1, field(1, b"process.pid") + field(2, field(3, pid)))
    strings = [b"", b"samples", b"count"] + [b"f%d" % random.randrange(200) for _ in range(20)]
    functions = b"".join(field(3, field(1, i + 3)) for i in range(20))
    locations = b"".join(field(2, field(2, i + 1) + field(3, field(1, i + 1))) for i in range(20))
    tables = field(1, b"") + field(2, b"") + locations + field(3, b"") + functions + field(4, b"")
    tables += b"".join(field(5, s) for s in strings) + field(6, b"")
    tables += field(7, b"") + field(7, field(1, b"".join(varint(i + 1) for i in range(20))))
    sample = field(1, 1) + field(5, b"".join(t.to_bytes(8, "little") for t in times))
    profile = field(1, field(1, 1) + field(2, 2)) + field(2, sample)
    return field(1, field(1, pid_attribute) + field(2, field(2, profile))) + field(2, tables)


def client(port, stop, number):
    """Sends until @stop is set or the server is gone."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    n = 0
    while not stop.is_set():
        n += 1
        pid = number * 1000000 + n
        now = time.time_ns()
        ago = random.choice([0, 0, random.randrange(5 * 3600 * 10**9), 20 * DAY])
        times = [now - ago + i * 1000003 for i in range(random.randrange(1, 60))]
        if ago < DAY:
            with lock:
                sent[pid] = times
        try:
            connection.request("POST", "/v1development/profiles", request(pid, times), {"Content-Type": "application/x-protobuf"})
            status = connection.getresponse()
            status.read()
        except (OSError, http.client.HTTPException):
            return
        if status.status == 200 and ago < DAY:
            with lock:
                acknowledged[pid] = len(times)


def serve():
    """A server and its port."""
    err = open(folder + ".err", "w+b")
    server = subprocess.Popen([hearth, "serve", "--grpc-address", "off", "--http-address", "127.0.0.1:0", "--store", folder,
                               "--keep-age", "7d", "--keep-free", "0"], stderr=err, stdin=subprocess.DEVNULL)
    for _ in range(200):
        err.seek(0)
        for line in err.read().decode().splitlines():
            if "listening on http://127.0.0.1:" in line:
                return server, int(line.split("http://127.0.0.1:")[1].split()[0].rstrip("/,"))
            assert "error" not in line, line
        assert server.poll() is None, "the server ended"
        time.sleep(0.05)
    raise AssertionError("no server")


def stored():
    """Samples as Python's SQLite counts them."""
    db = sqlite3.connect(folder + "/profiles.db")
    assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    return db.execute("SELECT sum(events) FROM blocks").fetchone()[0] or 0


def processes(port):
    """Every process.pid there are samples of."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", "/api/v1/series?from=first&to=last&limit=100000")
    answer = connection.getresponse()
    body = answer.read()
    assert answer.status == 200, body
    return {int(series["labels"]["process.pid"]) for series in json.loads(body)["series"]}


for round_ in range(rounds):
    server, port = serve()
    stop = threading.Event()
    clients = [threading.Thread(target=client, args=(port, stop, round_ * 4 + i + 1)) for i in range(4)]
    for thread in clients:
        thread.start()
    time.sleep(random.choice([0.02, 0.1, 0.3, 0.8, 2.2]) * random.random() + 0.02)
    server.kill()
    server.wait()
    stop.set()
    for thread in clients:
        thread.join()

server, port = serve()
time.sleep(3)
pids = processes(port)
server.terminate()
assert server.wait() == 0, "the server did not end well"
assert not [name for name in os.listdir(folder) if "damaged" in name], os.listdir(folder)
events = stored()
missing = set(acknowledged) - pids
assert not missing, f"{len(missing)} acknowledged requests are gone"
least, most = sum(acknowledged.values()), sum(map(len, sent.values()))
assert least <= events <= most, f"{least} samples acknowledged, {events} stored, {most} sent"
subprocess.run([hearth, "store", "verify", "--store", folder], check=True, capture_output=True)
assert len(acknowledged) > rounds, "hardly anything was acknowledged: the test tests nothing"
print(f"{rounds} kills: {len(acknowledged)} requests acknowledged, {len(sent)} sent, {events} samples stored")
