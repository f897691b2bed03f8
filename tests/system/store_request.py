#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A request for a store, OTLP/JSON on standard output: samples of three services within some hours.

usage: store_request.py BASE_S HOURS SAMPLES JUNK    from BASE_S (Unix seconds) on; a function's name has JUNK letters more
"""
import json, random, string, sys
base, hours, count, junk = (int(a) for a in sys.argv[1:])
random.seed(base)
word = lambda: "".join(random.choices(string.ascii_letters, k=junk))
strings = ["", "samples", "count", "cpu", "nanoseconds", "thread.id", "cpu.logical_number", "mine"] + [f"f{i}{word()}" for i in range(200)]
functions = [{}] + [{"nameStrindex": 8 + i} for i in range(200)]
locations = [{}] + [{"lines": [{"functionIndex": i + 1}]} for i in range(200)]
stacks = [{"locationIndices": []}] + [{"locationIndices": random.sample(range(1, 201), 12)} for _ in range(100)]
attributes = [{}] + [{"keyStrindex": 5, "value": {"intValue": str(1000 + i)}} for i in range(8)] + [{"keyStrindex": 6, "value": {"intValue": str(i)}} for i in range(4)]
attributes += [{"keyStrindex": 7, "value": {"stringValue": v}} for v in ("x", "y")]
def sample(of):
    times = [str(base * 10**9 + random.randrange(hours * 3600 * 10**9)) for _ in range(20)]
    return {"stackIndex": random.randrange(1, 101), "attributeIndices": [random.randrange(1, 9), random.randrange(9, 13)] + random.choice([[], [13], [14]]), "timestampsUnixNano": times}
def resource(service):
    profile = {"sampleType": {"typeStrindex": 1, "unitStrindex": 2}, "periodType": {"typeStrindex": 3, "unitStrindex": 4}, "period": "10101010", "samples": [sample(service) for _ in range(count // 60)]}
    return {"resource": {"attributes": [{"key": "service.name", "value": {"stringValue": service}}]}, "scopeProfiles": [{"profiles": [profile]}]}
tables = {"mappingTable": [{}], "locationTable": locations, "functionTable": functions, "linkTable": [{}], "stringTable": strings, "attributeTable": attributes, "stackTable": stacks}
print(json.dumps({"resourceProfiles": [resource(s) for s in ("shop", "search", "mail")], "dictionary": tables}))
