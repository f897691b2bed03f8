#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A way to a server on loopback that can be cut: relay.py PORT

The first line on stdout is "port N". Orders come on stdin, a line each, and are answered by a line with how many connections were cut:

  cut      all connections are reset; new ones are taken
  close    all connections are reset, and so are new ones
  open     new ones are taken again
"""
import socket
import struct
import sys
import threading

target = int(sys.argv[1])
lock = threading.Lock()
joined, is_closed = [], False


def reset(sock):
    """The other side reads ECONNRESET, whatever was on its way."""
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.shutdown(socket.SHUT_RD)  # ends a recv() of another thread
    except OSError:
        pass
    sock.close()


def forget(pair):
    """True: the pair was there, and nobody else ends it."""
    with lock:
        if pair not in joined:
            return False
        joined.remove(pair)
    return True


def copy(source, sink, pair):
    try:
        while data := source.recv(65536):
            sink.sendall(data)
    except OSError:
        pass
    if forget(pair):
        for sock in pair:
            reset(sock)


def accept(listener):
    while True:
        client, _ = listener.accept()
        try:
            if is_closed:
                raise OSError("closed")
            server = socket.create_connection(("127.0.0.1", target))
        except OSError:
            reset(client)
            continue
        pair = (client, server)
        with lock:
            joined.append(pair)
        threading.Thread(target=copy, args=(client, server, pair), daemon=True).start()
        threading.Thread(target=copy, args=(server, client, pair), daemon=True).start()


def cut():
    with lock:
        pairs = joined[:]
        joined.clear()
    for pair in pairs:
        for sock in pair:
            reset(sock)
    return len(pairs)


listener = socket.create_server(("127.0.0.1", 0))
print("port", listener.getsockname()[1], flush=True)
threading.Thread(target=accept, args=(listener,), daemon=True).start()
for line in sys.stdin:
    is_closed = {"cut": is_closed, "close": True, "open": False}[line.strip()]
    print(line.strip(), 0 if line.strip() == "open" else cut(), flush=True)
