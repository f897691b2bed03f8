#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The store and bad luck: kill -9 under load, a full disk, a damaged page, a second process, a newer
# format, samples of other centuries. Nothing that was acknowledged is lost, what cannot be kept is counted and said, and hearth goes
# on. HEARTH_LONG=1: 100 kills. Needs no BPF.
. "$TOP/tests/system/lib.sh"

rounds=4
[ "${HEARTH_LONG:-0}" = 0 ] || rounds=100
timeout $((60 + rounds * 6)) python3 "$TOP/tests/system/store_crash.py" "$HEARTH" "$PWD/crashed" $rounds || fail "$(cat crashed.err)"
[ "$(stat -c %a crashed crashed/profiles.db | tr '\n' ' ')" = "700 600 " ] || fail "others may read it: $(ls -la crashed)"

# serve_at FOLDER: a server that keeps profiles there; its address is $url
serve_at() {
	start "served.$(basename "$1")" "$HEARTH" serve --grpc-address off --http-address 127.0.0.1:0 --store "$@" --keep-free 0
	server=$started
	until_true 10 grep -q 'listening on http' "served.$(basename "$1").err" || fail "no server: $(cat "served.$(basename "$1").err")"
	url=$(sed -nE 's|.*listening on (http://[0-9.:]+).*|\1|p' "served.$(basename "$1").err")
}

# make_request TIME NAME SIZE: one sample at TIME ns of service NAME, with a string of SIZE random letters
make_request() {
	python3 - "$@" >request <<-'PYTHON'
		import random, string, sys
		def varint(n):
		    out = b""
		    while n > 127:
		        out, n = out + bytes([n & 127 | 128]), n >> 7
		    return out + bytes([n])
		def field(number, data):
		    return varint(number << 3 | 2) + varint(len(data)) + data
		time, name, size = int(sys.argv[1]), sys.argv[2].encode(), int(sys.argv[3])
		junk = "".join(random.choices(string.ascii_letters, k=size)).encode()
		def label(key, value):
		    return field(1, field(1, key) + field(2, field(1, value)))
		sample = field(5, time.to_bytes(8, "little"))
		profile = field(1, b"\x08\x01\x10\x02") + field(2, sample)
		tables = b"".join(field(table, b"") for table in (1, 2, 3, 4, 5)) + field(5, b"samples") + field(5, b"count")
		tables += field(6, b"") + field(7, b"")
		sys.stdout.buffer.write(field(1, field(1, label(b"service.name", name) + label(b"junk", junk)) + field(2, field(2, profile))) + field(2, tables))
	PYTHON
}

send() {
	curl -sS -o answer -w '%{http_code}' -H 'Content-Type: application/x-protobuf' --data-binary @request "$url/v1development/profiles"
}

metric() {
	curl -fsS "$url/metrics" | sed -n "s/^$1 //p"
}

samples_in() {
	"$HEARTH" store info --store "$1" | sed -n 's/^samples //p'
}

# --- docs/store.md says what sqlite3 finds ---
serve_at "$PWD/documented"
python3 - <<-'PYTHON'
	def varint(n):
	    return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + varint(n >> 7)
	def field(number, data):
	    return varint(number << 3) + varint(data) if isinstance(data, int) else varint(number << 3 | 2) + varint(len(data)) + data
	def resource(name, host):
	    label = lambda key, value: field(1, field(1, key) + field(2, field(1, value)))
	    sample = field(1, 1) + field(5, (TIME).to_bytes(8, "little"))
	    return field(1, field(1, label(b"service.name", name) + label(b"host.name", host)) + field(2, field(2, field(1, field(1, 1) + field(2, 2)) + field(2, sample) + field(2, sample))))
	import time
	TIME = time.time_ns()
	tables = field(1, b"") + field(1, field(4, 6)) + field(2, b"") + b"".join(field(2, field(1, 1) + field(2, i) + field(3, field(1, i))) for i in (1, 2))
	tables += field(3, b"") + field(3, field(1, 3) + field(3, 5)) + field(3, field(1, 4)) + field(4, b"")
	tables += b"".join(field(5, s) for s in (b"", b"samples", b"count", b"main", b"work", b"main.c", b"/bin/shop")) + field(6, b"") + field(7, b"") + field(7, field(1, bytes([2, 1])))
	open("request", "wb").write(resource(b"shop", b"a") + resource(b"the other", b"a") + resource(b"the other", b"b") + field(2, tables))
PYTHON
[ "$(send)" = 200 ] || fail "not taken: $(cat answer)"
python3 "$TOP/tests/system/store_docs.py" "$TOP/docs/store.md" documented/profiles.db 6 || fail "docs/store.md"
stop "$server"

# --- two processes on one store ---
serve_at "$PWD/shared"
status=0
"$HEARTH" serve --grpc-address off --http-address 127.0.0.1:0 --store "$PWD/shared" >second 2>second.err || status=$?
[ $status = 1 ] && grep -q "another process writes there, process $server; .*--store" second.err || fail "second: $status, $(cat second.err)"

# --- clocks that are wrong: 1970, 2262, and now ---
now=$(date +%s)000000000
for time in 1000000000 9223372036854775807 "$now"; do
	make_request "$time" clock 10
	[ "$(send)" = 200 ] || fail "a sample of $time was not taken: $(cat answer)"
done
one_pruned() {
	[ "$(metric hearth_store_pruned_events_total)" = 1 ]
}
until_true 30 one_pruned || fail "that of 1970 was not removed"
stop "$server"
[ "$(samples_in "$PWD/shared")" = 2 ] || fail "not two samples: $("$HEARTH" store info --store "$PWD/shared")"
"$HEARTH" store clear --store "$PWD/shared" 2>clear.err || fail "clear: $(cat clear.err)"
[ "$(samples_in "$PWD/shared")" = 0 ] || fail "cleared, and yet: $("$HEARTH" store info --store "$PWD/shared")"

# --- a damaged page: moved aside, said, and new samples are kept ---
serve_at "$PWD/damaged"
for i in 1 2 3 4 5 6 7 8; do
	make_request "$now" "service $i" 20000
	[ "$(send)" = 200 ] || fail "not taken: $(cat answer)"
done
stop "$server"
"$HEARTH" store verify --store "$PWD/damaged" 2>verify.err || fail "it is damaged already: $(cat verify.err)"
python3 - <<-'PYTHON'
	with open("damaged/profiles.db", "r+b") as file:
	    size = file.seek(0, 2)
	    for page in range(1, size // 4096):
	        file.seek(page * 4096)
	        file.write(b"\xa5" * 64)
PYTHON
status=0
"$HEARTH" store verify --store "$PWD/damaged" 2>verify.err || status=$?
[ $status = 1 ] || fail "verify sees nothing: $(cat verify.err)"
serve_at "$PWD/damaged"
make_request "$now" after 10
taken() {
	[ "$(send)" = 200 ]
}
until_true 10 taken || fail "nothing is kept after the damage: $(cat answer served.damaged.err)"
grep -q 'is damaged.*moved to .*damaged-' served.damaged.err || fail "not said: $(cat served.damaged.err)"
[ "$(metric hearth_store_moved_aside_total)" = 1 ] || fail "not counted: $(metric hearth_store_moved_aside_total)"
stop "$server"
[ "$(samples_in "$PWD/damaged")" = 1 ] && ls damaged/profiles.db.damaged-* >/dev/null || fail "$(ls damaged)"

# --- a newer format ---
sqlite3 damaged/profiles.db 'PRAGMA user_version = 99'
status=0
"$HEARTH" store info --store "$PWD/damaged" 2>newer.err || status=$?
[ $status = 1 ] && grep -q 'newer hearth' newer.err || fail "newer: $status, $(cat newer.err)"
sqlite3 damaged/profiles.db 'PRAGMA user_version = 1'
status=0
"$HEARTH" store info --store "$PWD/damaged" 2>older.err || status=$?
[ $status = 1 ] && grep -q 'before the first release.*--store' older.err || fail "older: $status, $(cat older.err)"

[ "$(id -u)" = 0 ] || exit 0
# --- a full disk: refused and counted, kept again when there is room; then a disk that cannot be written ---
mkdir disk
mount -t tmpfs -o size=3m tmpfs disk
trap 'umount -l disk 2>/dev/null || :; for pid in "${pids[@]}"; do kill -KILL "$pid" 2>/dev/null || :; done' EXIT
serve_at "$PWD/disk/store"
kept=0 refused=0
for _ in $(seq 60); do
	make_request "$now" "service $kept" 60000
	if [ "$(send)" = 200 ]; then kept=$((kept + 1)); else refused=$((refused + 1)); fi
done
[ $kept -gt 3 ] && [ $refused -gt 3 ] || fail "$kept taken, $refused refused on a disk of 3 MB"
[ "$(metric hearth_store_lost_events_total)" = $refused ] || fail "$refused refused, counted $(metric hearth_store_lost_events_total)"
grep -q 'cannot keep .* samples in .*: No space left on device' served.store.err || fail "not said: $(cat served.store.err)"
mount -o remount,size=30m disk
make_request "$now" again 100
[ "$(send)" = 200 ] || fail "not taken though there is room: $(cat answer)"
stop "$server"
[ "$(samples_in "$PWD/disk/store")" = $((kept + 1)) ] || fail "$kept + 1 acknowledged, stored: $(samples_in "$PWD/disk/store")"
