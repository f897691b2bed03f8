# SPDX-License-Identifier: Apache-2.0
"""Forks workers that have functions of their own at equal addresses, as servers that load their code before they fork have. Python 3.6
and later; for tests/script/judge_workers.py.

usage: workers.py WORKERS SECONDS

Prints a line "worker PID NUMBER ADDRESS" for each: the functions that it makes, one after another, are called wNUMBER_I, and the first
one's code is at ADDRESS."""
import os
import sys
import time

SOURCE = """
def {}(end):
    n = 0
    while time.perf_counter() < end:
        for i in range(200):
            n += i * i
    return n
"""


def make(name):
    names = {"time": time}
    exec(SOURCE.format(name), names)
    return names[name]


def work(number, end, say):
    i = 0
    while time.perf_counter() < end:
        function = make("w%d_%d" % (number, i % 7))
        if not i:
            os.write(say, b"worker %d %d %#x\n" % (os.getpid(), number, id(function.__code__)))
        i += 1
        function(min(end, time.perf_counter() + 0.02))


def main(workers, seconds):
    end = time.perf_counter() + seconds
    for number in range(workers):
        if not os.fork():
            work(number, end, 1)
            os._exit(0)
    for _ in range(workers):
        os.wait()


main(int(sys.argv[1]), float(sys.argv[2]))
