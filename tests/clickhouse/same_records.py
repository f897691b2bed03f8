#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Asks two hearths that were sent the same about traces, logs and exemplars, and says where they differ.

usage: same_records.py URL URL

A log line has a number of its own in each. Of records of one time the order does not matter."""
import json
import sys
import urllib.error
import urllib.parse
import urllib.request

R = "from=first&to=last"
SLOW = "00000000000000000000000000000005"
SELECTORS = ['{service.name="shop"}', '{service.name!="shop"}', '{span_name="query"}', '{span_name=~"GET .*"}', '{span_name!~"GET .*"}', '{process.pid="80"}',
             '{nothing=""}', '{nothing!=""}', f'{{trace_id="{SLOW}"}}', '{trace_id=""}', '{span_id=~"0+43"}', '{metric="request.duration"}', '{metric=""}',
             '{service.name="no such"}', '{host.name="box", span_name="POST /mail"}']
QUESTIONS = [f"{path}?{R}&limit=5000&query={urllib.parse.quote(s)}" for path in ("traces", "logs", "exemplars") for s in SELECTORS] + [
    f"traces?{R}&limit=3", f"traces?{R}&sort=newest&limit=5", f"traces?{R}&sort=heaviest", f"logs?{R}&severity=error", f"logs?{R}&severity=fatal",
    f"logs?{R}&text=REQUEST%2014", f"logs?{R}&text=%25", f"logs?{R}&limit=1", f"trace/{SLOW}", f"trace/{SLOW}/flamegraph?kind=cpu", "trace/" + "f" * 32 + "?" + R,
    "span/0000000000000043/flamegraph", "span/0000000000000043/where", "span/0000000000000041/where", f"flamegraph?{R}&kind=off_cpu&query=%7Bspan_name%3D%22query%22%7D"]


def ask(url, question):
    try:
        with urllib.request.urlopen(f"{url}/api/v1/{question}", timeout=60) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as e:
        return {"status": e.code}


def plain(value):
    """Without numbers of log lines; lists in an order of their own."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items() if k not in ("id", "store")}
    if isinstance(value, list):
        return sorted((plain(v) for v in value), key=lambda v: json.dumps(v, sort_keys=True))
    return value


def main():
    failures, records = 0, 0
    for question in QUESTIONS:
        one, two = (plain(ask(url, question)) for url in sys.argv[1:3])
        records += sum(len(one.get(key, [])) for key in ("traces", "logs", "exemplars", "spans"))
        if one != two:
            failures += 1
            print(f"{question}:\n  {json.dumps(one)[:1500]}\n  {json.dumps(two)[:1500]}")
    for url in sys.argv[1:3]:
        for log in ask(url, f"logs?{R}")["logs"]:
            where = ask(url, f"log/{log['id']}/where")
            if where.get("joined") != "link" or log["trace_id"] not in where["query"]:
                failures += 1
                print(f"{url}: log {log}: {where}")
    print(f"{len(QUESTIONS)} questions, {records} records, {failures} answers differ")
    sys.exit(1 if failures or not records else 0)


main()
