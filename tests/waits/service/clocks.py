# SPDX-License-Identifier: Apache-2.0
"""What a thread of the service says of itself when it ends, by its own clocks: how long it lived, how long it was on a CPU, how
long it waited for one, and how long it was in functions that say so. A line each on the descriptor SAID."""
import ctypes
import os
import threading
import time

SAID = int(os.environ.get("SERVICE_SAID", "1"))
LIBC = ctypes.CDLL(None)
PR_SET_NAME = 15
local = threading.local()
BEGAN_NS = time.monotonic_ns()  # of the first thread, but for some milliseconds


def waited_for_cpu_ns():
    with open("/proc/thread-self/schedstat", encoding="ascii") as f:
        return int(f.read().split()[1])


class Clocked:
    """with Clocked("name"): what the thread does."""

    def __init__(self, name):
        self.name = name

    def __enter__(self):
        self.begin_ns = BEGAN_NS if threading.get_native_id() == os.getpid() else time.monotonic_ns()
        LIBC.prctl(PR_SET_NAME, self.name.encode())
        local.functions = {}
        return self

    def __exit__(self, *_):
        tid = threading.get_native_id()
        lines = [f"thread {self.name} {tid} {time.monotonic_ns() - self.begin_ns} {time.thread_time_ns()} {waited_for_cpu_ns()}\n"]
        lines += [f"function {name} {tid} {ns}\n" for name, ns in local.functions.items()]
        os.write(SAID, "".join(lines).encode())


def timed(function):
    """A function that adds up how long it took."""

    def wrapper(*args):
        begin_ns = time.monotonic_ns()
        try:
            return function(*args)
        finally:
            local.functions[function.__name__] = local.functions.get(function.__name__, 0) + time.monotonic_ns() - begin_ns

    return wrapper
