#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the stacks of a capture as check.py wants them, read by protobuf's own decoder from the project's schema.

usage: capture.py CAPTURE

One line a sample: COUNT, PROGRAM (path of the executable, or the thread's name where that is not known), END (why the stack is
truncated, or "-"), then the frames, root first; all separated by tabs. A user frame is "MODULE|ADDRESS|NAME" with the address as
the file has it and nothing for what has no name, a kernel frame is "kernel||NAME". Needs protoc and python3-protobuf; says so
with exit status 77 where they are missing."""
import glob
import importlib
import os
import re
import subprocess
import sys
import tempfile

SCHEMA = os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../proto/opentelemetry")
SYSTEM_PYTHON = "/usr/bin/python3"  # another one may come first in the path and lack the distribution's protobuf


def protobuf():
    """The symbol database, under a Python that has it."""
    try:
        from google.protobuf import symbol_database
        return symbol_database.Default()
    except ImportError:
        if os.path.realpath(sys.executable) == os.path.realpath(SYSTEM_PYTHON) or not os.path.exists(SYSTEM_PYTHON):
            print("no Python with protobuf here")
            sys.exit(77)
        os.execv(SYSTEM_PYTHON, [SYSTEM_PYTHON, *sys.argv])


def load(path):
    """The ProfilesData message of a capture."""
    database = protobuf()
    sources = sorted(glob.glob(os.path.join(SCHEMA, "*.proto")))
    package = None
    for source in sources:
        with open(source, encoding="utf-8") as f:
            text = f.read()
        if re.search(r"^message ProfilesData\b", text, re.M):
            package = re.search(r"^package (.*);", text, re.M).group(1)
    with tempfile.TemporaryDirectory() as out:
        subprocess.run(["protoc", "-I", SCHEMA, f"--python_out={out}", *sources], check=True)
        sys.path.insert(0, out)
        sys.dont_write_bytecode = True
        for module in sorted(os.listdir(out)):
            importlib.import_module(module.removesuffix(".py"))
    data = database.GetSymbol(f"{package}.ProfilesData")()
    with open(path, "rb") as f:
        data.ParseFromString(f.read())
    return data


class Capture:
    def __init__(self, data):
        self.data = data
        self.tables = data.dictionary
        self.strings = data.dictionary.string_table
        self.frames = [self.frame(l) for l in self.tables.location_table]

    def attributes(self, indices):
        entries = (self.tables.attribute_table[i] for i in indices)
        return {self.strings[e.key_strindex]: e.value.string_value for e in entries}

    def frame(self, location):
        """Of inlined functions the outermost, the one that has the frame."""
        name = self.strings[self.tables.function_table[location.lines[-1].function_index].name_strindex] if location.lines else ""
        if self.attributes(location.attribute_indices).get("profile.frame.type") == "kernel":
            return f"kernel||{name}"
        module = self.strings[self.tables.mapping_table[location.mapping_index].filename_strindex]
        return f"{module}|{location.address:#x}|{name}"

    def stacks(self):
        """Yields (count, program, end, frames root first)."""
        for resource in self.data.resource_profiles:
            process = {a.key: a.value.string_value for a in resource.resource.attributes}
            for profile in (p for scope in resource.scope_profiles for p in scope.profiles):
                for sample in profile.samples:
                    thread = self.attributes(sample.attribute_indices)
                    program = process.get("process.executable.path") or thread["thread.name"]
                    stack = self.tables.stack_table[sample.stack_index].location_indices
                    yield (max(len(sample.timestamps_unix_nano), sum(sample.values)), program,
                           thread.get("hearth.stack.truncated", "-"), [self.frames[i] for i in reversed(stack)])


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for count, program, end, frames in Capture(load(sys.argv[1])).stacks():
        print(count, program, end, *frames, sep="\t")


if __name__ == "__main__":
    main()
