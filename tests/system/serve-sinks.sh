#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# One `hearth serve` with several sinks at once: what Python's json made and curl sent comes out of each, in the form that sink
# has; and the answers about workloads.
. "$TOP/tests/system/lib.sh"

start printed "$HEARTH" serve --grpc-address off --http-address 127.0.0.1:0 --rest-address 127.0.0.1:0 --workloads \
	--print --print-form typed --print-sample-type samples --print-source yes --print-frame-type go --print-no-resource-attributes \
	--sink dir=samples --dir-container box/1 --sink file=all.jsonl --sink file=all.framed --sink file=all.otlp --sink prometheus
server=$started
until_true 10 grep -q '/workloads alone' printed.err || fail "does not listen: $(cat printed.err)"
url=$(sed -n 's/.*listening on \(http:[^ ]*\) for OTLP.*/\1/p' printed.err)
rest=$(sed -n 's/.*listening on \(http:[^ ]*\) for .workloads alone/\1/p' printed.err)

python3 - <<'PY'
import json
def resource(container, pid, stack):
    return {"resource": {"attributes": [{"key": "container.id", "value": {"stringValue": container}},
                                        {"key": "process.pid", "value": {"intValue": pid}}]},
            "scopeProfiles": [{"profiles": [{"sampleType": {"typeStrindex": 1}, "samples": [
                {"stackIndex": stack, "attributeIndices": [1], "timestampsUnixNano": ["1700000000000000000"]}]}]}]}
dictionary = {"stringTable": ["", "samples", "main", "x.go", "thread.name", "profile.frame.type"],
              "attributeTable": [{}, {"keyStrindex": 4, "value": {"stringValue": "t\u001b[1m"}},
                                 {"keyStrindex": 5, "value": {"stringValue": "go"}}],
              "functionTable": [{}, {"nameStrindex": 2, "filenameStrindex": 3}],
              "locationTable": [{}, {"lines": [{"functionIndex": 1, "line": "7"}], "attributeIndices": [2]}, {"address": 9}],
              "stackTable": [{}, {"locationIndices": [1, 2]}]}
for i in range(3):
    with open("request%d.json" % i, "w") as f:
        json.dump({"resourceProfiles": [resource("box/1", 12, 1), resource("other", 13 + i, 1)], "dictionary": dictionary}, f)
PY
for i in 0 1 2; do
	code=$(curl -s -o reply -w '%{http_code}' -H 'Content-Type: application/json' --data-binary "@request$i.json" \
		"$url/v1development/profiles")
	[ "$code" = 200 ] || fail "request $i: $code $(cat reply)"
	# Acknowledged means kept: the durable files have it now.
	[ "$(wc -l <all.jsonl)" = $((i + 1)) ] || fail "request $i is acknowledged, all.jsonl has $(wc -l <all.jsonl) lines"
	"$HEARTH" report --format print all.framed | grep -c 'New Sample' | grep -qx $((2 * (i + 1))) || fail "all.framed lacks request $i"
	"$HEARTH" report --format print all.otlp.part | grep -c 'New Sample' | grep -qx $((2 * (i + 1))) || fail "all.otlp.part lacks request $i"
done

[ "$(curl -s "$rest/workload/box%2F1/process/12/functions")" = '[{"Language":"go","Name":"main","File":"x.go"}]' ] ||
	fail "functions: $(curl -s "$rest/workload/box%2F1/process/12/functions")"
[ "$(curl -s "$url/workload/other/functions")" = '[{"Language":"go","Name":"main","File":"x.go"}]' ] || fail "not on the main port"
curl -s "$rest/workloads" | python3 -c '
import json, sys
w = json.load(sys.stdin)
assert set(w) == {"box/1", "other"} and set(w["other"]["Processes"]) == {"13", "14", "15"}, w' || fail "workloads"
for path in workload/box/functions workload/box%2F1/process/99/functions workload/box%2F1/process/x/functions workload/ metrics; do
	[ "$(curl -s -o reply -w '%{http_code}' "$rest/$path")" = 404 ] || fail "$path is there: $(cat reply)"
done

stop "$server"
[ "$(find samples -name '*.json' | sort | tr '\n' ' ')" = "samples/box%2F1/samples/1.json samples/box%2F1/samples/2.json samples/box%2F1/samples/3.json " ] ||
	fail "files: $(find samples)"
python3 -c '
import json
d = json.load(open("samples/box%2F1/samples/1.json"))
assert list(d) == ["container_id", "profile_id", "sample_type", "timestamps_unix_nano", "attributes", "frames"], d
assert d["frames"] == [{"type": "go", "function": "main", "file": "x.go", "line": 7}, {"type": "unknown", "address": "0x9"}], d
lines = [json.loads(l) for l in open("all.jsonl")]
assert len(lines) == 3 and all(len(l["resourceProfiles"]) == 2 for l in lines)' || fail "not as it was sent"
"$HEARTH" report --format print all.otlp | grep -c 'New Sample' | grep -qx 6 || fail "all.otlp is not whole"
grep -qxF '  thread.name: t\x1b[1m (Str)' printed || fail "control bytes: $(cat printed)"
grep -qx 'Instrumentation: go, Function: main, File: x.go, Line: 7, Column: 0' printed || fail "no go frame: $(cat printed)"
! grep -q 'unknown\|container.id:' printed || fail "what was not asked for is printed: $(cat printed)"
