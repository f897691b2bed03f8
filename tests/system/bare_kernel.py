#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A request as another profiler sends it, OTLP/JSON on standard output: samples of now whose frames are bare addresses of the kernel, with its
mapping, without one, and of code that was made; and one with a link to a span."""
import json
import time

BASE = 0xffffffff9a000000
now = time.time_ns()
strings = ["", "samples", "count", "cpu", "nanoseconds", "[kernel.kallsyms]", "profile.frame.type", "kernel", "thread.name", "bare"]
mappings = [{}, {"memoryStart": str(BASE), "memoryLimit": str(BASE + 0x2000000), "filenameStrindex": 5}]
locations = [{}] + [{"mappingIndex": m, "address": str(a), "attributeIndices": [1]} for m, a in
                    ((1, BASE + 0x1234), (0, BASE + 0x5678), (0, 0xffffffffc0801234), (0, 0xffff888012345678))]
attributes = [{}, {"keyStrindex": 6, "value": {"stringValue": "kernel"}}, {"keyStrindex": 8, "value": {"stringValue": "bare"}}]
stacks = [{"locationIndices": []}] + [{"locationIndices": [i, 1]} for i in range(1, 5)]
samples = [{"stackIndex": i, "attributeIndices": [2], "timestampsUnixNano": [str(now + i)], "linkIndex": int(i == 1)} for i in range(1, 5)]
links = [{}, {"traceId": "00000000000000000000000000000001", "spanId": "0000000000000001"}]
profile = {"sampleType": {"typeStrindex": 1, "unitStrindex": 2}, "periodType": {"typeStrindex": 3, "unitStrindex": 4}, "period": "10101010", "samples": samples}
print(json.dumps({"resourceProfiles": [{"resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "bare"}}]},
                                        "scopeProfiles": [{"profiles": [profile]}]}],
                  "dictionary": {"mappingTable": mappings, "locationTable": locations, "functionTable": [{}], "linkTable": links,
                                 "stringTable": strings, "attributeTable": attributes, "stackTable": stacks}}))
