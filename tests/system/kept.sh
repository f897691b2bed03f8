#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Whatever is answered 200 is kept, logs as well as profiles: a file on a disk that runs full, behind HTTP and, one
# hearth further, behind gRPC; and a collector that is away. Needs no BPF.
. "$TOP/tests/system/lib.sh"
[ "$(id -u)" = 0 ] || skip "needs root"
mkdir small
mount -t tmpfs -o size=64k none small 2>/dev/null || skip "no file system can be mounted here"
end() {
	for pid in "${pids[@]}"; do kill -KILL "$pid" 2>/dev/null || :; done
	wait
	umount small
}
trap end EXIT

# url FILE: where the serve listens whose messages are there
url() {
	until_true 10 grep -q 'listening on' "$1" || fail "does not listen: $(cat "$1")"
	sed -n "s/.*[ ,]\($2:[^ ;]*\) for OTLP.*/\1/p" "$1"
}
start far.out "$HEARTH" serve --http-address 127.0.0.1:0 --grpc-address 127.0.0.1:0 --sink file=small/all.jsonl
far=$started
far_http=$(url far.out.err http) far_grpc=$(url far.out.err grpc)
start near.out "$HEARTH" serve --http-address 127.0.0.1:0 --grpc-address off --collector "$far_grpc" --print
near=$started
near_http=$(url near.out.err http)

# A log record of 4,000 bytes.
python3 -c 'import json; json.dump({"resourceLogs": [{"scopeLogs": [{"logRecords": [{"body": {"stringValue": "x" * 4000}}]}]}]}, open("logs", "w"))'
# post URL: its status
post() {
	curl -s -m 20 -o reply -w '%{http_code}' -H 'Content-Type: application/json' --data-binary @logs "$1/v1/logs"
}
# kept FILE: whole lines of it
kept() {
	python3 -c 'import json, sys; print(sum(1 for line in open(sys.argv[1]) if json.loads(line)))' "$1"
}

taken=0
for target in "$near_http" "$far_http" "$near_http"; do
	[ "$(post "$target")" = 200 ] || fail "not taken: $(cat reply)"
	taken=$((taken + 1))
	[ "$(kept small/all.logs.jsonl)" = $taken ] || fail "$taken acknowledged, $(kept small/all.logs.jsonl) kept"
done
echo "ok kept when acknowledged"
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
	status=$(post "$far_http")
	[ "$status" != 200 ] || taken=$((taken + 1))
done
[ "$status" = 503 ] || fail "the disk is full, and the answer is $status"
grep -q 'No space left' reply || fail "no reason: $(cat reply)"
[ "$(kept small/all.logs.jsonl)" = $taken ] || fail "$taken acknowledged, $(kept small/all.logs.jsonl) kept"
echo "ok not acknowledged when the disk is full ($taken were)"

# The first one tries again, and answers when there is room.
post "$near_http" >near.status &
posting=$!
until_true 10 grep -q 'UNAVAILABLE.*No space left' near.out.err || fail "no word about it: $(cat near.out.err)"
[ ! -s near.status ] || fail "answered $(cat near.status) by the first, kept by nobody"
[ "$(kept small/all.logs.jsonl)" = $taken ] || fail "$taken acknowledged, $(kept small/all.logs.jsonl) kept"
: >small/all.logs.jsonl
wait "$posting"
[ "$(cat near.status)" = 200 ] || fail "there is room again, and it is not taken: $(cat reply)"
[ "$(kept small/all.logs.jsonl)" = 1 ] || fail "acknowledged, and $(kept small/all.logs.jsonl) kept"
echo "ok goes on when there is room"
stop "$far"
[ "$(grep -c 'Body: ' near.out)" = 3 ] || fail "print has $(grep -c 'Body: ' near.out) records"

# Nobody there: without a spool nothing is acknowledged, with one it is, and delivered later.
[ "$(curl -s -m 1 -o reply -w '%{http_code}' -H 'Content-Type: application/json' --data-binary @logs "$near_http/v1/logs" || :)" = 000 ] ||
	fail "acknowledged, and nobody has it: $(cat reply)"
kill -KILL "$near"
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
start spool.out "$HEARTH" serve --http-address 127.0.0.1:0 --grpc-address off --collector "http://127.0.0.1:$port" --spool "$PWD/spool"
spooling=$started
[ "$(post "$(url spool.out.err http)")" = 200 ] || fail "not taken into the spool: $(cat reply)"
kill -KILL "$spooling"
start late.out "$HEARTH" serve --http-address "127.0.0.1:$port" --grpc-address off --sink file=late.jsonl
late=$started
start again.out "$HEARTH" serve --http-address 127.0.0.1:0 --grpc-address off --collector "http://127.0.0.1:$port" --spool "$PWD/spool"
until_true 20 test -s late.logs.jsonl || fail "not delivered from the spool: $(cat again.out.err)"
stop "$late"
[ "$(kept late.logs.jsonl)" = 1 ] && [ ! -s late.jsonl ] || fail "$(wc -l late.*)"
echo "ok through the spool"
