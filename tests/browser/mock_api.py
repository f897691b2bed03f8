#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The query API (docs/api.md) over samples in memory, for tests of the page that need to know every number, and for work on it.

usage: mock_api.py [--port N] [--page URL | --folder DIR] [--perf FILE.perf.txt] [--boxes N] [--empty]
    --page    the page's files come from a hearth at URL, headers and all; --folder: from a folder, with no headers of hearth's
    --perf    samples of a capture: `hearth convert x.otlp x.perf.txt`; else made-up ones, always the same (made_up())
    --boxes   /flamegraph answers a tree of N boxes, whatever is asked
Prints the port it listens on."""
import argparse
import collections
import difflib
import http.server
import json
import os
import re
import sys
import time
import urllib.parse
import urllib.request

SHORT = {"exe": "process.executable.name", "pid": "process.pid", "tid": "thread.id", "cpu": "cpu.logical_number", "container": "container.id"}
Frame = collections.namedtuple("Frame", "name module file line type build_id inlined")
Sample = collections.namedtuple("Sample", "time kind labels stack weight")
STEP = 4
PERIOD_NS = {"samples": 50_000_000, "off_cpu": 1_000_000}


def frame(name, module="", file="", line=0, kind="native", build_id="", inlined=False):
    return Frame(name, module, file, line, kind, build_id, inlined)


def made_up(now):
    """An hour of two services, a weight of 20 a second in all, every STEP seconds: 12 of shop, 6 of search, 2 of nobody; the
    second half has hash_v2."""
    main, loop = frame("main", "shop", "main.c", 40, build_id="ab12"), frame("serve_forever", "shop", "serve.c", 88, build_id="ab12")
    parse = frame("parse<std::vector<std::string> >", "shop", "parse.cc", 12, build_id="ab12")
    inline = frame("next_token", "shop", "parse.h", 7, build_id="ab12", inlined=True)
    old, new = frame("hash_v1", "shop", "hash.c", 9, build_id="ab12"), frame("hash_v2", "shop", "hash.c", 30, build_id="ab12")
    copy = frame("memcpy", "libc.so.6", build_id="cd34")
    read, block = frame("vfs_read", "vmlinux", kind="kernel"), frame("blk_mq_submit", "vmlinux", kind="kernel")
    go_main, go_find = frame("main.main", "search", "main.go", 10, "go", "ef56"), frame("github.com/acme/index.(*Tree).Find", "search", "tree.go", 77, "go", "ef56")
    py, attack = frame("handler", "app.py", "app.py", 3, "cpython"), frame("<img src=x onerror=alert(1)>", "\"><script>alert(2)</script>", kind="cpython")
    bare, fib = frame("plugin.so+0x1a2b", "plugin.so", build_id="9999"), frame("fib", "shop", "fib.c", 2, build_id="ab12")
    shop = [[main, loop, parse, inline]] * 3 + [[main, loop, parse]] * 2 + [[main, loop, None]] * 3 + [[main, loop, parse, copy]] + \
        [[main, loop, read, block]] * 2 + [[main, fib, fib, fib]]
    search = [[go_main, go_find]] * 4 + [[go_main, go_find, copy], [go_main, read]]
    other = [[py, attack], [bare]]
    samples = []
    for second in range(0, 3600, STEP):
        at = now - 3600 + second
        hashed = old if second < 1800 else new
        for k, stack in enumerate(shop):
            labels = {"service.name": "shop", "process.executable.name": "shop", "process.pid": "101", "thread.id": str(101 + k % 2),
                      "thread.name": ["shop-io", "shop-work"][k % 2], "cpu.logical_number": str(k % 4), "container.id": "c0ffee", "version": "1" if second < 1800 else "2"}
            samples.append(Sample(at + k / 12, "samples", labels, [hashed if f is None else f for f in stack], STEP))
        for k, stack in enumerate(search):
            labels = {"service.name": "search", "process.executable.name": "search", "process.pid": "202", "thread.id": str(202 + k), "thread.name": "worker",
                      "cpu.logical_number": str(k % 4), "container.id": "decaf"}
            samples.append(Sample(at + 0.1, "samples", labels, stack, STEP))
        for stack in other:
            samples.append(Sample(at + 0.55, "samples", {"process.executable.name": "<b>python</b>", "process.pid": "303", "thread.id": "303"}, stack, STEP))
        if second % 20 == 0:
            labels = {"service.name": "shop", "process.executable.name": "shop", "process.pid": "101", "thread.id": "101"}
            samples.append(Sample(at + 0.3, "off_cpu", labels, [main, loop, frame("futex_wait", "vmlinux", kind="kernel")], 1200))
    return samples


def from_perf(path, now):
    samples, stack, head = [], [], None
    with open(path, encoding="utf-8", errors="replace") as lines:
        for text in lines:
            found = re.match(r"(.+?)\s+(\d+)/(\d+)\s+\[(\d+)\] ([\d.]+):", text)
            if found:
                head = found.groups()
            elif text.strip():
                address, name, module = re.match(r"\s*([0-9a-f]+) (.*) \((.*)\)$", text).groups()
                module = module.strip("[]")
                kind = "kernel" if "vmlinux" in module or "kernel" in module else "native"
                stack.append(frame(f"{module}+0x{address}" if name == "[unknown]" else name, module, kind=kind))
            elif head:
                comm, pid, tid, cpu, at = head
                labels = {"process.executable.name": comm, "process.pid": pid, "thread.id": tid, "thread.name": comm, "cpu.logical_number": cpu}
                samples.append(Sample(float(at), "samples", labels, stack[::-1], 1))
                stack, head = [], None
    shift = now - max(s.time for s in samples)
    return [s._replace(time=s.time + shift) for s in samples]


def covered(times, start, end):
    """The pieces of a range that have samples, with gaps of up to five minutes."""
    spans = []
    for t in times:
        if spans and t - spans[-1][1] <= 300:
            spans[-1][1] = t
        else:
            spans.append([t, t])
    return [(max(a, start), min(b, end)) for a, b in spans if min(b, end) > max(a, start)]


class Bad(Exception):
    pass


class Store:
    def __init__(self, samples):
        self.samples = samples
        self.began = time.time()
        self.requests = collections.deque(maxlen=50)

    def moment(self, text, now):
        units = {"s": 1, "m": 60, "h": 3600, "d": 86400}
        found = re.fullmatch(r"now(?:-(\d+)([smhd]))?", text)
        if found:
            return now - (int(found[1]) * units[found[2]] if found[1] else 0)
        if text in ("first", "last"):
            times = [s.time for s in self.samples] or [now]
            return min(times) if text == "first" else max(times) + 1e-6
        if text == "recent":
            return now - 900
        try:
            return float(text)
        except ValueError:
            raise Bad(f"'{text}' is no time: write now-15m, Unix seconds or RFC 3339") from None

    def select(self, p, suffix=""):
        now = time.time()
        start = self.moment(p.get("from" + suffix) or p.get("from", "now-1h"), now)
        end = self.moment(p.get("to" + suffix) or p.get("to", "now"), now)
        kind = p.get("kind", "samples")
        times = sorted(s.time for s in self.samples if s.kind == kind)
        if (p.get("from" + suffix) or p.get("from")) == "recent":
            start = end - 900
            spans = covered(times, start, end)
            start = min(spans[-1][0], end - 10) if spans else start
        query = p.get("query" + suffix) or p.get("query", "{}")
        tests, word = matchers(query)
        known = [s.labels for s in self.samples if start <= s.time < end and s.kind == kind]
        taken = word and find_word(word, [k for k in known if all(t(k) for _, _, t in tests)])
        if taken and taken["as"] != "function":
            tests.append(("", "", lambda labels: has_word(label_text(labels, taken["as"]), word, taken["as"])))
        focus, ignore = (re.compile(p[k]) if p.get(k) else None for k in ("focus", "ignore"))
        out = []
        for s in self.samples:
            if not start <= s.time < end or s.kind != kind or not all(t(s.labels) for _, _, t in tests):
                continue
            if taken and taken["as"] == "function" and not any(has_word(f.name, word) for f in s.stack):
                continue
            if focus and not any(focus.search(f.name) for f in s.stack) or ignore and any(ignore.search(f.name) for f in s.stack):
                continue
            out.append(s if p.get("inline") != "0" else s._replace(stack=[f for f in s.stack if not f.inlined]))
        spans = covered(times, start, end)
        head = {f"covered_seconds{suffix}": sum(b - a for a, b in spans), f"covered_from{suffix}": spans[0][0] if spans else 0, f"covered_to{suffix}": spans[-1][1] if spans else 0,
                "kind": {"type": kind, "unit": "count" if kind == "samples" else "milliseconds"}, "weight_ns": PERIOD_NS[kind], "from": start, "to": end,
                "total": sum(s.weight for s in out), "events": len(out), **({f"word{suffix}": taken} if taken else {}),
                **({} if out else {f"nearest{suffix}": nearest(known, tests, word)})}
        return out, head


def matchers(query):
    """[(key, value where it is asked for by =, test)], word or None"""
    parts = re.fullmatch(r'(?:\{(.*)\}|((?:[\w.]+\s*(?:=~|!~|!=|=)\s*"(?:[^"\\]|\\.)*"[\s,]*)*))\s*(?:"([^"]+)"|([^\s{},"=!]+))?', query.strip())
    if not parts:
        raise Bad(f"query: cannot read the selector {query}")
    tests, inside, word = [], parts[1] or parts[2] or "", parts[3] or parts[4]
    while inside.strip(" ,"):
        found = re.match(r'[\s,]*([\w.]+)\s*(=~|!~|!=|=)\s*"((?:[^"\\]|\\.)*)"', inside)
        if not found:
            raise Bad(f"cannot read the selector at '{inside}'")
        key, op, value = SHORT.get(found[1], found[1]), found[2], re.sub(r"\\(.)", r"\1", found[3])
        inside = inside[found.end():]

        def test(labels, key=key, op=op, value=value):
            have = [labels.get(key, "")] if key != "comm" else [v for v in (labels.get("thread.name"), labels.get("process.executable.name")) if v] or [""]
            hit = any(h == value if op in ("=", "!=") else re.fullmatch(value, h) is not None for h in have)
            return hit != op.startswith("!")
        tests.append((found[1], value if op == "=" else "", test))
    return tests, word


def has_word(text, word, key=""):
    at = text.lower().find(word.lower())
    return at == 0 or (at > 0 and key != "container")


def label_text(labels, key):
    if key == "comm":
        return labels.get("thread.name") or labels.get("process.executable.name", "")
    return labels.get({"service": "service.name"}.get(key, SHORT.get(key, key)), "")


def find_word(word, known):
    for key in ("exe", "comm", "service", "container"):
        values = collections.Counter(v for v in (label_text(k, key) for k in known) if v and has_word(v, word, key))
        if values:
            return {"text": word, "as": key, "values": [v for v, _ in values.most_common(10)]}
    return {"text": word, "as": "function", "values": []}


def nearest(known, tests, word):
    """difflib's idea of near, where the server counts letters."""
    out = []
    for key, value in [(k, v) for k, v, _ in tests if v] + [(k, word) for k in ("exe", "service", "container") if word]:
        there = sorted({label_text(k, key) for k in known} - {""})
        near = [] if value in there else [t for t in there if has_word(t, value)] + difflib.get_close_matches(value, there, 3)
        out += [{"label": key, "value": v, "instead_of": value} for v in dict.fromkeys(near[:3])]
    return out


def label_of(sample, key):
    return label_text(sample.labels, key)


class Tree:
    def __init__(self, sides):
        self.nodes, self.kids = [[frame("all", kind=""), -1, [0] * sides, [0] * sides]], [{}]
        self.sides = sides

    def add(self, stack, weight, side=0):
        at = 0
        self.nodes[0][3][side] += weight
        for f in stack:
            key = (f.name, f.module, f.inlined)
            if key not in self.kids[at]:
                self.kids[at][key] = len(self.nodes)
                self.nodes.append([f, at, [0] * self.sides, [0] * self.sides])
                self.kids.append({})
            at = self.kids[at][key]
            self.nodes[at][3][side] += weight
        self.nodes[at][2][side] += weight

    def answer(self, most):
        order, kept = [], set(sorted(range(len(self.nodes)), key=lambda i: -sum(self.nodes[i][3]))[:most])
        stack = [(0, -1)]
        functions, index = {"name": [], "module": [], "file": [], "type": [], "build_id": []}, {}
        out = {"function": [], "parent": [], "line": [], "inlined": [], "self": [], "total": []}
        if self.sides == 2:
            out.update(self2=[], total2=[])

        def put(f, parent, own, total):
            key = (f.name, f.module)
            if key not in index:
                index[key] = len(index)
                for name, value in zip(functions, (f.name, f.module, f.file, f.type, f.build_id)):
                    functions[name].append(value)
            for name, value in zip(("function", "parent", "line", "inlined", "self", "total"), (index[key], max(0, parent), 0, int(f.inlined), own[0], total[0])):
                out[name].append(value)
            if self.sides == 2:
                out["self2"].append(own[1])
                out["total2"].append(total[1])
            return len(out["parent"]) - 1

        while stack:
            i, parent = stack.pop()
            f, _, own, total = self.nodes[i]
            if parent == "other":
                continue
            at = put(f, parent, own, total)
            order.append(i)
            children = sorted(self.kids[i].values(), key=lambda c: -sum(self.nodes[c][3]))
            cut = [c for c in children if c not in kept]
            if cut:
                rest = [sum(self.nodes[c][3][s] for c in cut) for s in range(self.sides)]
                put(frame("(other)", kind=""), at, rest, rest)
            stack += [(c, at) for c in reversed(children) if c in kept]
        return {"functions": functions, "nodes": out, "cut_nodes": len(self.nodes) - len(order), "cut_weight": 0}


def grouped(samples, p):
    by = p.get("by")
    for s in samples:
        yield ([frame(label_of(s, by) or f"no {by}", kind="label")] if by else []) + s.stack, s.weight


def types_of(*sides):
    """What the functions at the leaves weigh by type, and how much of it has no name."""
    out = {}
    for side, samples in enumerate(sides):
        for s in samples:
            row = out.setdefault(s.stack[-1].type, [0, 0, 0, 0])
            row[2 * side] += s.weight
            row[2 * side + 1] += s.weight * bool(re.search(r"\+0x[0-9a-f]+$", s.stack[-1].name))
    keys = ("self", "unnamed", "self2", "unnamed2")[:2 * len(sides)]
    return [{"type": t, **dict(zip(keys, row))} for t, row in sorted(out.items(), key=lambda r: -r[1][0] - r[1][2])]


def flamegraph(store, p):
    samples, head = store.select(p)
    tree = Tree(1)
    for stack, weight in grouped(samples, p):
        tree.add(stack, weight)
    return {**head, **tree.answer(int(p.get("max_nodes", 5000))), "types": types_of(samples)}


def diff(store, p):
    a, head = store.select(p)
    b, head2 = store.select(p, "2")
    if p.get("format") == "top":
        rows = {}
        for side, samples in enumerate((a, b)):
            for s in samples:
                for f in {(x.name, x.module): x for x in s.stack}.values():
                    rows.setdefault((f.name, f.module), [f, [0, 0], [0, 0]])[2][side] += s.weight
                rows[(s.stack[-1].name, s.stack[-1].module)][1][side] += s.weight
        ta, tb = head["total"] or 1, head2["total"] or 1
        out = sorted(rows.values(), key=lambda r: -abs(r[1][1] / tb - r[1][0] / ta))[:200]
        body = {"rows": [{"name": f.name, "module": f.module, "file": f.file, "type": f.type, "build_id": f.build_id, "self": s[0], "total": t[0], "self2": s[1], "total2": t[1]} for f, s, t in out]}
    else:
        tree = Tree(2)
        for side, samples in enumerate((a, b)):
            for s in samples:
                tree.add(s.stack, s.weight, side)
        body = tree.answer(int(p.get("max_nodes", 5000)))
    if p.get("noise") and a and b:  # what differs by less than 5 points is noise
        body["noise"] = {"runs": [8, 8], "judged": 14, "changed": 2, "factor": 0.0, "least": 0.05}
        for row in body.get("rows", ()):
            own, whole = (abs(row[k + "2"] / (head2["total"] or 1) - row[k] / (head["total"] or 1)) for k in ("self", "total"))
            row.update(self_band=0.05, self_changed=own > 0.05, total_band=0.05, total_changed=whole > 0.05)
    return {**head, "from2": head2["from"], "to2": head2["to"], "total2": head2["total"], "events2": head2["events"], **{k: v for k, v in head2.items() if k.startswith(("covered", "word", "nearest"))}, "types": types_of(a, b), **body}


def sandwich(store, p):
    samples, head = store.select(p)
    is_it = lambda f: f.name == p["function"] and p.get("module") in (None, f.module)
    callers, callees, own, total, root = Tree(1), Tree(1), 0, 0, None
    for s in samples:
        hits = [i for i, f in enumerate(s.stack) if is_it(f)]
        if hits:
            root = s.stack[hits[0]]
            total += s.weight
            own += s.weight * is_it(s.stack[-1])
            callers.add([f for f in reversed(s.stack[:hits[-1]])], s.weight)
            callees.add(s.stack[hits[0] + 1:], s.weight)
    for tree in (callers, callees):
        tree.nodes[0][0] = root or frame(p["function"], p.get("module", ""))
    return {**head, "whole": head["total"], "total": total, "self": own, "callers": callers.answer(5000), "callees": callees.answer(5000)}


def top(store, p):
    samples, head = store.select(p)
    pieces, rows, by = int(p.get("strip", 0)), {}, p.get("by")
    for s in samples:
        value = label_of(s, by) if by else None
        for f in {(x.name, x.module): x for x in s.stack}.values():
            rows.setdefault((f.name, f.module, value), [f, 0, 0, [0] * pieces])[2] += s.weight
        row = rows[(s.stack[-1].name, s.stack[-1].module, value)]
        row[1] += s.weight
        if pieces:
            row[3][min(pieces - 1, int((s.time - head["from"]) / (head["to"] - head["from"]) * pieces))] += s.weight
    key = 2 if p.get("sort") == "total" else 1
    out = sorted(rows.items(), key=lambda r: (-r[1][key], -r[1][2]))[:int(p.get("limit", 200))]
    return {**head, "functions": len(rows), "types": types_of(samples), "rows": [{"name": f.name, "module": f.module, "file": f.file, "type": f.type, "build_id": f.build_id, "self": s, "total": t,
            **({"strip": st} if pieces else {}), **({"value": k[2]} if by else {})} for k, (f, s, t, st) in out]}


def timeline(store, p):
    samples, head = store.select(p)
    span = head["to"] - head["from"]
    step = float(p["step"]) if p.get("step") else span / int(p.get("points", 240))
    n, series, by = int(-(-span // step)), {}, p.get("by")
    for s in samples:
        values = series.setdefault(label_of(s, by) if by else "", [0] * n)
        values[min(n - 1, int((s.time - head["from"]) / step))] += s.weight
    ranked = sorted(series.items(), key=lambda v: -sum(v[1]))
    limit = int(p.get("limit", 10))
    if len(ranked) > limit:
        ranked = ranked[:limit] + [("(other)", [sum(x) for x in zip(*(w for _, w in ranked[limit:]))])]
    return {**head, "step": step, "series": [{"value": v, "total": sum(w), "weights": w} for v, w in ranked]}


def heatmap(store, p):
    samples, head = store.select(p)
    columns, rows = int(p.get("columns", 120)), int(p.get("rows", 50))
    cell, weights = (head["to"] - head["from"]) / columns / rows, [0] * (columns * rows)
    for s in samples:
        weights[min(len(weights) - 1, int((s.time - head["from"]) / cell))] += s.weight
    return {**head, "columns": columns, "rows": rows, "column_seconds": cell * rows, "weights": weights}


def labels(store, p):
    return {"labels": sorted({k for s in store.select(p)[0] for k in s.labels})}


def values(store, p):
    samples, head = store.select(p)
    sums = collections.Counter()
    for s in samples:
        sums[label_of(s, p["label"])] += s.weight
    rows = [(v, w) for v, w in sums.most_common() if v.startswith(p.get("prefix", ""))][:int(p.get("limit", 1000))]
    return {**head, "values": [{"value": v, "weight": w, "events": w} for v, w in rows]}


def executables(store, p):
    out = {}
    for s in store.select(p)[0]:
        for module in {f.module for f in s.stack if f.module}:
            out.setdefault(module, [0, set(), "", 0, 0])[0] += 1
        leaf = s.stack[-1]
        out[leaf.module][3] += s.weight
        out[leaf.module][4] += s.weight * (not re.search(r"\+0x[0-9a-f]+$", leaf.name))
        for f in s.stack:
            if f.module:
                out[f.module][1].add(f.name)
                out[f.module][2] = f.build_id
    rows = []
    for module, (events, names, build_id, own, named_own) in sorted(out.items(), key=lambda v: -v[1][0]):
        named = sum(not re.search(r"\+0x[0-9a-f]+$", n) for n in names)
        status = "named" if named >= 0.9 * len(names) else "partly" if named else "unnamed"
        advice = "" if status == "named" else "Its debug file is not on this machine: install its debug package, set DEBUGINFOD_URLS, or drop the file below."
        rows.append({"path": module if module == "vmlinux" else f"/usr/bin/{module}", "build_id": build_id, "id_kind": "gnu" if build_id else "", "events": events, "frames": len(names), "named_frames": named, "self": own, "named_self": named_own, "status": status, "advice": advice})
    return {"executables": rows}


def truth(store, p):
    samples, head = store.select(p)
    n, cut = len(samples), min(len(samples), 7)
    types = types_of(samples)
    return {**head, "named_self": sum(t["self"] - t["unnamed"] for t in types), "complete": n - cut, "truncated": [{"reason": "no rule", "events": cut}] if cut else [],
            "scripts": [{"outcome": "python: complete", "events": 990}, {"outcome": "python: torn", "events": 10}, {"outcome": "php: complete", "events": 5000}], "unnamed_frames": 3, "frames": 120,
            "counters": {'hearth_samples_lost_total{reason="ring full"}': 0, 'hearth_samples_lost_total{reason="queue full"}': 0, "hearth_samples_not_sampled_total": 12},
            "cpu_seconds": 0.004 * (time.time() - store.began + 3600), "uptime_seconds": time.time() - store.began + 3600, "resident_bytes": 21_400_000}


def status(store, p):
    counted = collections.Counter(s.kind for s in store.samples)
    times = [s.time for s in store.samples]
    now = time.time()
    return {"version": "0.0-mock", "now": now, "uptime_seconds": now - store.began, "live": True,
            "store": {"kind": "memory", "place": ":memory:", "bytes": 6 * len(times), "events": len(times), "series": 4, "nodes": 30, "frames": 20, "first": min(times, default=0), "last": max(times, default=0)},
            "kinds": [{"type": k, "unit": "count" if k == "samples" else "milliseconds", "period_type": "cpu", "period_unit": "nanoseconds", "period": PERIOD_NS[k], "events": c} for k, c in counted.most_common()],
            "log": [{"time": store.began, "level": "info", "text": "page and receivers at http://127.0.0.1:4318/"},
                    {"time": store.began + 1, "level": "warning", "text": "/usr/bin/<i>plugin</i>.so has no symbols: its functions stay addresses"},
                    {"time": store.began + 2, "level": "error", "text": "cannot read /proc/77/maps: Permission denied"}],
            "requests": list(store.requests), "counters": {"hearth_samples_total": len(times), "hearth_http_requests_total": len(store.requests), "hearth_samples_lost_total": 0}}


def inside(store, p):
    samples, head = store.select(p)
    return {**head, "stacks": len({tuple(s.stack) for s in samples}), "tables": [{"name": "blocks", "bytes": 3000}, {"name": "nodes", "bytes": 1000}]}


def many_boxes(n):
    """A tree of n boxes, 60 deep at most, always the same."""
    seed, parents, depths, own = 12345, [0], [0], [0]
    for i in range(1, n):
        seed = (seed * 1103515245 + 12345) & 0x7FFFFFFF
        parent = max(0, i - 1 - (seed >> 8) % min(i, 24 if seed & 3 else 4000)) if i > 1 else 0
        if depths[parent] >= 60:
            parent = parents[parent]
        parents.append(parent)
        depths.append(depths[parent] + 1)
        own.append(1 + (seed >> 12) % (1000 if seed & 15 == 0 else 10))
    total = list(own)
    for i in range(n - 1, 0, -1):
        total[parents[i]] += total[i]
    names = ["all"] + [f"module{i % 40}::function_number_{i}" for i in range(1, 5000)]
    kinds = [""] + [["native", "kernel", "go", "cpython"][i % 4] for i in range(1, 5000)]
    function = [0] + [1 + (i * 7919) % 4999 for i in range(1, n)]
    selves = collections.Counter()
    for f, w in zip(function, own):
        selves[kinds[f]] += w
    types = [{"type": t, "self": w, "unnamed": 0} for t, w in selves.most_common() if t]
    return {"types": types, "kind": {"type": "samples", "unit": "count"}, "weight_ns": 50_000_000, "from": time.time() - 3600, "to": time.time(), "total": total[0], "events": total[0], "cut_nodes": 0, "cut_weight": 0,
            "functions": {"name": names, "module": [f"lib{i % 30}.so" for i in range(5000)], "file": [""] * 5000, "type": kinds, "build_id": [""] * 5000},
            "nodes": {"function": function, "parent": parents, "line": [0] * n, "inlined": [0] * n, "self": own, "total": total}}


ANSWERS = {f.__name__: f for f in (flamegraph, diff, sandwich, top, timeline, heatmap, labels, values, executables, truth, status, inside)}
TYPES = {"js": "text/javascript", "css": "text/css", "html": "text/html; charset=utf-8"}


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        """A browser that went on to another question."""


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, code, body, headers):
        self.send_response(code)
        for key, value in headers.items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        p = dict(urllib.parse.parse_qsl(url.query))
        if url.path == "/" or url.path.startswith("/page/"):
            return self.page(url.path)
        if url.path == "/session":
            return self.reply(200, b'{"session":false}', {"Content-Type": "application/json"})
        name = url.path.removeprefix("/api/v1/")
        if refusal := self.refusal():
            return self.reply(400, refusal, {"Content-Type": "application/json"})
        if name == "export":
            return self.reply(200, f"{self.path}\n".encode(), {"Content-Type": "text/plain", "Content-Disposition": "attachment"})
        code, body = 404, {"error": f"no such path: {url.path}"}
        try:
            if name == "flamegraph" and self.server.boxes:
                code, body = 200, self.server.boxes
            elif name in ANSWERS:
                code, body = 200, ANSWERS[name](self.server.store, p)
        except (Bad, re.error) as error:
            code, body = 400, {"error": str(error)}
        data = json.dumps(body).encode()
        self.server.store.requests.append({"time": time.time(), "path": url.path, "status": code, "bytes": len(data), "headers": [f"{k}: {v}" for k, v in self.headers.items()]})
        self.reply(code, data, {"Content-Type": "application/json", "Cache-Control": "no-cache"})

    def refusal(self):
        """What the hearth that the page is from says to a parameter that it does not take."""
        if not self.server.page:
            return None
        try:
            urllib.request.urlopen(self.server.page + self.path).close()
        except urllib.error.HTTPError as error:
            return error.read() if error.code == 400 else None

    def do_POST(self):
        if self.path == "/api/v1/clear":
            body = {"cleared": len(self.server.store.samples)}
            self.server.store.samples = []
            return self.reply(200, json.dumps(body).encode(), {"Content-Type": "application/json"})
        good = self.rfile.read(int(self.headers.get("Content-Length", 0))).startswith(b"\x7fELF")
        body = {"build_id": "9999", "functions": 3, "named": 2, "names": [{"function": "plug_in", "inlined": ["step"], "addresses": 2}], "more": 0} if good else {"error": "this is no ELF file"}
        self.reply(200 if good else 400, json.dumps(body).encode(), {"Content-Type": "application/json"})

    def page(self, path):
        if self.server.page:
            try:
                with urllib.request.urlopen(self.server.page + path) as answer:
                    keep = {k: v for k, v in answer.headers.items() if k.lower() not in ("content-length", "connection", "date")}
                    return self.reply(200, answer.read(), keep)
            except urllib.error.HTTPError as error:
                return self.reply(error.code, error.read(), {"Content-Type": "text/plain"})
        name = "index.html" if path == "/" else os.path.basename(path)
        try:
            with open(os.path.join(self.server.folder, name), "rb") as f:
                return self.reply(200, f.read(), {"Content-Type": TYPES[name.rsplit(".", 1)[-1]], "Cache-Control": "no-cache"})
        except (OSError, KeyError):
            return self.reply(404, b"no such file", {"Content-Type": "text/plain"})


def serve(port=0, page=None, folder=None, samples=(), boxes=0):
    """A server that is ready; run its serve_forever()."""
    server = Server(("127.0.0.1", port), Handler)
    server.page, server.folder, server.store = page, folder, Store(list(samples))
    server.boxes = many_boxes(boxes) if boxes else None
    return server


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--page")
    parser.add_argument("--folder", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../backend/page"))
    parser.add_argument("--perf")
    parser.add_argument("--boxes", type=int, default=0)
    parser.add_argument("--empty", action="store_true")
    args = parser.parse_args()
    now = time.time()
    samples = [] if args.empty else from_perf(args.perf, now) if args.perf else made_up(now)
    server = serve(args.port, args.page, args.folder, samples, args.boxes)
    print(server.server_address[1])
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    main()
