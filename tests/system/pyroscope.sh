#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Pyroscope's query service as Grafana's data source asks it, by Pyroscope's own Go client: protobuf, JSON, packed.
. "$TOP/tests/system/lib.sh"

# Not of this minute, so that hearth's own clock does not matter; whole steps.
base=$((($(date +%s) - 3600) / 60 * 60000))
start serve.out "$HEARTH" serve --grpc-address off --http-address 127.0.0.1:0 --store :memory:
until_true 10 grep -q 'page at http' serve.out.err || fail "no page: $(cat serve.out.err)"
url=$(sed -n 's/.*page at \(http:[^ ]*\)\/.*/\1/p' serve.out.err)
python3 "$TOP/tests/system/pyroscope/judge.py" make "$base" >request.json
curl -sf -o answer -H 'Content-Type: application/json' --data-binary @request.json "$url/v1development/profiles" || fail "not taken: $(cat answer)"
[ "$(cat answer)" = '{}' ] || fail "taken in part: $(cat answer)"

# By hand: names of fields in both spellings, numbers in quotes or not, errors in Connect's form.
query=$url/querier.v1.QuerierService
# post STATUS METHOD BODY CURL-OPTION...
post() {
	local got
	got=$(curl -s -o answer -w '%{http_code}' -H 'Content-Type: application/json' "${@:4}" --data-binary "$3" "$query/$2")
	[ "$got" = "$1" ] || fail "$2 $3: status $got, not $1: $(cat answer)"
}
post 200 LabelValues "{\"name\":\"service_name\",\"start\":\"$base\",\"end\":$((base + 60000))}"
[ "$(cat answer)" = '{"names":["search","shop"]}' ] || fail "says $(cat answer)"
post 200 SelectSeries "{\"profile_typeID\":\"process_cpu:samples:count:cpu:nanoseconds\",\"start\":$base,\"end\":$((base + 60000)),\"step\":60,\"groupBy\":[],\"future\":[{\"a\":1}]}"
[ "$(cat answer)" = "{\"series\":[{\"labels\":[],\"points\":[{\"value\":210,\"timestamp\":\"$((base + 60000))\"}]}]}" ] || fail "says $(cat answer)"
# By service, in two steps: 120 samples 250 ms apart and 30 that are 1 s apart; 60 that are 500 ms apart.
post 200 SelectSeries "{\"profile_typeID\":\"process_cpu:samples:count:cpu:nanoseconds\",\"start\":$base,\"end\":$((base + 60000)),\"step\":15,\"groupBy\":[\"service_name\"]}"
points() { printf '{"labels":[{"name":"service_name","value":"%s"}],"points":[{"value":%d,"timestamp":"%d"},{"value":%d,"timestamp":"%d"}]}' "$1" "$2" $((base + 15000)) "$2" $((base + 30000)); }
[ "$(cat answer)" = "{\"series\":[$(points shop 75),$(points search 30)]}" ] || fail "says $(cat answer)"
post 400 LabelValues '{"name":'
grep -q '^{"code":"invalid_argument","message":"' answer || fail "says $(cat answer)"
post 400 LabelValues '{}'
post 400 SelectMergeStacktraces '{"format":"PROFILE_FORMAT_DOT"}'
post 501 SelectMergeSpanProfile '{}'
grep -q '"code":"unimplemented"' answer || fail "says $(cat answer)"
[ "$(curl -s -o answer -w '%{http_code}' -d '{}' "$query/LabelValues")" = 415 ] || fail "a form is taken: $(cat answer)"
post 403 LabelValues '{}' -H 'Origin: http://elsewhere.example'
post 403 LabelValues '{}' -H 'Host: elsewhere.example'
post 413 LabelValues "{\"name\":\"$(head -c 70000 /dev/zero | tr '\0' x)\"}"

head -c 1000000 /dev/zero | gzip >bomb
post 413 LabelValues @bomb -H "Content-Encoding: gzip"

command -v go >/dev/null || skip "no go here for Pyroscope's client"
cp -r "$TOP/tests/system/pyroscope" client
cd client
if ! GOFLAGS=-mod=mod timeout 120 go build -o client . >../build.log 2>&1; then
	skip "Pyroscope's client module cannot be had or built here: $(tail -n 1 ../build.log)"
fi
cd ..
client/client "$url" "$base" $((base + 60000)) >answers || fail "the client fails"
python3 "$TOP/tests/system/pyroscope/judge.py" check "$base" answers || fail "other numbers: $(head -c 600 answers)"
