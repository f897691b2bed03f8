#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A forwarding receiver with a spool between clients that count and a collector that comes and goes: what lies in the spool reaches
# the collector exactly once, although the forwarder is killed twice and the collector answers in every bad way there is.
# Needs no BPF.
. "$TOP/tests/system/lib.sh"

free_port() {
	python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}
here=$(free_port)
there=$(free_port)

forward() {
	start "forward.$1" "$HEARTH" serve --grpc-address off --http-address "127.0.0.1:$here" --collector "http://127.0.0.1:$there" --spool "$PWD/spool" \
		--collector-timeout 2s
	forwarder=$started
	until_true 10 curl -fsS "http://127.0.0.1:$here/healthz" || fail "the forwarder does not answer: $(cat "forward.$1.err")"
}

# collector NAME ANSWER...: the collector, whose lines go to collected.NAME
collector() {
	local name=$1
	shift
	start "collected.$name" python3 -u "$TOP/tests/unit/sinks/collector.py" "$there" "$@"
	collector=$started
	until_true 10 grep -q '^port' "collected.$name" || fail "the collector did not start: $(cat "collected.$name.err")"
}

sent=0 number=0
# send N: N requests, each with other events; those that are answered 200 count
send() {
	for _ in $(seq "$1"); do
		number=$((number + 1))
		python3 - "$number" >request <<-'PYTHON'
			import sys
			def field(number, data):
			    return bytes([number << 3 | 2]) + (bytes([len(data)]) if len(data) < 128 else bytes([len(data) & 127 | 128, len(data) >> 7])) + data
			events = int(sys.argv[1])
			sample = field(5, b"".join((1758603335000000000 + i).to_bytes(8, "little") for i in range(events)))
			tables = b"".join(field(table, b"") for table in (1, 2, 3, 4, 5, 6, 7))
			sys.stdout.buffer.write(field(1, field(2, field(2, field(2, sample)))) + field(2, tables))
		PYTHON
		[ "$(curl -sS -o answer -w '%{http_code}' -H 'Content-Type: application/x-protobuf' --data-binary @request \
			"http://127.0.0.1:$here/v1development/profiles")" = 200 ] || fail "not taken: $(cat answer)"
		sent=$((sent + number))
	done
}

# arrived: events of the requests that the collectors acknowledged
arrived() {
	cat collected.* | sed -nE 's/^request answer=(200|202|slow=[0-9.]+) .* events=([0-9]+) .*/\2/p' | awk '{ sum += $1 } END { print sum + 0 }'
}

all_arrived() {
	[ "$(arrived)" -ge "$sent" ]
}

metric() {
	curl -fsS "http://127.0.0.1:$here/metrics" | sed -n "s/^$1 //p"
}

# kept: all that was sent has arrived or is in the spool
kept() {
	[ "$(($(arrived) + $(metric hearth_spool_samples)))" = "$sent" ]
}

forward 1
send 20
until_true 10 kept || fail "the spool holds $(metric hearth_spool_samples) samples, not $sent"
kill -KILL "$forwarder"
wait "$forwarder" || :

forward 2
send 10
until_true 10 kept || fail "after SIGKILL the spool holds $(metric hearth_spool_samples) samples, not $sent"
collector 1 200 503 429:after=1 200 close cut 200 200 hang=5 502 200 hang=30
until_true 60 grep -q answer=hang=30 collected.1 || fail "the collector was not tried: $(cat collected.1 forward.2.err)"
kill -KILL "$collector" # in the middle of a request
send 5
until_true 20 kept || fail "$(arrived) arrived and $(metric hearth_spool_samples) are in the spool, of $sent"
kill -KILL "$forwarder" # and so the forwarder
wait "$forwarder" || :

forward 3
collector 2 200
send 5
until_true 60 all_arrived || fail "$(arrived) of $sent events arrived: $(cat forward.*.err)"
until_true 10 kept && [ "$(metric hearth_spool_samples)" = 0 ] || fail "still in the spool: $(metric hearth_spool_samples)"
[ "$(arrived)" = "$sent" ] || fail "$(arrived) events arrived, $sent were sent"
stop "$forwarder"
[ "$(find spool -name '*.spool' | wc -l)" = 0 ] || fail "files are left: $(find spool)"
echo "$sent events in $number requests, all arrived once"
