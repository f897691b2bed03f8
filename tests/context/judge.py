#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Judges links and labels of samples by the function that they are in.

usage: judge.py [--kind KEY] [--spans FILE] [--resource KEY=VALUE]... [--none] [--min PERCENT] [--least SAMPLES] [--outside PERCENT]
                CAPTURE PROGRAM

PROGRAM is spans.go's or spans.c's: a sample in workN has a link whose span ends with the byte N, and the label KEY with the value workN; one
in outside has neither. --spans: which spans there were, lines "TRACE SPAN N"; then only the link is judged. --none: no sample has any. --resource: an attribute of the process. Exit status 1 when fewer than PERCENT (99.9) of the
samples in spans are right, or more than --outside (0) of the others have a span, or fewer than SAMPLES (200) are in spans; 77 without
Python's protobuf."""
import argparse
import collections
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../truth"))
import capture  # noqa: E402

SPAN = re.compile(r"^(?:main\.)?work([0-9])$")
OUTSIDE = re.compile(r"^(?:main\.)?outside$")


class Judge:
    def __init__(self, args):
        self.args = args
        self.data = capture.load(args.capture)
        self.capture = capture.Capture(self.data)
        self.tables = self.data.dictionary
        self.counts = collections.Counter()
        self.wrong = collections.Counter()
        self.traces = set()
        self.spans = {span: (trace, int(n)) for trace, span, n in (line.split() for line in open(args.spans))} if args.spans else None

    def functions(self, sample):
        strings = self.tables.string_table
        for index in self.tables.stack_table[sample.stack_index].location_indices:
            for line in self.tables.location_table[index].lines:
                yield strings[self.tables.function_table[line.function_index].name_strindex]

    def expected(self, sample):
        """The number of its span's kind; -1: outside; None: neither can be told."""
        for name in self.functions(sample):
            found = SPAN.match(name)
            if found:
                return int(found.group(1))
            if OUTSIDE.match(name):
                return -1
        return None

    def see(self, sample, kind):
        n = max(len(sample.timestamps_unix_nano), 1)
        link = self.tables.link_table[sample.link_index]
        labels = self.capture.attributes(sample.attribute_indices)
        value = labels.get(self.args.kind)
        wanted = self.expected(sample)
        if wanted is None:
            self.counts["unknown"] += n
            return
        has = bool(sample.link_index or value)
        if self.args.none or wanted < 0:
            self.counts["outside"] += n
            if has:
                self.counts["linked outside"] += n
                self.wrong[f"outside: span {link.span_id.hex()} {value}"] += n
            return
        self.counts["inside"] += n
        self.counts[f"inside, {kind}"] += n
        if self.is_right(link, wanted, value):
            self.counts["right"] += n
            self.traces.add(link.trace_id)
        else:
            self.wrong[f"work{wanted}: span {link.span_id.hex()} {value}"] += n

    def is_right(self, link, wanted, value):
        if self.spans is not None:
            return self.spans.get(link.span_id.hex()) == (link.trace_id.hex(), wanted)
        right = len(link.span_id) == 8 and link.span_id[7] == wanted and any(link.span_id[:6]) and link.trace_id[15] == link.span_id[6] + 1
        return right and value == f"work{wanted}"

    def judge(self):
        strings, seen = self.tables.string_table, 0
        for resource in self.data.resource_profiles:
            facts = {a.key: a.value for a in resource.resource.attributes}
            if "process.executable.path" not in facts or os.path.basename(facts["process.executable.path"].string_value) != self.args.program:
                continue
            seen += 1
            texts = {key: value.string_value for key, value in facts.items()}
            for key, value in (r.split("=", 1) for r in self.args.resource):
                self.counts[f"{key}={value}"] += texts.get(key) == value
            for profile in (p for scope in resource.scope_profiles for p in scope.profiles):
                for sample in profile.samples:
                    self.see(sample, strings[profile.sample_type.type_strindex])
        for wanted in self.args.resource:
            if not self.counts[wanted]:
                print(f"no resource of {seen} has {wanted}")
                return False
        return self.is_good()

    def is_good(self):
        c, args = self.counts, self.args
        for text, n in self.wrong.most_common(8):
            print(f"{n:6} {text}")
        print(", ".join(f"{n} {name}" for name, n in sorted(c.items())), f"{len(self.traces)} traces")
        if c["linked outside"] * 100 > args.outside * c["outside"]:
            return False
        if args.none:
            return c["outside"] >= args.least
        return c["inside"] >= args.least and c["right"] * 100 >= args.min * c["inside"]


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--kind", default="process.context.label.kind")
    parser.add_argument("--spans")
    parser.add_argument("--resource", action="append", default=[])
    parser.add_argument("--none", action="store_true")
    parser.add_argument("--min", type=float, default=99.9)
    parser.add_argument("--least", type=int, default=200)
    parser.add_argument("--outside", type=float, default=0)
    parser.add_argument("capture")
    parser.add_argument("program")
    sys.exit(0 if Judge(parser.parse_args()).judge() else 1)


main()
