#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gil.py SECONDS: threads of which each knows what it has of the interpreter's lock (judge_gil.py has the list)."""
import ctypes
import hashlib
import sys
import threading
import time

end = time.monotonic() + float(sys.argv[1])
usleep = ctypes.PyDLL(None).usleep  # the lock stays with who calls it
locked = threading.Lock()


def fight():
    while time.monotonic() < end:
        for _ in range(20000):
            pass


def digest():
    while time.monotonic() < end:
        hashlib.pbkdf2_hmac("sha256", b"secret", b"salt", 200000)


def nap():
    while time.monotonic() < end:
        time.sleep(0.02)


def hoard():
    while time.monotonic() < end:
        usleep(10000)
        time.sleep(0.05)


def queue_up():
    while time.monotonic() < end:
        locked.acquire(timeout=0.02)


locked.acquire()
threads = [threading.Thread(target=f) for f in (fight, fight, digest, nap, hoard, queue_up)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
