# SPDX-License-Identifier: Apache-2.0
"""Functions that Numba compiles, which say what their stacks may look like, as those of calls.py.

usage: calls_numba.py SECONDS"""
import inspect
import sys
import time

import numba


@numba.njit(debug=True)
def spin(n):  # called by: leaf down
    for i in range(20000):
        n = (n * 1103515245 + 12345 + i) & 0x7fffffff
    return n


@numba.njit(debug=True)
def leaf(n):  # called by: mid
    return spin(n) & 7


@numba.njit(debug=True)
def mid(n):  # called by: run
    a = leaf(n)
    return a + leaf(n + 1)


@numba.njit("int64(int64, int64)", debug=True)
def down(depth, n):  # called by: run down
    if depth == 0:
        return spin(n)
    return down(depth - 1, n + 1) + 1


@numba.njit(debug=True)
def run(n):  # called by: *
    a = mid(n)
    return a + down(30, n)


def main():
    for function in spin, leaf, mid, down, run:
        lines, first = inspect.getsourcelines(function.py_func)
        callers = next(line for line in lines if "# called by:" in line).rsplit(":", 1)[1].split()
        print("frame", f"__main__::{function.__name__}", first, first + len(lines) - 1, *[c if c == "*" else f"__main__::{c}" for c in callers])
    sys.stdout.flush()
    end = time.monotonic() + float(sys.argv[1])
    n = run(1)
    while time.monotonic() < end:
        n = run(n & 0xffff)


main()
