#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Clients of `hearth serve` that want too much, beside an honest one: crowd.py KIND SECONDS PID URL GRPC TOKEN CA

  clients   200 that send and ask, together a hundred times a second, each over a connection of its own, a tenth anew each time; half
            of the questions are the same, the others about one of 20 services
  slow      1,500 connections to the page's port and 300 to gRPC's that say a byte a second, of headers, of bodies, of a TLS handshake
  nothing   2,000 connections that say nothing
  guesses   wrong tokens, cookies and tokens at the page's login, 64 at a time, from another address: its right ones are not taken either
  handshakes  TLS handshakes without end, 32 at a time, and TLS 1.2 clients that ask to renegotiate

The honest one sends a profile and asks for the top functions, each four times a second, over a new connection. Prints its slowest answers, those
that it did not get, and the memory of PID and all below it, looked at each second: the medians of the second quarter and of the last, and the
most. Exit status 1: an answer took longer than 2 s (10 s where all connections are taken, by clients that come again at once), or was none;
memory grew by more than 4 MB from the second quarter to the last (a question takes its memory with it when it ends).
"""
import asyncio
import json
import os
import random
import ssl
import sys
import time
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "bench"))
from measure import family_pss_mb  # noqa: E402

GROWTH_MB = 4.0
# As services have them: most stacks were there before. A question takes memory for each that a store has, which is not what is to be flat.
STACKS = [random.sample(range(1, 31), 10) for _ in range(20000)]


class Server:
    def __init__(self, url, grpc, token, ca):
        parts = urllib.parse.urlsplit(url)
        self.host, self.port = parts.hostname, parts.port
        self.grpc = int(grpc)
        self.token = token
        self.tls = ssl.create_default_context(cafile=ca)

    async def connect(self, port=None, tls=True, local=None):
        return await asyncio.open_connection(self.host, port or self.port, ssl=self.tls if tls else None, local_addr=local and (local, 0))

    def head(self, method, path, length=None, token=None, more=""):
        text = f"{method} {path} HTTP/1.1\r\nHost: {self.host}:{self.port}\r\nAuthorization: Bearer {token or self.token}\r\n{more}"
        if length is not None:
            text += f"Content-Type: application/json\r\nContent-Length: {length}\r\n"
        return (text + "\r\n").encode()


def profile(service):
    now = time.time_ns()
    strings = ["", "samples", "count"] + [f"function {i}" for i in range(30)]
    tables = {"mappingTable": [{}], "linkTable": [{}], "attributeTable": [{}], "stringTable": strings}
    tables["functionTable"] = [{}] + [{"nameStrindex": 3 + i} for i in range(30)]
    tables["locationTable"] = [{}] + [{"lines": [{"functionIndex": 1 + i}]} for i in range(30)]
    tables["stackTable"] = [{}] + [{"locationIndices": stack} for stack in random.sample(STACKS, 20)]
    samples = [{"stackIndex": 1 + i % 20, "timestampsUnixNano": [str(now + i)]} for i in range(100)]
    scope = [{"profiles": [{"sampleType": {"typeStrindex": 1, "unitStrindex": 2}, "samples": samples}]}]
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": service}}]}
    return json.dumps({"resourceProfiles": [{"resource": resource, "scopeProfiles": scope}], "dictionary": tables}).encode()


async def answer(reader):
    """The status; the body is read."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    status = int(head.split()[1])
    if "transfer-encoding: chunked" in head:
        while size := int(await reader.readuntil(b"\r\n"), 16):
            await reader.readexactly(size + 2)
        await reader.readexactly(2)
    elif "content-length:" in head:
        await reader.readexactly(int(head.split("content-length:")[1].split("\r\n")[0]))
    return status


TOP = "/api/v1/top?from=now-1m&to=now&limit=20"


async def ask(server, streams=None, send=None, path=TOP):
    reader, writer = streams or await server.connect()
    try:
        if send:
            body = profile(send)
            writer.write(server.head("POST", "/v1development/profiles", len(body)) + body)
        else:
            writer.write(server.head("GET", path))
        await writer.drain()
        return await answer(reader)
    finally:
        if not streams:
            writer.close()


async def for_ever(step, *args):
    while True:
        try:
            await step(*args)
        except (OSError, asyncio.IncompleteReadError, ssl.SSLError, ValueError, IndexError):
            await asyncio.sleep(0.2)


# --- kinds: what one client does ---


async def client(server, number):
    streams = await server.connect()
    try:
        while random.random() > 0.1:
            service = f"client {number % 20}"
            if random.random() < 0.5:
                status = await ask(server, streams, send=service)
            elif random.random() < 0.5:
                status = await ask(server, streams)
            else:
                status = await ask(server, streams, path=TOP + "&query=" + urllib.parse.quote(f'{{service.name="{service}"}}'))
            assert status in (200, 429, 503), status
            await asyncio.sleep(4 * random.random())
    finally:
        streams[1].close()


async def slow(server, form):
    text = {
        "headers": server.head("GET", "/" + "x" * 3000),
        "body": server.head("POST", "/v1development/profiles", 5000) + b" " * 5000,
        "handshake": bytes.fromhex("160301020001000001fc0303") + bytes(500),
        "h2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(500),
    }[form]
    reader, writer = await server.connect(server.grpc if form == "h2" else None, tls=form != "handshake")
    try:
        for at in range(len(text)):
            writer.write(text[at : at + 1])
            await writer.drain()
            await asyncio.sleep(1)
            if reader.at_eof():
                break
    finally:
        writer.close()


async def silent(server):
    reader, writer = await server.connect(tls=False)
    try:
        await reader.read()
    finally:
        writer.close()


async def guess(server, form):
    word = f"{random.getrandbits(128):032x}"
    reader, writer = await server.connect(local="127.0.0.2")
    try:
        if form == "token":
            writer.write(server.head("GET", "/api/v1/status", token=word))
        elif form == "cookie":
            writer.write(f"GET /api/v1/status HTTP/1.1\r\nHost: {server.host}:{server.port}\r\nCookie: hearth={word}; hearth_session={word}\r\n\r\n".encode())
        else:
            body = f"token={word}".encode()
            writer.write(
                f"POST /login HTTP/1.1\r\nHost: {server.host}:{server.port}\r\nContent-Type: application/x-www-form-urlencoded\r\n"
                f"Content-Length: {len(body)}\r\n\r\n".encode() + body
            )
        status = await answer(reader)
        assert status in (401, 403, 429) or form == "login" and status == 303, f"a guessed {form}: {status}"
    finally:
        writer.close()


async def handshake(server, renegotiates):
    if not renegotiates:
        _, writer = await server.connect()
        writer.close()
        return
    process = await asyncio.create_subprocess_exec(
        "openssl", "s_client", "-tls1_2", "-connect", f"{server.host}:{server.port}", stdin=-1, stdout=-3, stderr=-3
    )
    try:
        process.stdin.write(b"R\n" * 20)
        await asyncio.wait_for(process.wait(), 5)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


KINDS = {
    "clients": lambda s: [(client, s, i) for i in range(200)],
    "slow": lambda s: [(slow, s, f) for f in ("headers", "body", "handshake") for _ in range(500)] + [(slow, s, "h2") for _ in range(300)],
    "nothing": lambda s: [(silent, s) for _ in range(2000)],
    "guesses": lambda s: [(guess, s, ("token", "cookie", "login")[i % 3]) for i in range(64)],
    "handshakes": lambda s: [(handshake, s, i % 8 == 0) for i in range(32)],
}


async def honest(server, seen):
    """Appends (seconds, status) for each answer."""
    sends = False
    while True:
        begin = time.monotonic()
        try:
            status = await asyncio.wait_for(ask(server, send="honest" if sends else None), 20)
        except (OSError, asyncio.IncompleteReadError, asyncio.TimeoutError, ssl.SSLError) as e:
            status = type(e).__name__
        seen.append((time.monotonic() - begin, status, "send" if sends else "ask"))
        sends = not sends
        await asyncio.sleep(max(0.0, begin + 0.125 - time.monotonic()))


async def main(kind, seconds, pid, url, grpc, token, ca):
    server, seen, memory = Server(url, grpc, token, ca), [], []
    tasks = [asyncio.create_task(for_ever(*args)) for args in KINDS[kind](server)]
    await asyncio.sleep(1)
    tasks.append(asyncio.create_task(honest(server, seen)))
    end = time.monotonic() + float(seconds)
    while time.monotonic() < end:
        memory.append(sum((await asyncio.to_thread(family_pss_mb, int(pid), True)).values()))
        await asyncio.sleep(1)
    failed = [t for t in tasks if t.done()]
    for t in tasks:
        t.cancel()
    for t in failed:
        t.result()
    slowest = sorted(seen, reverse=True, key=lambda s: s[0])[:3] or [(float("inf"), None, "none")]
    bad = [s for s in seen if s[1] != 200]
    quarter = len(memory) // 4
    settled, last = (sorted(part)[len(part) // 2] for part in (memory[quarter : 2 * quarter], memory[-quarter:]))
    print(
        f"{kind}: {len(seen)} honest requests, {len(bad)} not answered {sorted({str(b[1]) for b in bad})}, slowest "
        + ", ".join(f"{s[0]:.2f} s ({s[2]})" for s in slowest)
        + f"; memory {settled:.1f} MB, {last:.1f} at the end, most {max(memory):.1f}"
    )
    sys.stdout.flush()
    # not by way of the clients' ends, each of which may take a time of its own
    os._exit(bool(bad) or slowest[0][0] > (10 if kind in ("slow", "nothing") else 2) or last - settled > GROWTH_MB)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
