#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks a ProfilesData message against the rules that OTLP profiles have beyond the schema, and against what receivers insist
on. Repeated and unused entries break none: a capture is written in chunks, and what an earlier one holds may come again.
    PYTHONPATH=(protoc's output) otlp_rules.py PACKAGE FILE

Prints the broken rules, a few examples each; exit status 1 when there are any."""
import collections
import glob
import importlib
import os
import sys

from google.protobuf import symbol_database

TABLES = ("mapping_table", "location_table", "function_table", "link_table", "string_table", "attribute_table", "stack_table")
EXAMPLES = 3
broken = collections.defaultdict(list)


def rule(holds, text, where=""):
    if not holds:
        broken[text].append(where)


def load(package, path):
    for file in glob.glob(os.path.join(os.environ["PYTHONPATH"], "*_pb2.py")):
        importlib.import_module(os.path.basename(file)[:-3])
    data = symbol_database.Default().GetSymbol(f"{package}.ProfilesData")()
    with open(path, "rb") as f:
        data.ParseFromString(f.read())
    return data


class Checker:
    def __init__(self, data):
        self.data = data
        self.dictionary = data.dictionary
        self.sizes = {t: len(getattr(self.dictionary, t)) for t in TABLES}
        self.used = {t: {0} for t in TABLES}

    def index(self, table, i, where):
        rule(0 <= i < self.sizes[table], f"an index lies within {table}", f"{where}: {i} of {self.sizes[table]}")
        self.used[table].add(i)

    def string(self, i, where):
        self.index("string_table", i, where)

    def attributes(self, indices, where):
        keys = []
        for i in indices:
            self.index("attribute_table", i, where)
            if 0 < i < self.sizes["attribute_table"]:
                keys.append(self.text(self.dictionary.attribute_table[i].key_strindex))
            rule(i != 0, "no list of attributes names entry 0", where)
        rule(len(keys) == len(set(keys)), "keys are unique within a list of attributes", f"{where}: {keys}")
        return keys

    def text(self, i):
        strings = self.dictionary.string_table
        return strings[i] if 0 <= i < len(strings) else "?"

    def tables(self):
        d = self.dictionary
        for name in TABLES:
            table = getattr(d, name)
            rule(len(table) > 0, "every table has an entry 0", name)
            if table and name == "string_table":
                rule(table[0] == "", "string 0 is empty")
            elif table:
                rule(table[0].ByteSize() == 0, "entry 0 of every table is all defaults", f"{name}: {table[0]}")
        for i, m in enumerate(d.mapping_table):
            where = f"mapping {i}"
            self.string(m.filename_strindex, where)
            keys = self.attributes(m.attribute_indices, where)
            rule(m.memory_start < m.memory_limit or m.memory_start == m.memory_limit == 0, "a mapping starts before it ends", where)
            rule(i == 0 or not m.memory_limit or any("build_id" in k for k in keys), "a mapping carries a build id", f"{where}: {keys}")
        for i, l in enumerate(d.location_table):
            where = f"location {i}"
            self.index("mapping_table", l.mapping_index, where)
            keys = self.attributes(l.attribute_indices, where)
            rule(i == 0 or "profile.frame.type" in keys, "a location says its frame type", where)
            for line in l.lines:
                self.index("function_table", line.function_index, where)
                rule(line.line >= 0 and line.column >= 0, "lines and columns are not negative", where)
        for i, f in enumerate(d.function_table):
            for s in (f.name_strindex, f.system_name_strindex, f.filename_strindex):
                self.string(s, f"function {i}")
            rule(i == 0 or f.name_strindex or f.system_name_strindex or f.filename_strindex, "a function has a name", f"function {i}")
            rule(f.start_line >= 0, "start lines are not negative", f"function {i}")
        for i, l in enumerate(d.link_table[1:], 1):
            rule(len(l.trace_id) == 16 and len(l.span_id) == 8, "a link has ids of 16 and 8 bytes", f"link {i}")
        for i, a in enumerate(d.attribute_table):
            self.string(a.key_strindex, f"attribute {i}")
            self.string(a.unit_strindex, f"attribute {i}")
            if i:
                rule(a.key_strindex != 0, "an attribute has a key", f"attribute {i}")
                rule(a.value.WhichOneof("value") is not None, "an attribute has a value", f"attribute {i}")
        for i, s in enumerate(d.stack_table):
            for l in s.location_indices:
                self.index("location_table", l, f"stack {i}")
                rule(l != 0, "no stack names location 0", f"stack {i}")

    def profile(self, p, where):
        for kind in "sample_type", "period_type":
            rule(p.HasField(kind), f"{kind} is present", where)
            self.string(getattr(p, kind).type_strindex, where)
            self.string(getattr(p, kind).unit_strindex, where)
        self.attributes(p.attribute_indices, where)
        rule(len(p.profile_id) == 16 and any(p.profile_id), "a profile id has 16 bytes that are not all zero", where)
        shapes, identities = set(), set()
        for i, s in enumerate(p.samples):
            at = f"{where} sample {i}"
            self.index("stack_table", s.stack_index, at)
            self.index("link_table", s.link_index, at)
            keys = self.attributes(s.attribute_indices, at)
            rule("thread.name" in keys, "a sample says its thread's name", at)
            shape = (bool(s.values), bool(s.timestamps_unix_nano))
            shapes.add(shape)
            rule(any(shape), "a sample has values or timestamps", at)
            rule(shape != (True, True) or len(s.values) == len(s.timestamps_unix_nano), "values and timestamps are as many", at)
            rule(shape != (True, False) or len(s.values) == 1, "values without timestamps are one", at)
            for t in s.timestamps_unix_nano:
                rule(p.time_unix_nano <= t < p.time_unix_nano + p.duration_nano, "a timestamp lies in its profile's window",
                     f"{at}: {t} in {p.time_unix_nano} + {p.duration_nano}")
            identities.add((s.stack_index, frozenset(s.attribute_indices), s.link_index))
        rule(len(shapes) <= 1, "all samples of a profile have one shape", where)
        rule(len(identities) == len(p.samples), "samples of one identity are merged", where)
        return len(p.samples)

    def run(self):
        self.tables()
        samples, ids = 0, []
        rule(len(self.data.resource_profiles) > 0, "there is a resource")
        for r, resource in enumerate(self.data.resource_profiles):
            rule(resource.HasField("resource"), "the resource message is present", f"resource {r}")
            keys = [a.key for a in resource.resource.attributes]
            rule(all(keys) and len(keys) == len(set(keys)), "resource attributes have keys inline, each once", f"resource {r}: {keys}")
            rule(all(not a.key_strindex and a.value.WhichOneof("value") not in (None, "string_value_strindex")
                     for a in resource.resource.attributes), "resource attributes have values inline", f"resource {r}")
            rule(len(resource.scope_profiles) > 0, "a resource has a scope", f"resource {r}")
            for scope in resource.scope_profiles:
                rule(scope.HasField("scope"), "the scope message is present", f"resource {r}")
                rule(len(scope.profiles) > 0, "a scope has a profile", f"resource {r}")
                for i, p in enumerate(scope.profiles):
                    samples += self.profile(p, f"resource {r} profile {i}")
                    ids.append(p.profile_id)
        rule(samples > 0, "there are samples")
        rule(len(ids) == len(set(ids)), "profile ids are unique")
        return samples, len(ids)


def main():
    checker = Checker(load(sys.argv[1], sys.argv[2]))
    samples, count = checker.run()
    print(f"{count} profiles, {samples} samples")
    for name, size in checker.sizes.items():
        print(f"{name}: {size} entries, {size - len(checker.used[name])} of them unused")
    for text, where in broken.items():
        print(f"BROKEN: {text}; {len(where)} times, as in: {'; '.join(w for w in where[:EXAMPLES] if w)}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
