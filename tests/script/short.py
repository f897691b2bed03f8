# SPDX-License-Identifier: Apache-2.0
"""A script that lives for 50 ms, and says what its stacks may look like when it is given an argument (see calls.py)."""
import sys
import time


def spin(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def work(seconds):
    spin(seconds)


if sys.argv[1:]:
    import dis

    for code, caller in ((spin.__code__, "work"), (work.__code__, "<module>")):
        lines = [line for _, line in dis.findlinestarts(code) if line]
        print("frame", code.co_name, min(lines), max(lines), caller)
    print("root <module>")
else:
    work(0.05)
