#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Asks two hearths that were sent the same the same, and says where they differ.

usage: same.py URL URL PATH?QUERY...

The order of equally heavy rows does not matter, nor what a function was met in first: its file and build id; nor a log line's number.
"""
import json
import sys
import urllib.error
import urllib.parse
import urllib.request

urls, questions = sys.argv[1:3], sys.argv[3:]
failures = 0


def ask(url, question):
    path, _, query = question.partition("?")
    # The JSON is compared, so what a shell may not write is written here.
    query = urllib.parse.urlencode(urllib.parse.parse_qsl(query, keep_blank_values=True))
    try:
        with urllib.request.urlopen(f"{url}{path}?{query}", timeout=60) as answer:
            body = answer.read()
    except urllib.error.HTTPError as e:
        if b"is no parameter of" in e.read():
            sys.exit(f"{question}: has a parameter that does not count")
        body = b'{"status": %d}' % e.code
    try:
        return json.loads(body)
    except ValueError:
        return sorted(body.decode().splitlines())


def stacks(answer):
    """A flame graph as its stacks: numbers of functions and nodes hold within one answer only."""
    names = list(zip(*(answer["functions"][key] for key in ("name", "module", "type"))))
    nodes, paths, found = answer["nodes"], [], {}
    for i, function in enumerate(nodes["function"]):
        above = paths[nodes["parent"][i]] if i else ()
        paths.append(above + (names[function] + (nodes["line"][i], nodes["inlined"][i]),))
        found[repr(paths[-1])] = [nodes[key][i] for key in ("self", "total", "self2", "total2") if key in nodes]
    return found


def plain(value):
    if isinstance(value, dict):
        if "nodes" in value and "functions" in value:
            return {**{k: plain(v) for k, v in value.items() if k not in ("nodes", "functions")}, "stacks": stacks(value)}
        return {k: plain(v) for k, v in value.items() if k not in ("counters", "log", "requests", "resident_bytes", "cpu_seconds", "uptime_seconds", "now", "file", "build_id", "id")}
    if isinstance(value, list):
        return sorted((plain(v) for v in value), key=lambda v: json.dumps(v, sort_keys=True)) if value and not isinstance(value[0], (int, float)) else value
    return value


for question in questions:
    one, two = (plain(ask(url, question)) for url in urls)
    if one != two or not one:
        failures += 1
        print(f"{question}: not the same")
        if isinstance(one, dict) and isinstance(two, dict):
            for key in sorted(set(one) | set(two)):
                if one.get(key) != two.get(key):
                    a, b = one.get(key), two.get(key)
                    if isinstance(a, dict) and isinstance(b, dict):
                        a = {k: v for k, v in a.items() if b.get(k) != v}
                        b = {k: v for k, v in b.items() if one[key].get(k) != v}
                    elif isinstance(a, list) and isinstance(b, list):
                        a, b = [x for x in a if x not in b], [x for x in b if x not in a]
                    print(f"  {key}: {str(a)[:500]}\n  {' ' * len(key)}  {str(b)[:500]}")
        else:
            print(f"  {str(one)[:300]}\n  {str(two)[:300]}")
sys.exit(failures != 0)
