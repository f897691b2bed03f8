#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Spans, logs and exemplars that come in are kept beside the store, over a restart too, and lead to samples: by link, and by thread
# and time where samples have none. The page shows them, and the ways there and back.
. "$TOP/tests/system/lib.sh"

python3 "$TOP/tests/system/signals.py" "$(date +%s.%N)" profiles.json traces.json logs.json metrics.json

# serve OPTION...: its address is $url
serve() {
	start served "$HEARTH" serve --http-address 127.0.0.1:0 --grpc-address off --store kept "$@"
	until_true 10 grep -q 'listening on http://127.0.0.1:[1-9]' served.err || fail "does not listen: $(cat served.err)"
	url=$(sed -n 's/.*listening on \(http:[^ ]*\).*/\1/p' served.err)
}

# has PATH TEXT: the answer has TEXT, now or soon, as nobody waits for records to be kept
has() {
	until_true 10 sh -c 'curl -sf "$1" | grep -qF -- "$2"' - "$url/api/v1/$1" "$2" || fail "$1: $(curl -s "$url/api/v1/$1" | head -c 1000), lacks $2"
}

serve --signals-size 0
curl -sf -H 'Content-Type: application/json' --data-binary @traces.json "$url/v1/traces" >reply || fail "not taken: $(cat reply)"
stop "$started"
[ ! -e kept/signals.db ] || fail "kept in spite of --signals-size 0"

serve
for signal in traces logs metrics; do
	curl -sf -H 'Content-Type: application/json' --data-binary "@$signal.json" "$url/v1/$signal" >reply || fail "$signal: not taken: $(cat reply)"
done
curl -sf -H 'Content-Type: application/json' --data-binary @profiles.json "$url/v1development/profiles" >reply || fail "not taken: $(cat reply)"
has "traces?limit=1" '"name":"GET /cart","service":"shop"'
stop "$started"
python3 "$TOP/tests/system/store_docs.py" "$TOP/docs/store.md" kept/signals.db || fail "docs/store.md"
[ "$(stat -c %a kept/signals.db)" = 600 ] || fail "signals.db has mode $(stat -c %a kept/signals.db)"

serve --trace-url 'https://traces.example/trace/${trace_id}' # again, with what was kept
slow=00000000000000000000000000000005
has "traces?limit=1" '"duration_ns":420000000,"spans":3,"errors":0,"joined":"link"'
has "trace/$slow" '"name":"GET /cart","service":"shop"'
has "trace/$slow" '"ns":400000000,"joined":"link","kinds":{"cpu":{"weight":400000000,"events":40}}'
has "trace/$slow" '"ns":40000000,"joined":"time","kinds":{"cpu":{"weight":20000000,"events":2},"off_cpu":{"weight":20000000,"events":2}}'
has "span/0000000000000043/flamegraph" '"joined":"time"'
has "logs?severity=error&text=request%2014" '"body":"slow request 14","trace_id":"0000000000000000000000000000000f"'
has "exemplars?limit=1" '"metric":"request.duration","unit":"s"'
has "flamegraph?query=%7Bspan_name%3D%22query%22%7D&kind=off_cpu" '"total":400000000'
curl -s "$url/metrics" >metrics
grep -q '^hearth_signals_lost_requests_total{reason="not written"} 0' metrics || fail "$(grep hearth_signals metrics)"

status=0
python3 "$TOP/tests/browser/page_signals.py" "$url" . || status=$?
if [ $status = 77 ]; then
	left_out page "no chromium and chromedriver here"
elif [ $status != 0 ]; then
	exit $status
fi
curl -sf -X POST "$url/api/v1/clear" >reply || fail "not cleared: $(cat reply)"
has "logs" '"logs":[]'
stop "$started"
