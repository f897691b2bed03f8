#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A disk that is full, or not to be written, keeps nobody from what was acknowledged before: serve starts and shows it, senders are
# told to come again, retention makes room with the reserve, and samples are taken again once there is room. Needs no BPF.
# Waits: for servers that begin, refuse and end.
. "$TOP/tests/system/lib.sh"

# serve OPTION...: a server over disk/store; sets url, port and server
serve() {
	start serve.out "$HEARTH" serve --grpc-address 127.0.0.1:0 --http-address 127.0.0.1:0 --store "$PWD/disk/store" --keep-age 30d "$@"
	server=$started
	until_true 20 grep -q 'page at http' serve.out.err || fail "$what: no page: $(cat serve.out.err)"
	url=$(sed -n 's/.*page at \(http:[^ ]*\)\/.*/\1/p' serve.out.err)
	port=$(sed -n 's|.* grpc://127.0.0.1:\([0-9]*\).*|\1|p' serve.out.err)
}
make_request() { python3 "$TOP/tests/system/store_request.py" "$@"; }
# send: the status of the answer
send() {
	curl -sS -m 20 -D headers -o answer -w '%{http_code}' -H 'Content-Type: application/json' --data-binary @request "$url/v1development/profiles"
}
metric() { curl -sf "$url/metrics" | sed -n "s/^$1 //p"; }
shown() { curl -sf "$url/api/v1/top?from=first&to=last&limit=1" | sed -n 's/.*"events":\([0-9]*\),.*/\1/p'; }
samples() { "$HEARTH" store info --store disk/store 2>info.err | sed -n 's/^samples //p'; }
free_bytes() { df -B1 --output=avail disk | tail -n 1 | tr -d ' '; }
fill() {
	head -c 1G /dev/zero >disk/filler 2>/dev/null && fail "$what: 1 GB is written"
	[ "$(free_bytes)" = 0 ] || fail "$what: $(free_bytes) bytes are free"
}
taken() { [ "$(send)" = 200 ]; }
sound() { "$HEARTH" store verify --store disk/store >verify.out 2>&1 || fail "$what: $(cat verify.out)"; }

# --- others may look into it: said once, with what to do; needs no root ---
what=mode
mkdir disk disk/store
chmod 755 disk/store
serve
grep -q "disk/store has mode 0755, .*chmod 700 $PWD/disk/store" serve.out.err || fail "mode 0755 is not told of: $(cat serve.out.err)"
stop "$server"
chmod 700 disk/store
serve
! grep -q 'has mode' serve.out.err || fail "mode 0700 is told of: $(cat serve.out.err)"
stop "$server"
rm -rf disk/store

[ "$(id -u)" = 0 ] || skip "a disk of its own needs root"
mount -t tmpfs -o size=8m tmpfs disk
trap 'umount -l disk image 2>/dev/null || :; for pid in "${pids[@]}"; do kill -KILL "$pid" 2>/dev/null || :; done' EXIT
base=$((($(date +%s) - 2 * 86400) / 3600 * 3600))
make_request $base 3 60000 0 >request

reader=
start_reader() {
	start reader /usr/bin/python3 -uc 'import sqlite3, sys, time
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("BEGIN")
print(db.execute("SELECT count(*) FROM blocks").fetchone()[0], "blocks")
time.sleep(60)' disk/store/profiles.db
	reader=$started
	until_true 20 grep -q '^0 blocks' reader || fail "$what: no reader: $(cat reader reader.err)"
}
# make_store: 180,000 samples; ended in order, or killed when $1 says so: then the newest are in the log alone, whose index is gone.
# With $1 "logged" all of them are: somebody who reads what the store was before them keeps the log from being brought back.
make_store() {
	rm -rf disk/*
	serve --keep-free 0
	[ "$1" != logged ] || start_reader
	for _ in 1 2 3; do
		taken || fail "$what: not taken: $(cat answer)"
	done
	if [ "$1" != stopped ]; then
		kill -KILL "$server" ${reader:+"$reader"}
		wait "$server" ${reader:+"$reader"} 2>/dev/null || :
		reader=
		rm -f disk/store/profiles.db-shm
	else
		stop "$server"
	fi
}
# read_only_use: what works where nothing can be written, and how what does not is refused
read_only_use() {
	local why=$1 number status=0
	[ "$(samples)" = 180000 ] || fail "$what: info: $(samples) $(cat info.err)"
	sound
	number=$("$HEARTH" report disk/store --format csv 2>report.err | wc -l)
	[ "$number" -gt 100 ] || fail "$what: report has $number lines: $(cat report.err)"
	"$HEARTH" store prune --store disk/store --keep-age 1h --keep-free 0 >prune.out 2>&1 || status=$?
	[ $status = 1 ] && grep -q "not pruned: $why" prune.out || fail "$what: prune: $status, $(cat prune.out)"
	start view "$HEARTH" view disk/store --http-address 127.0.0.1:0
	until_true 20 grep -q 'page at http' view.err || fail "$what: view: $(cat view.err)"
	url=$(sed -n 's/.*page at \(http:[^ ]*\)\/.*/\1/p' view.err)
	[ "$(shown)" = 180000 ] || fail "$what: view shows $(shown) samples"
	[ "$(send)" = 503 ] || fail "$what: view takes samples: $(cat answer)"
	stop "$started"
	serve --keep-free 0
	grep -q "nothing can be written to .*: $why; what is kept can be read" serve.out.err || fail "$what: not said: $(cat serve.out.err)"
	[ "$(send)" = 503 ] && tr -d '\r' <headers | grep -q '^Retry-After: [0-9]' || fail "$what: $(cat headers answer)"
	[ "$(metric hearth_store_lost_events_total)" = 60000 ] || fail "$what: not counted"
	is_refusing() { [ "$(metric hearth_store_is_refusing)" = 1 ]; }
	until_true 10 is_refusing || fail "$what: hearth_store_is_refusing is $(metric hearth_store_is_refusing)"
	[ "$(shown)" = 180000 ] || fail "$what: serve shows $(shown) samples"
	[ "$(samples)" = 180000 ] || fail "$what: info beside serve: $(cat info.err)"
	if /usr/bin/python3 -c 'import grpc' 2>/dev/null; then
		"$HEARTH" convert disk/store one.otlp 2>convert.err || fail "$what: convert: $(cat convert.err)"
		"$TOP/tests/system/grpc_clients.py" full "$port" one.otlp || fail "$what: gRPC"
	fi
}
# written_again: after the cause is gone, without a new start
written_again() {
	until_true 20 taken || fail "$what: not taken though there is room: $(cat answer serve.out.err)"
	[ "$(shown)" -ge 240000 ] || fail "$what: $(shown) samples are shown"
	is_taking() { [ "$(metric hearth_store_is_refusing)" = 0 ]; }
	until_true 10 is_taking || fail "$what: hearth_store_is_refusing is $(metric hearth_store_is_refusing)"
	stop "$server"
	[ "$(samples)" -ge 240000 ] || fail "$what: $(samples) samples at the end"
	sound
	[ -s disk/store/reserve ] || fail "$what: there is no reserve"
}
for end in stopped killed; do
	what="full disk, no reserve, $end"
	make_store $end
	rm disk/store/reserve
	fill
	read_only_use 'No space left on device'
	rm disk/filler
	written_again

	what="read-only file system, $end"
	make_store $end
	mount -o remount,ro disk
	read_only_use 'Read-only file system'
	mount -o remount,rw disk
	written_again
done
echo "ok what cannot be written is read"

# --- the reserve: retention works on a disk without one free byte, and it is there again afterwards ---
what="prune on a full disk"
for end in stopped killed logged; do
	make_store $end
	reserve=$(stat -c %s disk/store/reserve)
	[ "$reserve" = 524288 ] || fail "$what: the reserve has $reserve bytes"
	[ $end != logged ] || [ "$(stat -c %s disk/store/profiles.db-wal)" -gt 1000000 ] || fail "$what, $end: $(ls -l disk/store)"
	bytes=$("$HEARTH" store info --store disk/store | sed -n 's/^size *\([0-9]*\) .*/\1/p')
	[ "$bytes" = $(($(stat -c %s disk/store/profiles.db) + reserve + $(stat -c %s disk/store/profiles.db-wal 2>/dev/null || echo 0))) ] ||
		fail "$what: the reserve is not counted: $bytes"
	fill
	"$HEARTH" store prune --store disk/store --keep-age 1h --keep-free 0 2>prune.err || fail "$what, $end: $(cat prune.err)"
	# After a kill the log's own room may do: all that is in it goes into the file, which has room for it.
	[ $end != stopped ] || grep -q 'the reserve was freed so that retention can work' prune.err ||
		fail "$what, $end: not said: $(cat prune.err)"
	[ "$(samples)" = 0 ] && [ "$(free_bytes)" -gt 100000 ] || fail "$what, $end: $(samples) samples, $(free_bytes) bytes free"
	[ "$(stat -c %s disk/store/reserve)" = "$reserve" ] || fail "$what, $end: no reserve afterwards: $(ls -l disk/store)"
	sound
done

what="serve on a full disk that retention may make room on"
mount -o remount,size=24m disk
make_request $base 3 60000 0 >request
make_store stopped
serve --keep-free 0
for _ in $(seq 9); do
	taken || fail "$what: not taken: $(cat answer)"
done
stop "$server"
fill
serve --keep-free 5
until_true 60 taken || fail "$what: not taken: $(cat answer serve.out.err)"
pruned=$(metric hearth_store_pruned_events_total)
[ "$pruned" -gt 0 ] && [ "$pruned" -lt 600000 ] || fail "$what: $pruned samples were removed"
[ "$(metric hearth_store_moved_aside_total)" = 0 ] || fail "$what: taken for damage"
stop "$server"
[ "$(samples)" = $((780000 - pruned)) ] || fail "$what: $(samples) samples, $pruned were removed"
[ -s disk/store/reserve ] || fail "$what: there is no reserve: $(ls -l disk/store)"
sound

what="serve on a full disk that nothing can be removed from"
make_store stopped
fill
serve --keep-free 0
[ "$(send)" = 503 ] || fail "$what: $(cat answer)"
[ "$(shown)" = 180000 ] || fail "$what: $(shown) samples are shown"
rm disk/filler
until_true 20 taken || fail "$what: not taken though there is room: $(cat answer serve.out.err)"
stop "$server"
[ "$(samples)" -ge 240000 ] || fail "$what: $(samples) samples at the end"
sound
echo "ok the reserve"
