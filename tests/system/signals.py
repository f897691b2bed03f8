#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A shop's five seconds as OTLP/JSON: profiles, traces, logs and metrics of two services, written to the files that are named.

usage: signals.py NOW PROFILES TRACES LOGS METRICS    NOW in Unix seconds, the end of it

Service "shop" says its spans in its samples. Service "mail" does not, but its spans say thread and process. Each request of shop
takes 40 ms, every fifth 400 ms, which "render" takes on a CPU; mail's span is 20 ms of waiting and 20 ms on a CPU."""
import json
import sys

MS = 1_000_000
STRINGS = ["", "cpu", "nanoseconds", "off_cpu", "thread.id", "thread.name", "main", "render", "query", "send", "connect"]
FRAMES = {"shop": {"render": 7, "query": 8}, "mail": {"send": 9, "connect": 10}}


def attribute(key, value):
    return {"key": key, "value": {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}}


def resource(service, pid):
    return {"attributes": [attribute("service.name", service), attribute("process.pid", pid), attribute("host.name", "box")]}


class Profiles:
    def __init__(self):
        self.links, self.samples = [{}], {}

    def link(self, trace, span):
        self.links.append({"traceId": trace, "spanId": span})
        return len(self.links) - 1

    def add(self, service, kind, function, begin, ms, link):
        """Samples each 10 ms, of 10 ms each."""
        times = [str(begin + i * 10 * MS) for i in range(ms // 10)]
        self.samples.setdefault((service, kind), []).append({
            "stackIndex": function - 6, "linkIndex": link, "attributeIndices": [1 if service == "shop" else 2, 3],
            "timestampsUnixNano": times, "values": [str(10 * MS)] * len(times)})

    def message(self):
        # Location N is string N's function, called by main.
        functions = [{}] + [{"nameStrindex": n} for n in range(6, 11)]
        return {"resourceProfiles": [{"resource": resource(service, PIDS[service]), "scopeProfiles": [{"profiles": [
            {"sampleType": {"typeStrindex": 1 if kind == "cpu" else 3, "unitStrindex": 2}, "timeUnixNano": samples[0]["timestampsUnixNano"][0],
             "durationNano": str(5000 * MS), "samples": samples}]}]} for (service, kind), samples in self.samples.items()],
            "dictionary": {"stringTable": STRINGS, "functionTable": functions, "linkTable": self.links, "mappingTable": [{}],
                           "locationTable": [{}] + [{"lines": [{"functionIndex": i, "line": "10"}]} for i in range(1, 6)],
                           "stackTable": [{}] + [{"locationIndices": [i, 1]} for i in range(2, 6)],
                           "attributeTable": [{}, {"keyStrindex": 4, "value": {"intValue": "70"}}, {"keyStrindex": 4, "value": {"intValue": "81"}},
                                              {"keyStrindex": 5, "value": {"stringValue": "worker"}}]}}


PIDS = {"shop": 70, "mail": 80}


def span(trace, own, parent, name, begin, ms, attributes=()):
    return {"traceId": trace, "spanId": own, "parentSpanId": parent, "name": name, "kind": 2, "startTimeUnixNano": str(begin),
            "endTimeUnixNano": str(begin + ms * MS), "attributes": list(attributes)}


def main():
    now = int(float(sys.argv[1]) * 1000) * MS
    profiles, spans, logs, points = Profiles(), {"shop": [], "mail": []}, [], []
    begin = now - 5000 * MS
    for n in range(20):
        slow = n % 5 == 4
        trace, root, child, mail = f"{n + 1:032x}", f"{16 * n + 1:016x}", f"{16 * n + 2:016x}", f"{16 * n + 3:016x}"
        took = 400 if slow else 40
        spans["shop"] += [span(trace, root, "", "GET /cart", begin, took + 20), span(trace, child, root, "query", begin, 20)]
        spans["mail"].append(span(trace, mail, root, "POST /mail", begin, 40, [attribute("thread.id", 81)]))
        profiles.add("shop", "cpu", 7, begin + 20 * MS, took, profiles.link(trace, root))
        profiles.add("shop", "off_cpu", 8, begin, 20, profiles.link(trace, child))
        profiles.add("mail", "off_cpu", 10, begin, 20, 0)
        profiles.add("mail", "cpu", 9, begin + 20 * MS, 20, 0)
        if slow:
            logs.append({"timeUnixNano": str(begin + took * MS), "severityNumber": 17, "body": {"stringValue": f"slow request {n}"}, "traceId": trace, "spanId": root})
        points.append({"timeUnixNano": str(begin + took * MS), "count": "1", "exemplars": [
            {"timeUnixNano": str(begin + took * MS), "asDouble": took / 1000, "traceId": trace, "spanId": root}]})
        begin += (took + 40) * MS
    traces = {"resourceSpans": [{"resource": resource(s, PIDS[s]), "scopeSpans": [{"spans": of}]} for s, of in spans.items()]}
    of_shop = resource("shop", 70)
    messages = [profiles.message(), traces, {"resourceLogs": [{"resource": of_shop, "scopeLogs": [{"logRecords": logs}]}]},
                {"resourceMetrics": [{"resource": of_shop, "scopeMetrics": [{"metrics": [{"name": "request.duration", "unit": "s", "histogram": {
                    "aggregationTemporality": 1, "dataPoints": points}}]}]}]}]
    for path, message in zip(sys.argv[2:], messages):
        with open(path, "w") as f:
            json.dump(message, f)


main()
