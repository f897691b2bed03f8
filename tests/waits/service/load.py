#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""load.py PORT SECONDS CLIENTS: as many clients, each with one connection, that order one thing after another."""
import http.client
import sys
import threading
import time

from clocks import Clocked


def order(port, until, client):
    with Clocked("client"):
        connection = http.client.HTTPConnection("127.0.0.1", port)
        number = client
        while time.monotonic() < until:
            connection.request("GET", f"/order/{number}")
            answer = connection.getresponse()
            answer.read()
            if answer.status != 200:
                sys.exit(f"order {number}: {answer.status}")
            number += 17
        connection.close()


def main():
    port, until = int(sys.argv[1]), time.monotonic() + float(sys.argv[2])
    threads = [threading.Thread(target=order, args=(port, until, i)) for i in range(int(sys.argv[3]))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


main()
