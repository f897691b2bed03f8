# SPDX-License-Identifier: Apache-2.0
"""N different functions deep, the module's code included: chain.py N [cold]. Cold: the innermost walks 64 MB again and again."""
import sys

depth = int(sys.argv[1])
memory = bytearray(64 << 20) if sys.argv[2:] == ["cold"] else None


def f1():
    if memory:
        while True:
            memory.count(b"x")
    x = 1
    while True:
        x = (x * 33) & 0xffff


exec("".join(f"def f{i}(a=1):\n    return f{i - 1}()\n" for i in range(2, depth)))
globals()[f"f{depth - 1}"]()
