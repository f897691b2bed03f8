# SPDX-License-Identifier: Apache-2.0
"""Time in the interpreter and in its C modules.   compute.py SECONDS"""
import hashlib
import json
import re
import sys
import time
import zlib


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def main():
    words = [f"word{i * 7919 % 5000}@host{i % 17}.example" for i in range(5000)]
    end = time.monotonic() + float(sys.argv[1])
    while time.monotonic() < end:
        fib(18)
        text = json.dumps(words).encode()
        zlib.decompress(zlib.compress(text))
        hashlib.sha256(text).hexdigest()
        [w for w in words if re.match(r"(\w+)(\d)@host(1|2|7)+\.ex(a|am|amp)*le$", w)]
        sorted(json.loads(text), key=lambda w: w[::-1])


main()
