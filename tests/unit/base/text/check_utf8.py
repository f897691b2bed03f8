#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares what test_utf8.c made of bytes with what Python's own decoder does.

Each line: the bytes, whether they are valid ("0" or "1"), the cleaned text, and the longest part of at most 6 bytes that ends
with a whole sequence if they are valid; bytes in hexadecimal, each field followed by a comma.
"""
import sys


def valid(raw):
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def main():
    lines = wrong = valid_lines = 0
    for line in sys.stdin:
        raw, is_valid, cleaned, cut = [field if n == 1 else bytes.fromhex(field) for n, field in enumerate(line.split(",")[:4])]
        ok = valid(raw) == (is_valid == "1") and cleaned == raw.decode(errors="replace").encode()
        ok = ok and (not valid(raw) or cut == raw[:6].decode(errors="ignore").encode())
        lines += 1
        valid_lines += valid(raw)
        wrong += not ok
        if not ok and wrong < 10:
            print(f"wrong: {line.strip()}")
    print(f"{lines} texts, {valid_lines} valid, {wrong} wrong")
    return wrong != 0 or valid_lines < 1000 or lines - valid_lines < 1000


sys.exit(main())
