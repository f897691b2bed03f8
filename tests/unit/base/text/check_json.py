#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads what test_json.c wrote with Python's own parser and compares it with Python's own idea of the same values.

{"texts": [[hex of the bytes, the string], ...], "doubles": [[hex of the bits, the number], ...]}
"""
import decimal
import json
import struct
import sys


def digits(number):
    return len(decimal.Decimal(number).normalize().as_tuple().digits)


def main():
    document = json.loads(sys.stdin.buffer.read().decode("utf-8"), parse_float=str, parse_int=str)
    wrong = 0
    for raw, text in document["texts"]:
        want = bytes.fromhex(raw).decode("utf-8", "replace")
        if text != want:
            wrong += 1
            print(f"bytes {raw}: {text!r}, not {want!r}")
    for bits, number in document["doubles"]:
        value = struct.unpack(">d", bytes.fromhex(bits))[0]
        if struct.pack(">d", float(number)) != struct.pack(">d", value) or digits(number) > digits(repr(value)):
            wrong += 1
            print(f"bits {bits}: {number}, not {value!r}")
    print(f"{len(document['texts'])} texts, {len(document['doubles'])} doubles, {wrong} wrong")
    return wrong != 0 or not document["texts"] or not document["doubles"]


sys.exit(main())
