#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares demangled names: names.py FOLDER, where names.sh has put them, one file a tool. Each that differs must be explained by
RULES, which take away what tools write differently. The exit status is 1 when one is not."""
import collections
import os
import re
import sys

# (judge, how, what is taken away from both, a pattern and what stands for it). libiberty is the base of hearth and of c++filt, so
# these must be equal; the others are demanglers of their own.
BALANCED = r"\([^()]*(?:\([^()]*(?:\([^()]*(?:\([^()]*\)[^()]*)*\)[^()]*)*\)[^()]*)*\)"
LAMBDA = r"\{lambda" + BALANCED + r"#\d+\}|'lambda\d*'(?:" + BALANCED + ")?"
RULES = {
    "c++filt": [],
    "rustfilt": [
        ("wide", "libiberty writes constants of more than 64 bits wrong", r"-?0x[0-9a-f]{17,}_?(: )?([iu]128)?", "0x"),
        ("crate", "libiberty writes the hash 0 of a name without one", r"\[0\]", ""),
        ("constant", "with hashes libiberty writes 8: usize and true: bool for 8usize and true",
         r"(?<=[0-9a-f]): ?(?=[iu](?:8|16|32|64|128|size))|: (?:bool|char)\b", ""),
        ("suffix", "hearth and c++filt leave out what a compiler put behind a Rust name", r"\.(llvm|cold|warm|part|constprop|isra|[0-9]).*$", ""),
    ],
    "llvm-cxxfilt": [
        ("clone", "[clone .cold] or (.cold)", r"( ?\[clone [^]]*\])+$|( ?\(\.[^)]*\))+$", ""),
        ("spaces", "llvm-cxxfilt writes >> where c++filt writes > >", r"\s+", ""),
        ("lambda", "{lambda(int)#1} or 'lambda'(int), counted from 1 or from nothing; the parameters of generic ones are named differently",
         LAMBDA, "{lambda}"),
        ("unnamed", "{unnamed type#1} or 'unnamed'", r"\{unnamedtype#\d+\}|'unnamed\d*'", "{unnamed}"),
        ("tag", "llvm-cxxfilt loses the name of a constructor of a class with an ABI tag", r"(\w+)\[abi:cxx11\]::(~?)\1\(", r"\1[abi:cxx11]::\2("),
        ("nullptr", "two ways to write the type of nullptr", r"decltype\(nullptr\)|std::nullptr_t", "nullptr_t"),
        ("abbreviation", "llvm-cxxfilt abbreviates the standard streams and strings",
         r"std::(basic_)?(istream|ostream|iostream|string)(<char,std::char_traits<char>(,std::allocator<char>)?>)?", r"std::\2"),
    ],
}
EVERYTHING = "expression"  # what is left: the same words in the same order, with other brackets and return types


def skeleton(name):
    """The name's own words, at its end: without arguments and what stands before them."""
    name = re.sub(r"operator\(\)", "operator@", name)
    while name != (shorter := re.sub(r"<[^<>]*>|\([^()]*\)|\{[^{}]*\}|\[[^][]*\]", "", re.sub(r"->|operator[<>=-]+", "op", name))):
        name = shorter
    return re.sub(r"const$|&+$", "", name).split("::")[-1][-40:]


def explain(mine, judge, rules):
    judge_is_cxx = rules is RULES["llvm-cxxfilt"]
    used = []
    for key, _, pattern, put in rules:
        a, b = re.sub(pattern, put, mine), re.sub(pattern, put, judge)
        if (a, b) != (mine, judge):
            used.append(key)
        mine, judge = a, b
        if mine == judge:
            return used[-1]
    if judge_is_cxx and skeleton(mine) == skeleton(judge):
        return EVERYTHING
    return None


def is_rust(name):
    return name.startswith("_R") or bool(re.search(r"17h[0-9a-f]{16}E(\.|$)", name))


def compare(title, names, mine, judge, rules, wanted):
    count = collections.Counter()
    for name, a, b in zip(names, mine, judge):
        if not wanted(name):
            continue
        count["names"] += 1
        if a == b:
            count["equal"] += 1
            continue
        if b == name:
            key = "judge cannot"
        elif a == name:
            key = "hearth cannot"
        else:
            key = explain(a, b, rules)
        count[key or "UNEXPLAINED"] += 1
        if not key and count["UNEXPLAINED"] <= 5:
            print(f"  {name}\n    hearth {a}\n    judge  {b}")
    print(f"{title}: " + ", ".join(f"{n} {key}" for key, n in count.items()))
    return count


def bounded(names, mine, whole):
    """A short name is the whole one with '...' in place of parts of it."""
    wrong = 0
    cut = 0
    for name, a, b in zip(names, mine, whole):
        if a == b or is_rust(name) and a.split("...")[0] == b.split("...")[0]:
            continue
        parts = re.sub(r"( \[clone [^]]*\])+$", "", a).split("...")
        cut += len(parts) > 1
        at = 0
        for part in parts:
            at = b.find(part, at)
            if at < 0:
                break
            at += len(part)
        if at < 0 or len(a.encode()) > 512:
            wrong += 1
            print(f"  {name}\n    short {a}\n    whole {b}")
    print(f"short: {len(names)} names, {cut} made shorter, {wrong} wrong")
    return wrong


def main():
    def load(name):
        path = os.path.join(sys.argv[1], name)
        return open(path, encoding="utf-8", errors="surrogateescape").read().splitlines() if os.path.exists(path) else None

    names = load("names")
    wrong = bounded(names, load("short"), load("cxxfilt_short"))
    pairs = [
        ("c++filt", "full", "cxxfilt", "c++filt", lambda n: not is_rust(n)),
        ("c++filt, Rust with hashes", "full_hash", "cxxfilt", "c++filt", is_rust),
        ("rustfilt", "full", "rustfilt", "rustfilt", is_rust),
        ("rustfilt -h", "full_hash", "rustfilt_hash", "rustfilt", is_rust),
        ("llvm-cxxfilt", "full", "llvm", "llvm-cxxfilt", lambda n: not is_rust(n)),
    ]
    for title, mine, judge, rules, wanted in pairs:
        judged = load(judge)
        if judged is None:
            print(f"{title}: not here")
            continue
        count = compare(title, names, load(mine), judged, RULES[rules], wanted)
        wrong += count["UNEXPLAINED"] + count["hearth cannot"] * (rules == "c++filt")
    for rules in RULES.values():
        for key, reason, *_ in rules:
            print(f"  {key}: {reason}")
    print(f"  {EVERYTHING}: other brackets in expressions, other return types; the name's own last part is equal")
    return 1 if wrong or not names else 0


if __name__ == "__main__":
    sys.exit(main())
