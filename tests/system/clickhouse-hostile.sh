#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Texts that would like to be SQL, in all that senders and users may name, and a real ClickHouse: it keeps and finds them as the store on
# disk does, and nothing else comes of them. Needs no BPF.
. "$TOP/tests/system/lib.sh"
. "$TOP/tests/clickhouse/lib.sh"
need_clickhouse

# serve NAME OPTION...: its URL in $url, its pid in $server
serve() {
	start "$1.out" "$HEARTH" serve --http-address 127.0.0.1:0 --grpc-address off --signals-age 30d "${@:2}"
	server=$started
	until_true 20 grep -q 'page at http' "$1.out.err" || fail "no page: $(cat "$1.out.err")"
	url=$(sed -n 's/.*page at \(http:[^ ]*\)\/.*/\1/p' "$1.out.err")
}
post() { curl -sS -f -o post.out -H 'Content-Type: application/json' --data-binary "@$2" "$3/$1"; }

# The requests, and a question a line: each text as a service, as a label's name and value, as a function, a file, a span, a log line.
python3 - <<'PYTHON'
import json
import time
import urllib.parse

TEXTS = ["x", "'", "''", "\\", "\\'", '"', "`", "x\\", "' OR 1 = 1 --", "'; DROP TABLE hearth_samples; --", "') UNION ALL SELECT 1 --", "/* */", "{p0:String}",
         "{p1:Identifier}", "{}", "$$", "\\N", "\\0", "\\x27", "a\nb", "a\tb", "a\rb", "&param_p0=y&query=DROP TABLE hearth_samples", "%27%0A#?", "\u2019", "\u00e9\u0001"]
now = time.time_ns() - 60 * 10**9
strings, functions, stacks, locations, attributes, resources, spans, logs = [""], [{}], [{}], [{}], [{}], [], [], []


def string(text):
    if text not in strings:
        strings.append(text)
    return strings.index(text)


kind = {"typeStrindex": string("samples"), "unitStrindex": string("count")}
for i, text in enumerate(TEXTS):
    functions.append({"nameStrindex": string("f " + text), "filenameStrindex": string(text)})
    locations.append({"lines": [{"functionIndex": i + 1, "line": 5}]})
    stacks.append({"locationIndices": [i + 1]})
    attributes.append({"keyStrindex": string("thread.name"), "value": {"stringValue": text}})
    samples = [{"stackIndex": i + 1, "attributeIndices": [i + 1], "timestampsUnixNano": [str(now + j) for j in range(i + 1)]}]
    described = {"attributes": [{"key": k, "value": {"stringValue": text}} for k in ("service.name", "k" + text, "label")]}
    resources.append({"resource": described, "scopeProfiles": [{"profiles": [{"sampleType": kind, "samples": samples}]}]})
    ids = {"traceId": f"{i + 1:032x}", "spanId": f"{i + 1:016x}"}
    spans.append({"resource": described, "scopeSpans": [{"spans": [{**ids, "name": text, "startTimeUnixNano": str(now), "endTimeUnixNano": str(now + 9)}]}]})
    logs.append({"resource": described, "scopeLogs": [{"logRecords": [{**ids, "timeUnixNano": str(now), "body": {"stringValue": text}}]}]})
dictionary = {"mappingTable": [{}], "linkTable": [{}], "stringTable": strings, "functionTable": functions, "locationTable": locations, "stackTable": stacks,
              "attributeTable": attributes}
json.dump({"resourceProfiles": resources, "dictionary": dictionary}, open("profiles", "w"))
json.dump({"resourceSpans": spans}, open("spans", "w"))
json.dump({"resourceLogs": logs}, open("logs", "w"))

span = f"from={now / 1e9 - 60:.3f}&to={now / 1e9 + 60:.3f}"


def quoted(text):
    return json.dumps(text, ensure_ascii=False)


with open("questions", "w") as out:
    for number, text in enumerate(TEXTS):
        q = urllib.parse.quote
        # a matcher of each kind by turns, as each question takes its time there
        label, match = ("service.name", "label", "thread.name", "comm")[number % 4], ("=", "!=", "=")[number % 3]
        for question in (f"top?{span}&limit=100&query={q('{' + label + match + quoted(text) + '}')}", f"values?{span}&label={q('k' + text)}",
                         f"flamegraph?{span}&by={q('k' + text)}&kind=samples", f"logs?{span}&text={q(text)}",
                         (f"top?{span}&kind={q(text)}", f"series?{span}&query={q('{label=~' + quoted(text) + '}')}",
                          f"traces?{span}&query={q('{span_name=' + quoted(text) + '}')}", f"timeline?{span}&points=3&by={q(text)}")[number % 4]):
            out.write(f"/api/v1/{question}\n")
    out.write(f"/api/v1/labels?{span}\n/api/v1/series?{span}\n/api/v1/values?{span}&label=service.name\n")
open("number", "w").write(str(sum(range(len(TEXTS) + 1))))
PYTHON

start_clickhouse
serve fleet --sink "clickhouse=$clickhouse/a%27b%22%20--"
in_clickhouse=$url
serve disk --store store
for where in "$url" "$in_clickhouse"; do
	post v1development/profiles profiles "$where" || fail "profiles are not taken: $(cat post.out ./*.err)"
	post v1/traces spans "$where" || fail "spans are not taken: $(cat post.out)"
	post v1/logs logs "$where" || fail "log lines are not taken: $(cat post.out)"
done
# shellcheck disable=SC2016 # the back quotes are ClickHouse's
[ "$(ask_clickhouse 'SELECT count() FROM `a'"'"'b" --`.hearth_samples')" = "$(cat number)" ] || fail "of $(cat number) samples others are there: $(ask_clickhouse 'SELECT count() FROM `a'"'"'b" --`.hearth_samples')"
mapfile -t questions <questions
python3 "$TOP/tests/clickhouse/same.py" "$url" "$in_clickhouse" "${questions[@]}" || fail "answers are not the same"
! grep -qiE 'syntax|exception|DB::' fleet.out.err || fail "ClickHouse refused a statement: $(cat fleet.out.err)"
# shellcheck disable=SC2016
tables=$(ask_clickhouse 'SELECT count() FROM system.tables WHERE startsWith(name, '"'"'hearth_'"'"')')
[ "$tables" -ge 7 ] || fail "$tables tables are left"
[ "$(ask_clickhouse "SELECT count() FROM system.databases WHERE name NOT IN ('system', 'default', 'INFORMATION_SCHEMA', 'information_schema', '_local')")" = 1 ] ||
	fail "databases: $(ask_clickhouse 'SELECT name FROM system.databases')"
echo "ok $(wc -l <questions) questions"
