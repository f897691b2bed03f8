#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Samples of which every number is known, and whether Pyroscope's client was told these numbers.

usage: judge.py make BASE_MS >REQUEST      an OTLP/JSON request
       judge.py check BASE_MS ANSWERS      what the client printed"""
import json
import sys

PERIOD = 10_000_000
# service, team, stack from the root, how many samples, ms from one to the next
CPU = [("shop", "a", ["main", "work", "leaf"], 120, 250), ("shop", "a", ["main", "work"], 30, 1000), ("search", "b", ["main", "seek"], 60, 500)]
OFF = ("shop", "a", ["main", "wait"], [1_000_000, 2_500_000])
CPU_TYPE, COUNT_TYPE, OFF_TYPE = "process_cpu:cpu:nanoseconds:cpu:nanoseconds", "process_cpu:samples:count:cpu:nanoseconds", "off_cpu:off_cpu:nanoseconds::"


def make(base_ms):
    strings, functions, locations, stacks = [""], [{}], [{}], [{"locationIndices": []}]

    def string(s):
        if s not in strings:
            strings.append(s)
        return strings.index(s)

    def stack(names):
        indices = []
        for name in reversed(names):
            functions.append({"nameStrindex": string(name)})
            locations.append({"lines": [{"functionIndex": len(functions) - 1}]})
            indices.append(len(locations) - 1)
        stacks.append({"locationIndices": indices})
        return len(stacks) - 1

    def resource(service, team, profile):
        attributes = [{"key": "service.name", "value": {"stringValue": service}}, {"key": "team.of-three", "value": {"stringValue": team}}]
        return {"resource": {"attributes": attributes}, "scopeProfiles": [{"profiles": [profile]}]}

    out = []
    for service, team, names, count, step in CPU:
        times = [str((base_ms + i * step) * 1_000_000) for i in range(count)]
        out.append(resource(service, team, {"sampleType": {"typeStrindex": string("samples"), "unitStrindex": string("count")}, "periodType": {"typeStrindex": string("cpu"), "unitStrindex": string("nanoseconds")},
                                            "period": str(PERIOD), "samples": [{"stackIndex": stack(names), "timestampsUnixNano": times}]}))
    service, team, names, weights = OFF
    times = [str((base_ms + i) * 1_000_000) for i in range(len(weights))]
    out.append(resource(service, team, {"sampleType": {"typeStrindex": string("off_cpu"), "unitStrindex": string("nanoseconds")}, "periodType": {},
                                        "samples": [{"stackIndex": stack(names), "values": [str(w) for w in weights], "timestampsUnixNano": times}]}))
    tables = {"mappingTable": [{}], "locationTable": locations, "functionTable": functions, "linkTable": [{}], "stringTable": strings, "attributeTable": [{}], "stackTable": stacks}
    print(json.dumps({"resourceProfiles": out, "dictionary": tables}))


def selves(graph):
    """{stack: self} of a flame graph's levels, read as Pyroscope documents them; that the levels fit is checked on the way."""
    names, levels = graph["names"], [level["values"] for level in graph["levels"]]
    boxes, out, above = [], {}, [(0, graph["total"], ())]
    for values in levels:
        at, boxes = 0, []
        for offset, total, own, name in zip(*[iter(map(int, values))] * 4):
            assert offset >= 0 and total >= own >= 0, (offset, total, own)
            at += offset
            parent = [p for p in above if p[0] <= at and at + total <= p[0] + p[1]]
            assert len(parent) == 1, f"a box of {names[name]} is under {len(parent)}"
            boxes.append((at, total, parent[0][2] + (names[name],)))
            if own:
                out[";".join(boxes[-1][2])] = out.get(";".join(boxes[-1][2]), 0) + own
            at += total
        above = boxes
    assert names[0] == "total" and sum(out.values()) == graph["total"], graph
    assert graph.get("max_self", 0) == max(out.values(), default=0), graph
    return out


def expected(scale, of=lambda service, team: True):
    out = {}
    for service, team, names, count, _ in CPU:
        if of(service, team):
            out[";".join(["total"] + names)] = count * scale
    return out


def buckets(base_ms, step_ms, scale, of=None):
    out = {}
    for service, _, _, count, between in CPU:
        if of and service != of:
            continue
        for i in range(count):
            end = base_ms + (i * between // step_ms + 1) * step_ms
            out[end] = out.get(end, 0) + scale
    return out


def series_of(answer):
    return {tuple((label["name"], label["value"]) for label in s.get("labels", [])): {int(p["timestamp"]): p["value"] for p in s["points"]} for s in answer.get("series", [])}


def same(name, got, want):
    assert got == want, f"{name}: {got}\nnot {want}"


def check_one(base, a):
    types = {t["ID"]: t for t in a["types"]["profile_types"]}
    same("types", set(types), {CPU_TYPE, COUNT_TYPE, OFF_TYPE})
    same("a type", types[CPU_TYPE], {"ID": CPU_TYPE, "name": "process_cpu", "sample_type": "cpu", "sample_unit": "nanoseconds", "period_type": "cpu", "period_unit": "nanoseconds"})
    same("types of all time", {t["ID"] for t in a["types_open"]["profile_types"]}, set(types))
    same("names", a["names"]["names"], sorted(["__profile_type__", "service_name", "team_of_three"]))
    same("names of one", a["names_search"], a["names"])
    same("values", a["values"]["names"], ["search", "shop"])
    same("values of a label with odd characters", a["values_custom"]["names"], ["a", "b"])
    same("values of a type", a["values_offcpu"]["names"], ["shop"])
    same("types as values", set(a["values_type"]["names"]), set(types))
    got = {tuple(sorted((label["name"], label["value"]) for label in s["labels"])) for s in a["series"]["labels_set"]}
    same("series", got, {tuple(sorted([("__profile_type__", t), ("service_name", s)])) for s, ts in (("shop", types), ("search", (CPU_TYPE, COUNT_TYPE))) for t in ts})
    same("stacks", selves(a["stacks"]["flamegraph"]), expected(PERIOD))
    same("stacks by count", selves(a["stacks_count"]["flamegraph"]), expected(1, lambda s, t: s == "shop"))
    same("stacks off CPU", selves(a["stacks_offcpu"]["flamegraph"]), {"total;main;wait": sum(OFF[3])})
    same("stacks of a label", selves(a["stacks_custom"]["flamegraph"]), expected(PERIOD, lambda s, t: t in "az"))
    few = selves(a["stacks_few"]["flamegraph"])
    same("few nodes", (sum(few.values()), len(a["stacks_few"]["flamegraph"]["names"]) <= 3), (sum(expected(PERIOD).values()), True))
    same("a type that is not there", selves({"total": 0, **a["stacks_absent"]["flamegraph"]}), {})
    same("nonsense", a["stacks_wrong"], "invalid_argument")
    same("points", series_of(a["points"]), {(): buckets(base, 15000, PERIOD)})
    by = {(("service_name", s),): buckets(base, 15000, 1, s) for s in ("shop", "search")}
    same("points by service", series_of(a["points_by"]), by)
    same("the heaviest", list(series_of(a["points_one"])), [(("service_name", "shop"),)])
    same("no step", a["points_step"], "invalid_argument")
    same("two labels", a["points_two"], "invalid_argument")
    same("call sites", a["sites"], "unimplemented")
    same("what is not there", a["diff"], "unimplemented")


def main():
    base = int(sys.argv[2])
    if sys.argv[1] == "make":
        return make(base)
    with open(sys.argv[3]) as f:
        answers = [json.loads(line) for line in f]
    assert len(answers) == 3, f"{len(answers)} codecs"
    for answer in answers:
        check_one(base, answer)


if __name__ == "__main__":
    main()
