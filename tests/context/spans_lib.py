#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What spans.c does, in Python, whose functions hearth finds by their chain: spans of a millisecond, said by context.c in a library.

usage: spans_lib.py SECONDS THREADS LIBRARY"""
import ctypes
import sys
import threading
import time


def spin():
    until = time.monotonic() + 0.001
    while time.monotonic() < until:
        sum(range(50))


def work0():
    spin()


def work1():
    spin()


def outside():
    spin()


def run(library, thread, until):
    i = 0
    while time.monotonic() < until:
        library.context_enter(thread, i % 2, ctypes.c_uint64(i))
        (work0, work1)[i % 2]()
        library.context_leave(i % 3 == 0)
        outside()
        i += 1


def main():
    library, until = ctypes.CDLL(sys.argv[3]), time.monotonic() + float(sys.argv[1])
    library.context_publish(b"1", 3, 0)
    print("go", flush=True)
    threads = [threading.Thread(target=run, args=(library, n, until)) for n in range(int(sys.argv[2]))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


main()
