#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Asks every path of docs/api.md and looks for every member that the document names in the answer.

usage: api.py API.md URL FUNCTION      FUNCTION: one that the store knows
"""
import gzip
import json
import re
import sys
import urllib.error
import urllib.parse
import urllib.request

document, base, function = sys.argv[1:]
text_of_document = open(document).read()
sys.setrecursionlimit(100000)  # a tree is as deep as the stacks are
failures = 0
# Parameters with which the document's paths are asked, beside the range.
PARAMETERS = {
    "sandwich": {"function": function},
    "values": {"label": "comm"},
    "top": {"strip": "4", "by": "comm"},
    "export": {"format": "folded"},
}


def fail(text):
    global failures
    failures += 1
    print(text)


def ask(path, params, **headers):
    request = urllib.request.Request(f"{base}{path}?{urllib.parse.urlencode(params)}", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            body = answer.read()
            if answer.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            return answer.status, answer.headers, body
    except urllib.error.HTTPError as e:
        return e.code, e.headers, e.read()


def members(value, found):
    if isinstance(value, dict):
        for key, inner in value.items():
            found.add(key)
            members(inner, found)
    elif isinstance(value, list):
        for inner in value:
            members(inner, found)
    return found


def documented(section):
    """Names before a colon in code, and those that stand alone in `{"a", "b"}`."""
    names = set()
    for code in re.findall(r"```json\n(.*?)```|`(\{.*?\})`", section, re.S):
        text = "".join(code)
        names |= set(re.findall(r'"([a-z_0-9]+)": ', text))
        names |= set(re.findall(r'[{,] ?"([a-z_0-9]+)"(?=, "|, TREE|\}|, \.\.\.)', text)) if '": ' not in text else set()
    return names - {"error"}


# Times that stand still, while more comes in.
kept = json.loads(ask("/api/v1/status", {})[2])["store"]
RANGE = {"from": repr(kept["first"]), "to": repr(kept["last"] - 1)}
PARAMETERS["diff"] = {"noise": "1", "from2": repr(kept["first"] + 1), "to2": RANGE["to"]}

ask("/api/v1/nothing", {})  # so that one request has failed
sections = re.split(r"\n## ", text_of_document)
asked = 0
for section in sections:
    title = section.splitlines()[0]
    for path in re.findall(r"(/api/v1/[a-z]+)", title if title.startswith("GET") else ""):
        name = path.rsplit("/", 1)[1]
        params = {**RANGE, **PARAMETERS.get(name, {})} if name != "status" else {}
        status, headers, body = ask(path, params)
        asked += 1
        if status != 200:
            fail(f"{path}: {status} {body[:200]}")
            continue
        etag = headers.get("ETag")
        if name not in ("status", "truth"):
            status, _, again = ask(path, params, **{"If-None-Match": etag or ""})
            if status != 304:
                fail(f"{path}: sent again to who has it, {'as it was' if again == body else f'otherwise: {again[:300]}, before: {body[:300]}'}")
        # What it takes it says to who asks for something else, and so does the document.
        status, _, refusal = ask(path, {**params, "sevice": "x"})
        told = re.fullmatch(f"'sevice' is no parameter of {path}, which takes(?: none|: ([a-z_0-9, ]+))", json.loads(refusal).get("error", ""))
        taken = (told[1] or "").split(", ") if told else []
        unknown = [p for p in filter(None, taken) if not re.search(rf"[`?]{p.removesuffix('2')}[`=]", text_of_document)]
        if status != 400 or not told or unknown or not set(params) <= set(taken):
            fail(f"{path}: {status} {refusal[:500]}, of which the document has no {unknown}")
        for p in filter(None, taken):
            status, _, refusal = ask(path, [(p, ""), (p, "")])
            if status != 400 or json.loads(refusal)["error"] != f"'{p}' is given twice: {path} takes it once":
                fail(f"{path} with {p} twice: {status} {refusal[:200]}")
        if name == "export":
            if b";" not in body or "attachment" not in headers.get("Content-Disposition", ""):
                fail(f"{path}: {headers} {body[:100]}")
            continue
        found = members(json.loads(body), set())
        # Three paths share a section, and what has no element has no members.
        wanted = documented(section) if title.count("/api/v1/") == 1 else {name}
        missing = wanted - found - {"kind" if name in ("labels", "series") else ""}
        if name == "truth":
            missing -= {"reason", "outcome"}
        if name == "inside" and kept["kind"] == "clickhouse":
            missing -= {"name", "bytes"}  # of its tables
        if name == "status":
            missing -= {"hearth_..."}
        if missing:
            fail(f"{path}: the answer has no {sorted(missing)}")
if asked < 14:
    fail(f"only {asked} paths are documented")

for path, params, wanted in (
    ("/api/v1/flamegraph", {"from": "then"}, 400),
    ("/api/v1/flamegraph", {"query": "{comm"}, 400),
    ("/api/v1/nothing", {}, 404),
    ("/api/v1/export", {"format": "nothing"}, 400),
):
    status, _, body = ask(path, params)
    if status != wanted or (status == 400 and not json.loads(body)["error"]):
        fail(f"{path} {params}: {status} {body[:200]}")

# A word is a process, or a function; each view says which. What is not there is answered with what is.
by_name = json.loads(ask("/api/v1/flamegraph", {**RANGE, "query": '{exe="spin-api"}'})[2])["total"]
by_function = json.loads(ask("/api/v1/flamegraph", {**RANGE, "focus": "spin_outer", "query": '{pid!=""}'})[2])["total"]
for word, taken, total in (("SPIN-a", "exe", by_name), ("Spin_Outer", "function", by_function), ('{exe="spin-api"} spin-', "exe", by_name), ("absent-name", "function", 0)):
    for path in ("flamegraph", "top", "timeline", "heatmap", "diff", "sandwich"):
        answer = json.loads(ask(f"/api/v1/{path}", {**RANGE, **PARAMETERS.get(path, {}), "query": word, **({"noise": "", "from2": RANGE["from"]} if path == "diff" else {})})[2])
        got = answer["whole" if path == "sandwich" else "total"], answer["word"]["as"]
        if got != (total, taken) or answer["word"]["values"] != (["spin-api"] if taken == "exe" else []) or ("nearest" in answer) != (not total):
            fail(f"{path} of the word {word}: {got}, not {total} of {taken}: {answer['word']} {answer.get('nearest')}")
if not by_name or not by_function:
    fail(f"{by_name} of spin-api, {by_function} of spin_outer")
status, _, body = ask("/api/v1/export", {**RANGE, "query": "spin-api", "format": "folded"})
if status != 200 or b"spin_inner" not in body or sum(int(line.rsplit(b" ", 1)[1]) for line in body.splitlines()) != by_name:
    fail(f"export of a word: {status} {body[:200]}")
for query, near in (('{exe="spn-api"}', "spn-api"), ("spni-ap", "spni-ap"), ('{pid!="", exe="spin-ap"}', "spin-ap")):
    answer = json.loads(ask("/api/v1/top", {**RANGE, "query": query})[2])
    if {"label": "exe", "value": "spin-api", "instead_of": near} not in answer["nearest"]:
        fail(f"nearest to {query}: {answer['nearest']}")
for query in ("two words", "{spin-api}", '"spin', "spin}"):
    status, _, body = ask("/api/v1/top", {"query": query})
    if status != 400 or not json.loads(body)["error"].startswith("query: "):
        fail(f"{query}: {status} {body[:200]}")

# Totals agree, however they are asked for.
whole = json.loads(ask("/api/v1/flamegraph", RANGE)[2])["total"]
for path, params in (("timeline", {}), ("timeline", {"by": "comm", "limit": "2"}), ("top", {}), ("flamegraph", {"max_nodes": "20"}),
                     ("flamegraph", {"by": "tid"}), ("flamegraph", {"inline": "0"}), ("heatmap", {"columns": "7", "rows": "3"})):
    answer = json.loads(ask(f"/api/v1/{path}", {**RANGE, **params})[2])
    if answer["total"] != whole or not whole:
        fail(f"{path} {params}: {answer['total']} in all, not {whole}")
    parts = answer.get("series") and sum(sum(s["weights"]) for s in answer["series"])
    if parts not in (None, whole):
        fail(f"{path} {params}: the parts are {parts}, not {whole}")
flame = json.loads(ask("/api/v1/flamegraph", {**RANGE, "max_nodes": "20"}, **{"Accept-Encoding": "gzip"})[2])
if len(flame["nodes"]["self"]) > 20 or sum(flame["nodes"]["self"]) != whole:
    fail(f"cut to 20: {len(flame['nodes']['self'])} nodes, {sum(flame['nodes']['self'])} of {whole}")

# What each type of function weighs is what all rows of top add up to, however much of the picture is cut.
for params in ({}, {"inline": "0"}, {"by": "comm"}, {"query": '{pid!=""}'}):
    table = json.loads(ask("/api/v1/top", {**RANGE, **params, "limit": "100000"})[2])
    sums = {}
    for row in table["rows"]:
        sums[row["type"]] = sums.get(row["type"], 0) + row["self"]
    for path, more in (("top", {"limit": "1"}), ("flamegraph", {"max_nodes": "20"}), ("flamegraph", {}), ("diff", {"from2": RANGE["from"], "max_nodes": "9"})):
        answer = json.loads(ask(f"/api/v1/{path}", {**RANGE, **params, **more})[2])
        told = {t["type"]: t["self"] for t in answer["types"] if t["self"]}
        if told != {t: w for t, w in sums.items() if w}:
            fail(f"{path} {params} {more}: types are {told}, the rows of top add up to {sums}")
        if path == "diff" and any(t["self"] != t["self2"] or t["unnamed"] != t["unnamed2"] for t in answer["types"]):
            fail(f"diff {params} of equal sides: {answer['types']}")
sys.exit(failures != 0)
