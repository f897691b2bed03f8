# SPDX-License-Identifier: Apache-2.0
"""noted_spans.py FILE PID: how many samples of the process have which link, a line each: TRACE SPAN COUNT, '- -' for those without."""
import collections
import json
import sys

with open(sys.argv[1]) as f:
    request = json.load(f)
dictionary = request["dictionary"]
texts, attributes, links = dictionary["stringTable"], dictionary["attributeTable"], dictionary["linkTable"]


def pid_of(resource):
    """Texts of a resource stand there, or in the dictionary."""
    for a in resource["resource"]["attributes"]:
        if a.get("key", texts[a.get("keyStrindex", 0)]) == "process.pid":
            return a["value"]["intValue"]
    return None


counts = collections.Counter()
for resource in request["resourceProfiles"]:
    if str(pid_of(resource)) != sys.argv[2]:
        continue
    for profile in (p for scope in resource["scopeProfiles"] for p in scope["profiles"]):
        for sample in profile["samples"]:
            link = links[sample.get("linkIndex", 0)]
            counts[link.get("traceId") or "-", link.get("spanId") or "-"] += len(sample.get("timestampsUnixNano", [0]))
for (trace, span), count in sorted(counts.items()):
    print(trace, span, count)
