#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `hearth serve` and clients that are not hearth: curl sends what protoc encoded, protoc reads the errors, Python reads /metrics.
. "$TOP/tests/system/lib.sh"

# The port is the kernel's choice; the start-up line names it.
start printed "$HEARTH" serve --grpc-address off --http-address 127.0.0.1:0 --print
server=$started
until_true 10 grep -q 'listening on http://127.0.0.1:[1-9]' printed.err || fail "does not listen: $(cat printed.err)"
url=$(sed -n 's/.*listening on \(http:[^ ]*\).*/\1/p' printed.err)
profiles=$url/v1development/profiles

protoc -I"$TOP/proto/opentelemetry" --encode=opentelemetry.proto.collector.profiles.v1development.ExportProfilesServiceRequest \
	profiles_service.proto >request.bin <<'TEXT'
resource_profiles {
  resource { attributes { key: "container.id" value { string_value: "box" } } }
  scope_profiles {
    scope {}
    profiles {
      sample_type { type_strindex: 1 unit_strindex: 2 }
      period_type {}
      time_unix_nano: 1700000000000000000
      duration_nano: 10
      samples { stack_index: 1 attribute_indices: 1 timestamps_unix_nano: 1700000000000000001 }
    }
  }
}
dictionary {
  mapping_table {}
  location_table {}
  location_table { lines { function_index: 1 line: 7 } }
  function_table {}
  function_table { name_strindex: 4 }
  link_table {}
  string_table: ""
  string_table: "samples"
  string_table: "count"
  string_table: "process.executable.name"
  string_table: "answer_to_everything"
  attribute_table {}
  attribute_table { key_strindex: 3 value { string_value: "worker" } }
  stack_table {}
  stack_table { location_indices: 1 }
}
TEXT
gzip -kn request.bin

# post STATUS CURL-OPTION...: the answer's body is left in the file answer
post() {
	local expected=$1 got
	shift
	got=$(curl -sS -o answer -w '%{http_code}' -H 'Content-Type: application/x-protobuf' "$@" "$profiles")
	[ "$got" = "$expected" ] || fail "$*: status $got, not $expected: $(cat answer)"
}
# refused CODE WORD: the answer is a google.rpc.Status that says so
refused() {
	protoc -I"$TOP/proto/opentelemetry" --decode=google.rpc.Status status.proto <answer >status || fail "answer is no Status"
	grep -q "^code: $1\$" status && grep -q "$2" status || fail "expected code $1 and '$2': $(cat status)"
}

post 200 --data-binary @request.bin
post 200 --data-binary @request.bin.gz -H 'Content-Encoding: gzip'
[ ! -s answer ] || fail "a full success is an empty message"
post 200 --data-binary @request.bin -H 'Transfer-Encoding: chunked' -H 'otlp-profiles-development-version: 1'
post 400 --data-binary @request.bin -H 'otlp-profiles-development-version: 2'
refused 3 otlp-profiles-development-version
post 400 --data-binary @request.bin.gz
refused 3 .
head -c 100000000 /dev/zero | gzip >bomb.gz
post 413 --data-binary @bomb.gz -H 'Content-Encoding: gzip'
refused 8 33554432
# What fits in 32 MiB is taken, unpacked too; a byte more is not.
head -c 33554432 /dev/zero >most
post 400 --data-binary @most
refused 3 .
post 400 --data-binary @<(gzip -1 <most) -H 'Content-Encoding: gzip'
printf x >>most
post 413 --data-binary @most
refused 8 33554432

# Printing happens behind a queue.
three_printed() {
	[ "$(grep -c 'Function: answer_to_everything' printed)" = 3 ]
}
until_true 5 three_printed || fail "not all that was accepted was printed: $(cat printed)"

curl -fsS "$url/metrics" >metrics
grep -qx 'lazybackend_received_samples_total{container_id="box",process_executable_name="worker"} 3' metrics || fail "$(cat metrics)"
grep -qx 'lazybackend_received_locations_total{container_id="box",process_executable_name="worker",language="unknown"} 3' metrics ||
	fail "$(cat metrics)"
grep -qx 'hearth_received_requests_total{path="/v1development/profiles",code="200"} 3' metrics || fail "$(cat metrics)"

# A second server on the port says what is wrong and what to do.
status=0
"$HEARTH" serve --grpc-address off --http-address "${url#http://}" >second 2>second.err || status=$?
[ $status = 1 ] && grep -q 'in use.*another port' second.err || fail "second server: status $status, $(cat second.err)"
rm second.err

kill -TERM "$server"
status=0
wait "$server" || status=$?
[ $status = 0 ] || fail "exit status $status after SIGTERM"
