# SPDX-License-Identifier: Apache-2.0
"""A Python program that says what its stacks may look like, then runs, for tests/script/judge.py. Python 3.7 and later.

usage: calls.py SECONDS [CASE...]

Prints a line "frame NAME FIRST LAST CALLER..." for each of its functions: the lines its frames may be on, and the functions it may be
called by, directly or through C (by the last part of their names); then "root NAME". A case is a way of calling; all of them when none is named."""
import functools
import os
import re
import sys
import threading
import time

try:
    import asyncio
except ImportError:  # an interpreter that was built without sockets
    asyncio = None

truth = {}  # code object -> its callers


def called_by(*callers):
    """A function that only @callers call: the last parts of their names."""

    def note(function):
        truth[function.__code__] = callers
        return function

    return note


truth[called_by.__code__] = ("<module>",)
for inner in called_by.__code__.co_consts:
    if hasattr(inner, "co_code"):
        truth[inner] = ("<module>",)


@called_by("leaf", "compare", "numbers", "inner_numbers", "replaced", "reduced", "raised", "closed", "method", "worker", "made",
           "awaited", "qsort_compare", "forked", "mapped",
           "use_threads", "use_fork")
def spin(milliseconds):
    end = time.perf_counter() + milliseconds / 1000
    n = 0
    while time.perf_counter() < end:
        for i in range(500):
            n += i * i
    return n


# --- deep ---
@called_by("down")
def leaf():
    return spin(10)


@called_by("down", "deep")
def down(n):
    return down(n - 1) if n else leaf()


@called_by("main")
def deep():
    return down(400)


# --- through C and back ---
class Key:
    def __init__(self, value):
        self.value = value

    def __lt__(self, other):
        return compare(self, other)


truth[Key.__init__.__code__] = truth[Key.__lt__.__code__] = ("sort",)


@called_by("__lt__")
def compare(a, b):
    spin(1)
    return a.value < b.value


def nothing(key):
    return key


@called_by("main")
def sort():
    return sorted((Key(3), Key(1), Key(2)))


@called_by("substitute")
def replaced(match):
    spin(2)
    return match.group(0)


@called_by("main")
def substitute():
    return re.compile("a").sub(replaced, "aba")


@called_by("reduce")
def reduced(a, b):
    return a + b + spin(1)


@called_by("main")
def reduce():
    return functools.reduce(reduced, range(4))


@called_by("use_map")
def mapped(n):
    return spin(n)


@called_by("main", "use_qsort")
def use_map():
    return list(map(mapped, (1, 2, 3)))


@called_by("use_qsort")
def qsort_compare(a, b):
    spin(1)
    return a[0] - b[0]


try:
    import ctypes
except ImportError:  # an interpreter that was built without
    ctypes = None
else:
    libc = ctypes.CDLL(None)
    Compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
    c_compare = Compare(qsort_compare)


@called_by("main")
def use_qsort():
    if not ctypes:
        return use_map()
    numbers_ = (ctypes.c_int * 4)(4, 2, 3, 1)
    libc.qsort(numbers_, 4, ctypes.sizeof(ctypes.c_int), c_compare)
    return list(numbers_)


# --- generators and coroutines ---
@called_by("numbers")
def inner_numbers():
    for _ in range(2):
        yield spin(2)


@called_by("use_generator", "use_next")
def numbers():
    yield from inner_numbers()
    yield spin(2)


@called_by("main")
def use_generator():
    return sum(numbers())


@called_by("main")
def use_next():
    n = 0
    for value in numbers():
        n += value
    return n


class Turn:
    def __await__(self):
        yield


truth[Turn.__await__.__code__] = ("awaited",)


@called_by("awaiting")
async def awaited():
    spin(2)
    await Turn()
    return spin(2)


@called_by("*")
async def awaiting():
    return await awaited()


@called_by("main")
def use_coroutine():
    if not asyncio:
        coroutine = awaiting()
        try:
            while True:
                coroutine.send(None)
        except StopIteration as result:
            return result.value
    return asyncio.new_event_loop().run_until_complete(awaiting())


# --- exceptions, closures, methods, made code ---
@called_by("raised", "use_exception")
def raised(n):
    if n:
        return raised(n - 1)
    spin(3)
    raise ValueError


@called_by("main")
def use_exception():
    try:
        raised(5)
    except ValueError:
        pass


@called_by("main", "<module>")
def use_closure():
    n = 3

    def closed():
        return spin(n)

    truth[closed.__code__] = ("use_closure",)
    return closed()


class Counter:
    def method(self):
        return spin(3)


truth[Counter.method.__code__] = ("use_method",)


@called_by("main")
def use_method():
    return Counter().method()


made_source = "def made():\n    return spin(3)\n"


@called_by("main")
def use_made():
    exec(made_code, globals())
    return globals()["made"]()


made_code = compile(made_source, "<made>", "exec")


# --- threads and children ---
@called_by("*")
def worker():
    return spin(20)


@called_by("main")
def use_threads():
    first, second = threading.Thread(target=worker), threading.Thread(target=worker)
    first.start()
    second.start()
    spin(3)
    first.join()
    second.join()


@called_by("use_fork")
def forked():
    return spin(20)


@called_by("main")
def use_fork():
    child = os.fork()
    if not child:
        forked()
        os._exit(0)
    spin(3)
    os.waitpid(child, 0)


CASES = [deep, sort, substitute, reduce, use_map, use_qsort, use_generator, use_next, use_coroutine, use_exception, use_closure,
         use_method, use_made, use_threads, use_fork]


@called_by("tell")
def name_of(code):
    return getattr(code, "co_qualname", code.co_name)


@called_by("<module>")
def tell():
    import dis

    for code in truth:
        lines = sorted(filter(None, dict(dis.findlinestarts(code)).values()))
        print("frame", name_of(code), min(lines), max(lines), *truth[code])
    print("frame made 1 2 use_made\nframe <module> 1 1 use_made")
    print("root <module>")
    sys.stdout.flush()


@called_by("<module>")
def main(seconds, cases):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for case in cases:
            case()


wanted = [case for case in CASES if not sys.argv[2:] or case.__name__ in sys.argv[2:]]
use_closure()  # its function is known from now on
tell()
main(float(sys.argv[1]), wanted)
