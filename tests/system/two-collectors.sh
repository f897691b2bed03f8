#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The same profiles to two collectors with queues of their own, over HTTP and gRPC: the one that is away costs the other nothing,
# gets its share later, and each has counters of its own. Needs no BPF.
. "$TOP/tests/system/lib.sh"
/usr/bin/python3 -c 'import h2' 2>/dev/null || skip "no python3-h2 here"

free_port() {
	python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}
here=$(free_port) one=$(free_port) other=$(free_port)

start first python3 -u "$TOP/tests/unit/sinks/collector.py" "$one" 200
start forward "$HEARTH" serve --grpc-address off --http-address "127.0.0.1:$here" --collector "http://127.0.0.1:$one" \
	--collector "grpc://127.0.0.1:$other" --spool "$PWD/spool"
forwarder=$started
until_true 10 curl -fsS "http://127.0.0.1:$here/healthz" || fail "the forwarder does not answer: $(cat forward.err)"
until_true 10 grep -q '^port' first || fail "the first collector did not start"

# metric NAME COLLECTOR
metric() {
	curl -fsS "http://127.0.0.1:$here/metrics" | sed -n "s|^$1{collector=\"$2[^\"]*\"} ||p"
}

# is NAME COLLECTOR VALUE
is() {
	[ "$(metric "$1" "$2")" = "$3" ]
}

# One sample with one time stamp, and the seven tables.
python3 - >request <<-'PYTHON'
	import sys
	def field(number, data):
	    return bytes([number << 3 | 2, len(data)]) + data
	sample = field(5, (1758603335000000000).to_bytes(8, "little"))
	tables = b"".join(field(table, b"") for table in (1, 2, 3, 4, 5, 6, 7))
	sys.stdout.buffer.write(field(1, field(2, field(2, field(2, sample)))) + field(2, tables))
PYTHON
for _ in 1 2 3 4 5 6; do
	curl -fsS -m 20 -H 'Content-Type: application/x-protobuf' --data-binary @request "http://127.0.0.1:$here/v1development/profiles"
done
until_true 20 is hearth_exported_samples_total http 6 || fail "the collector that is there got $(metric hearth_exported_samples_total http) of 6"
until_true 10 is hearth_spool_samples grpc 6 || fail "$(metric hearth_spool_samples grpc) samples wait for the other, not 6"
is hearth_exported_samples_total grpc 0 || fail "sent to nobody"

start second /usr/bin/python3 -u "$TOP/tests/unit/sinks/grpc_collector.py" "$other" OK
until_true 40 is hearth_exported_samples_total grpc 6 || fail "the other got $(metric hearth_exported_samples_total grpc) of 6: $(cat forward.err)"
stop "$forwarder"
[ "$(grep -c '^request.* events=1 ' first)" = 6 ] || fail "the first got: $(cat first)"
[ "$(grep -c '^request.* events=1 ' second)" = 6 ] || fail "the second got: $(cat second)"
