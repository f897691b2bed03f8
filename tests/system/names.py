#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the names in a capture with those that llvm-symbolizer has of the same addresses.

usage: names.py CAPTURE LLVM-SYMBOLIZER PROGRAM=FILE...

For each thread name PROGRAM: the frames in the module of that name, with the names of FILE, which has them. Function (as in the
file), source file, line and column of each frame, inlined calls included, have to be equal wherever the judge knows a line; and
the program has to have at least LEAST samples, one of whose frames has three functions at least."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../truth"))
import capture as truth  # noqa: E402

LEAST = 20
UNNAMED_PERCENT = 1  # code of the C library's own that nothing names, such as .init


def judged(symbolizer, path, addresses):
    """address -> [(function, file, line, column)], innermost first."""
    command = [symbolizer, f"--obj={path}", "--inlines", "--functions=linkage", "--no-demangle"]
    text = subprocess.run(command, input="".join(f"{a:#x}\n" for a in addresses), stdout=subprocess.PIPE, text=True, check=True).stdout
    blocks = text.strip("\n").split("\n\n")
    assert len(blocks) == len(addresses), f"{len(blocks)} answers to {len(addresses)} questions"
    answers = {}
    for address, block in zip(addresses, blocks):
        lines = block.split("\n")
        places = [place.rsplit(":", 2) for place in lines[1::2]]
        answers[address] = [(f, p[0], int(p[1]), int(p[2])) for f, p in zip(lines[::2], places)]
    return answers


def is_same(ours, theirs):
    """A function without a linkage name has its plain name there, and here that with what it is in."""
    return ours[1:] == theirs[1:] and (ours[0] == theirs[0] or ours[0].endswith("::" + theirs[0]))


class Program:
    def __init__(self):
        self.samples = self.frames = self.unnamed = 0
        self.locations = {}  # address -> [(function, file, line, column)]


def gather(data, programs):
    tables, strings = data.dictionary, data.dictionary.string_table
    capture = truth.Capture(data)

    def lines_of(location):
        for line in location.lines:
            f = tables.function_table[line.function_index]
            yield (strings[f.system_name_strindex or f.name_strindex], strings[f.filename_strindex], line.line, line.column)

    for resource in data.resource_profiles:
        for profile in (p for scope in resource.scope_profiles for p in scope.profiles):
            for sample in profile.samples:
                name = capture.attributes(sample.attribute_indices).get("thread.name")
                if name not in programs:
                    continue
                program = programs[name]
                program.samples += len(sample.timestamps_unix_nano)
                for i in tables.stack_table[sample.stack_index].location_indices:
                    location = tables.location_table[i]
                    module = strings[tables.mapping_table[location.mapping_index].filename_strindex]
                    if os.path.basename(module) == name:
                        program.frames += 1
                        program.unnamed += not location.lines
                        program.locations[location.address] = list(lines_of(location))


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    files = dict(word.split("=", 1) for word in sys.argv[3:])
    programs = {name: Program() for name in files}
    gather(truth.load(sys.argv[1]), programs)
    wrong = 0
    for name, program in programs.items():
        addresses = sorted(program.locations)
        answers = judged(sys.argv[2], files[name], addresses) if addresses else {}
        compared = deepest = 0
        for address in addresses:
            ours, theirs = program.locations[address], answers[address]
            if theirs[0][2] == 0:  # no line
                continue
            compared += 1
            deepest = max(deepest, len(ours))
            if len(ours) != len(theirs) or not all(map(is_same, ours, theirs)):
                wrong += 1
                print(f"{name}: {address:#x}: {ours}, but the judge says {theirs}")
        print(f"{name}: {program.samples} samples, {program.frames} frames, {program.unnamed} unnamed, "
              f"{compared} addresses compared, up to {deepest} functions at one")
        if program.samples < LEAST or deepest < 3 or program.unnamed * 100 > program.frames * UNNAMED_PERCENT:
            print(f"{name}: too few samples, no inlined calls, or too few names")
            wrong += 1
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
