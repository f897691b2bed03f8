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
sys.setrecursionlimit(100000)  # a tree is as deep as the stacks are
failures = 0
# What the document's paths are asked with, beside the range.
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
PARAMETERS["diff"] = {"from2": repr(kept["first"] + 1), "to2": RANGE["to"]}

sections = re.split(r"\n## ", open(document).read())
asked = 0
for section in sections:
    title = section.splitlines()[0]
    for path in re.findall(r"(/api/v1/[a-z]+)", title if title.startswith("GET") else ""):
        name = path.rsplit("/", 1)[1]
        status, headers, body = ask(path, {**RANGE, **PARAMETERS.get(name, {})})
        asked += 1
        if status != 200:
            fail(f"{path}: {status} {body[:200]}")
            continue
        etag = headers.get("ETag")
        if name not in ("status", "truth") and ask(path, {**RANGE, **PARAMETERS.get(name, {})}, **{"If-None-Match": etag or ""})[0] != 304:
            fail(f"{path}: sent again to who has it")
        if name == "export":
            if b";" not in body or "attachment" not in headers.get("Content-Disposition", ""):
                fail(f"{path}: {headers} {body[:100]}")
            continue
        found = members(json.loads(body), set())
        # Three paths share a section, and what has no element has no members.
        wanted = documented(section) if title.count("/api/v1/") == 1 else {name}
        missing = wanted - found - {"kind" if name in ("labels", "series") else ""}
        if name == "truth":
            missing -= {"reason"}
        if name == "status":
            missing -= {"hearth_..."} | ({"path", "bytes", "status"} if not json.loads(body)["requests"] else set())
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
sys.exit(failures != 0)
