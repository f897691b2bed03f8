#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Judges what code made by tests/system/jit_maker.c was called in a capture: the function that calls made code tells its name.

usage: jit_judge.py CAPTURE PROGRAM KIND LEAST [MOST_WRONG [SECOND]]

KIND is named (each made function under the caller of its name), unnamed (none has a name), or another word: all are called that.
At least LEAST stacks must be so, and none otherwise (MOST_WRONG: so many may). SECOND: lines are told, 10 in the first loop and 20
in the second, which begins at that offset. Exit status 77 without Python's protobuf."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../truth"))
import capture  # noqa: E402

SPACING = 4096


class Judge:
    def __init__(self, path):
        self.data = capture.load(path)
        self.capture = capture.Capture(self.data)
        self.tables = self.data.dictionary

    def function(self, location):
        return self.tables.function_table[location.lines[-1].function_index] if location.lines else None

    def name(self, location):
        f = self.function(location)
        return self.tables.string_table[f.name_strindex] if f else ""

    def calls(self, program):
        """Yields (count, caller's name, location of what it called)."""
        for resource in self.data.resource_profiles:
            paths = [a.value.string_value for a in resource.resource.attributes if a.key == "process.executable.path"]
            if not paths or os.path.basename(paths[0]) != program:
                continue
            for profile in (p for scope in resource.scope_profiles for p in scope.profiles):
                for sample in profile.samples:
                    stack = self.tables.stack_table[sample.stack_index].location_indices
                    locations = [self.tables.location_table[i] for i in reversed(stack)]
                    count = max(len(sample.timestamps_unix_nano), sum(sample.values))
                    for caller, called in zip(locations, locations[1:]):
                        kind = self.capture.attributes(called.attribute_indices).get("profile.frame.type")
                        if self.name(caller).startswith("calls_made_") and kind != "kernel":
                            yield count, self.name(caller), called


def main():
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    path, program, kind, least = *sys.argv[1:4], int(sys.argv[4])
    most_wrong = int(sys.argv[5]) if len(sys.argv) > 5 else 0
    second = int(sys.argv[6]) if len(sys.argv) > 6 else None
    judge = Judge(path)
    right, wrong, bad_lines, wrongs = 0, 0, 0, {}
    for count, caller, called in judge.calls(program):
        name = judge.name(called)
        wanted = {"named": caller.removeprefix("calls_"), "unnamed": ""}.get(kind, kind)
        if name == wanted:
            right += count
        else:
            wrong += count
            wrongs[caller, name] = wrongs.get((caller, name), 0) + count
        if second is not None and name:
            line = called.lines[-1].line
            file = judge.tables.string_table[judge.function(called).filename_strindex]
            bad_lines += (file, line) != ("/made/up.c", 10 if called.address % SPACING < second else 20)
    print(f"{program}: {right} samples of made code as they should be, {wrong} not" + (f"; {bad_lines} lines wrong" if second else ""))
    for (caller, name), count in wrongs.items():
        print(f"    {caller} called '{name}' {count} times")
    return right < least or wrong > most_wrong or bad_lines > 0


sys.exit(main())
