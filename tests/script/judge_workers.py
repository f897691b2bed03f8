#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Judges the stacks of workers in a capture (tests/script/workers.py): each may have functions of its own alone.

usage: judge_workers.py CAPTURE TRUTH TYPE LEAST

TYPE is the profile.frame.type of scripts' frames; that of frames whose function is not known is "script". Exit status 1 when a function is another worker's, when one has no name, when fewer
than LEAST samples have a worker's function, or when no two workers had one at the same address; 77 without Python's protobuf."""
import collections
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../truth"))
import capture  # noqa: E402


def scripts(data):
    """Yields (pid, count, names of the script's frames) of each sample."""
    reader, tables = capture.Capture(data), data.dictionary
    for resource in data.resource_profiles:
        facts = {a.key: a.value for a in resource.resource.attributes}
        for profile in (p for scope in resource.scope_profiles for p in scope.profiles):
            for sample in profile.samples:
                names = []
                for i in tables.stack_table[sample.stack_index].location_indices:
                    location = tables.location_table[i]
                    if reader.attributes(location.attribute_indices).get("profile.frame.type") in (sys.argv[3], "script"):
                        names += [tables.string_table[tables.function_table[line.function_index].name_strindex]
                                  for line in location.lines] or [""]
                yield facts["process.pid"].int_value, max(len(sample.timestamps_unix_nano), sum(sample.values)), names


truth = {}
addresses = collections.Counter()
for line in open(sys.argv[2]):
    _, pid, number, address = line.split()
    truth[int(pid)] = int(number)
    addresses[address] += 1
right, bare, wrong = 0, 0, []
for pid, count, names in scripts(capture.load(sys.argv[1])):
    if pid not in truth:
        continue
    made = [name for name in names if re.match(r"w\d+_", name)]
    wrong += [(pid, name) for name in names if not name or (name in made and not name.startswith("w%d_" % truth[pid]))]
    right += count if made else 0
    bare += 0 if made else count
shared = max(addresses.values(), default=0)
for pid, name in wrong[:8]:
    print(f"process {pid}, worker {truth[pid]}, has {name or 'a frame without a name'}")
print(f"{right} samples of {len(truth)} workers with functions of their own, {bare} without, {len(wrong)} wrong names; {shared} had code at the same address")
sys.exit(1 if wrong or right < int(sys.argv[4]) or shared < 2 else 0)
