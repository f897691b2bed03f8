#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints a pprof profile as folded stacks, by way of protobuf's own decoder and the project's schema, and checks what a reader
of it relies on: texts, ids, one value a column.

usage: pprof_stacks.py PROFILE.pb.gz

One line a thread's name and stack: NAME;root;...;leaf COUNT. Exit status 77 where protoc or python3-protobuf is missing."""
import collections
import gzip
import importlib
import os
import subprocess
import sys
import tempfile

SCHEMA = os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../proto/pprof")
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../truth"))
sys.dont_write_bytecode = True
import capture  # finds a Python that has protobuf


def load(path):
    capture.protobuf()
    with tempfile.TemporaryDirectory() as out:
        subprocess.run(["protoc", "-I", SCHEMA, f"--python_out={out}", "profile.proto"], check=True)
        sys.path.insert(0, out)
        profile = importlib.import_module("profile_pb2").Profile()
    with gzip.open(path) as f:
        profile.ParseFromString(f.read())
    return profile


def main():
    p = load(sys.argv[1])
    text = list(p.string_table)
    assert text[0] == "", "the first text is not empty"
    assert len(set(text)) == len(text), "a text stands there twice"
    functions = {f.id: f for f in p.function}
    locations = {l.id: l for l in p.location}
    mappings = {m.id: m for m in p.mapping}
    assert len(functions) == len(p.function) and len(locations) == len(p.location) and len(mappings) == len(p.mapping)
    assert 0 not in functions and 0 not in locations and 0 not in mappings
    types = [(text[t.type], text[t.unit]) for t in p.sample_type]
    assert types == [("samples", "count"), ("cpu", "nanoseconds")], types
    assert text[p.default_sample_type] == "cpu" and p.period > 0 and p.duration_nanos > 0 and p.time_nanos > 0
    assert all(m.has_functions and m.has_filenames and m.has_line_numbers and m.has_inline_frames for m in p.mapping)
    assert any(text[m.build_id] for m in p.mapping)
    stacks, seen = collections.Counter(), set()
    for s in p.sample:
        assert len(s.value) == len(types) and s.value[1] == s.value[0] * p.period, s.value
        key = (tuple(s.location_id), tuple((l.key, l.str, l.num) for l in s.label))
        assert key not in seen, "equal samples were not added up"
        seen.add(key)
        labels = {text[l.key]: text[l.str] or l.num for l in s.label}
        assert labels["process.pid"] >= 0 and labels["thread.id"] >= 0
        names = []
        for at in s.location_id:  # leaf first, inlined calls before who they were inlined into
            location = locations[at]
            assert not location.mapping_id or location.mapping_id in mappings
            assert location.line, "a location without a function"
            names += [text[functions[l.function_id].name] for l in location.line]
        assert all(names), "a function without a name"
        stacks[labels["thread.name"], tuple(reversed(names))] += s.value[0]
    for (thread, names), count in stacks.items():
        print(";".join(n.replace(";", ":").replace("\n", " ") for n in (thread, *names)), count)


if __name__ == "__main__":
    main()
