#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""database.py LATE_MS: a database that answers late. It listens on a port of its own, which it prints; ends with its input."""
import json
import socket
import sys
import threading
import time

from clocks import Clocked


def read_rows(number, late_s):
    time.sleep(late_s * (0.5 + number % 8 / 7))
    return [{"item": (number * 7 + i) % 100, "price": 100 + i} for i in range(20)]


def answer(sock, late_s):
    with Clocked("db"), sock, sock.makefile("rwb") as f:
        for line in f:
            f.write(json.dumps(read_rows(int(line), late_s)).encode() + b"\n")
            f.flush()


def accept(listening, late_s):
    while True:
        threading.Thread(target=answer, args=(listening.accept()[0], late_s)).start()


def main():
    listening = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=accept, args=(listening, float(sys.argv[1]) / 1000), daemon=True).start()
    sys.stdout.write(f"{listening.getsockname()[1]}\n")
    sys.stdout.flush()
    sys.stdin.read()


main()
