#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sends profiles to a hearth that is killed time and again: sender.py PORT ACKNOWLEDGED. Each request has 7 samples of the service
"sender". The file ACKNOWLEDGED has how many samples were answered 200, and how many were sent: "N M". Until it is ended."""
import http.client
import json
import os
import sys
import time

port, acknowledged = int(sys.argv[1]), sys.argv[2]
SAMPLES = 7
taken = sent = 0


def request():
    now = time.time_ns()
    strings = ["", "samples", "count", "f"]
    tables = {"mappingTable": [{}], "locationTable": [{}, {"lines": [{"functionIndex": 1}]}], "functionTable": [{}, {"nameStrindex": 3}],
              "linkTable": [{}], "stringTable": strings, "attributeTable": [{}], "stackTable": [{}, {"locationIndices": [1]}]}
    samples = [{"stackIndex": 1, "timestampsUnixNano": [str(now + i) for i in range(SAMPLES)]}]
    profile = {"sampleType": {"typeStrindex": 1, "unitStrindex": 2}, "samples": samples}
    return json.dumps({"resourceProfiles": [{"resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "sender"}}]},
                                             "scopeProfiles": [{"profiles": [profile]}]}], "dictionary": tables})


def say():
    with open(acknowledged + ".new", "w") as f:
        f.write(f"{taken} {sent}\n")
    os.rename(acknowledged + ".new", acknowledged)


while True:
    sent += SAMPLES
    say()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("POST", "/v1development/profiles", request(), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        answer.read()
        taken += SAMPLES if answer.status == 200 else 0
    except (OSError, http.client.HTTPException):
        pass
    connection.close()
    say()
    time.sleep(0.02)
