#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Things that the store gives up, and others that it must not: old samples are thinned to minutes with all sums as they
# were, also when it is killed in the midst of it; free room goes back to the disk; a size below that of the names
# leaves the newest samples; a disk that is a little too full costs a little. Needs no BPF.
. "$TOP/tests/system/lib.sh"

# serve: a server over ./store; sets url
serve() {
	rm -f serve.out.err
	start serve.out "$HEARTH" serve --grpc-address off --http-address 127.0.0.1:0 --store "$PWD/store" --keep-free 0 --keep-age 30d "$@"
	until_true 20 grep -q 'page at http' serve.out.err || fail "no page: $(cat serve.out.err)"
	url=$(sed -n 's/.*page at \(http:[^ ]*\)\/.*/\1/p' serve.out.err)
}
make_request() { python3 "$TOP/tests/system/store_request.py" "$@"; }
send() {
	curl -sf -o answer -H 'Content-Type: application/json' --data-binary @request "$url/v1development/profiles" || fail "not taken: $(cat answer)"
}
samples() { "$HEARTH" store info --store store | sed -n 's/^samples //p'; }
blocks_bytes() { sqlite3 store/profiles.db 'SELECT sum(length(head) + length(stacks) + length(cells) + length(cpus) + length(labels) + length(weights) + length(times) + length(links)) FROM blocks'; }
# in_order: answers, a line each, with their lists of objects in an order of their own; without the time that has data, of which
# thinned samples know the minute alone
in_order() {
	python3 -c '
import json, sys
def ordered(x):
    if isinstance(x, dict):
        return {k: ordered(v) for k, v in x.items() if not k.startswith("covered_")}
    if isinstance(x, list):
        x = [ordered(v) for v in x]
        return sorted(x, key=lambda v: json.dumps(v, sort_keys=True)) if x and isinstance(x[0], dict) else x
    return x
for line in filter(str.strip, sys.stdin):
    print(json.dumps(ordered(json.loads(line)), sort_keys=True))'
}
# All sums that thinning must not change: whole minutes. The order of what weighs the same may differ.
sums() {
	local range="from=$base&to=$((base + 3 * 3600))"
	for question in "tree?max_nodes=200000" "tree?max_nodes=200000&by=service.name" "tree?max_nodes=200000&by=mine" "timeline?step=60&by=service.name" \
		"tree?max_nodes=200000&query=%7Bmine%3D%22x%22%7D" "values?label=mine" "series?" "top?limit=1000"; do
		curl -sf "$url/api/v1/$question&$range" || fail "no answer to $question"
		echo
	done
	for minute in 7 61 150; do
		curl -sf "$url/api/v1/tree?max_nodes=200000&from=$((base + minute * 60))&to=$((base + minute * 60 + 120))"
		echo
	done
}

base=$((($(date +%s) - 2 * 86400) / 3600 * 3600))
serve
make_request "$base" 3 60000 0 >request
send
stop "$started"
"$HEARTH" store compact --store store --keep-age 30d 2>/dev/null
before=$(samples) before_bytes=$(blocks_bytes)
[ "$before" = 60000 ] || fail "$before samples are there"
serve
sums >answers
in_order <answers >sums.before
curl -sf "$url/api/v1/values?label=tid&from=$base&to=$((base + 10800))" | grep -q '"1003"' || fail "no threads before"
stop "$started"

# --- killed in the midst of it, again and again; then to its end ---
thin=("$HEARTH" store prune --store store --keep-age 30d --keep-free 0 --thin-after 1d)
killed=0
for delay in 0.02 0.04 0.06 0.1 0.15; do
	status=0
	"${thin[@]}" 2>/dev/null &
	sleep "$delay"
	kill -9 $! 2>/dev/null || :
	wait $! 2>/dev/null || status=$?
	[ $status != 137 ] || killed=$((killed + 1))
	[ "$(samples)" = 60000 ] || fail "killed after $delay s: $(samples) samples"
done
[ $killed -gt 0 ] || fail "it ended each time before it was killed"
"${thin[@]}" 2>thin.err || fail "prune: $(cat thin.err)"
"$HEARTH" store verify --store store >verify.out 2>&1 || fail "after thinning: $(cat verify.out)"
[ "$(sqlite3 store/profiles.db 'SELECT group_concat(DISTINCT level) FROM blocks')" = 3 ] || fail "not all is thinned"
after_bytes=$(blocks_bytes)
echo "60000 samples: $before_bytes bytes, thinned $after_bytes"
[ $((after_bytes * 2)) -le "$before_bytes" ] || fail "$before_bytes bytes became $after_bytes"
serve
sums >answers
in_order <answers >sums.after
cmp -s sums.before sums.after || fail "thinning changed sums: $(diff sums.before sums.after | head -c 600)"
curl -sf -o threads "$url/api/v1/values?label=tid&from=$base&to=$((base + 10800))" || fail "no answer about threads"
! grep -q '"1003"' threads || fail "threads are still there"
"$HEARTH" store export all.folded --store store 2>/dev/null || fail "it cannot be exported"
[ "$(awk '{ n += $NF } END { print n }' all.folded)" = 60000 ] || fail "exported: $(awk '{ n += $NF } END { print n }' all.folded)"

# --- by itself, while it serves ---
stop "$started"
serve --thin-after 1d
make_request $((base + 3600)) 1 6000 0 >request
send
thinned() { [ "$(curl -sf "$url/metrics" | sed -n 's/^hearth_store_thinned_events_total //p')" = 6000 ]; }
until_true 40 thinned || fail "late samples are not thinned: $(curl -sf "$url/metrics" | grep hearth_store)"
make_request $(($(date +%s) - 3600)) 1 3000 0 >request
send
stop "$started"
[ "$(samples)" = 69000 ] || fail "$(samples) samples at the end"
[ "$(sqlite3 store/profiles.db 'SELECT sum(events) FROM blocks WHERE level < 3')" = 3000 ] || fail "what is new was thinned, too"

# --- names beyond the size: the newest samples stay, and it is said; free room, of 1024 pages and more, goes back ---
rm -rf store
serve
for i in 1 2 3; do
	make_request $((base + i * 3600)) 1 30000 20000 >request
	send
done
stop "$started"
"$HEARTH" store prune --store store --keep-age 30d --keep-free 0 --keep-size 1M 2>prune.err || fail "prune: $(cat prune.err)"
left=$(samples)
[ "$left" -gt 0 ] && [ "$left" -lt 90000 ] || fail "$left samples are left of 90000"
grep -q 'most of it for names: the newest samples stay; raise --keep-size' prune.err || fail "does not say why it stops: $(cat prune.err)"
# A disk that would not be free enough without any of them costs none.
"$HEARTH" store prune --store store --keep-age 30d --keep-free 100 --keep-size 1G 2>prune.err || fail "prune: $(cat prune.err)"
[ "$(samples)" = "$left" ] || fail "of $left samples $(samples) are left, for a disk that is too full without them"
grep -q 'its disk is fuller than --keep-free allows, by .* so they stay' prune.err && ! grep -q keep-size prune.err || fail "does not say why it stops: $(cat prune.err)"
# Once the samples are gone and the names are of an older generation (an eighth of the age ago), these go too.
big=$(stat -c %s store/profiles.db)
[ "$big" -gt $((2 * 1024 * 4096)) ] || fail "the names take $big bytes only"
pruned() {
	"$HEARTH" store prune --store store --keep-age 60s --keep-free 0 2>prune.err || fail "prune: $(cat prune.err)"
	[ "$(sqlite3 store/profiles.db 'SELECT count(*) FROM functions')" = 0 ]
}
until_true 30 pruned || fail "names of samples that are gone stay"
free=$(sqlite3 store/profiles.db 'PRAGMA freelist_count') small=$(stat -c %s store/profiles.db)
[ "$free" -lt 512 ] && [ "$small" -lt $((big / 4)) ] || fail "of $big bytes $small are left, $free pages free"

# --- a disk that lacks a little free room: a little goes, not all but the newest; nor does the log of the removal fill the rest ---
[ "$(id -u)" = 0 ] || skip "a disk of its own needs root"
rm -rf store
mkdir store
mount -t tmpfs -o size=30m tmpfs store
trap 'umount -l store 2>/dev/null || :; for pid in "${pids[@]}"; do kill -KILL "$pid" 2>/dev/null || :; done' EXIT
serve
for i in 1 2; do
	make_request $((base - i * 3 * 3600)) 3 60000 0 >request
	for _ in $(seq 10); do
		send
	done
done
stop "$started"
[ "$(samples)" = 1200000 ] || fail "$(samples) samples are there"
free_bytes() { df -B1 --output=avail store | tail -n 1; }
within=$(sqlite3 store/profiles.db 'PRAGMA freelist_count') # pages that may be given back first
head -c $(($(free_bytes) - 30 * 1048576 / 10 + 100000 + within * 4096)) /dev/zero >store/filler
[ "$(free_bytes)" -lt $((3 * 1048576)) ] || fail "$(free_bytes) bytes are free"
"$HEARTH" store prune --store store --keep-age 30d --keep-free 10 2>prune.err || fail "prune: $(cat prune.err)"
[ "$(free_bytes)" -ge $((3 * 1048576)) ] || fail "$(free_bytes) bytes are free after pruning: $(cat prune.err; samples; ls -l store)"
left=$(samples)
[ "$left" -ge 600000 ] || fail "$left samples are left of 1200000, for 100 kB"

# --- a small store, packed, most of it names: what it lacks is more than its samples take, and they stay, while the store does
# not grow; less than they take, less than is given back at once elsewhere, and some go, for that ---
rm -rf store/*
mount -o remount,size=100m store
serve
for i in 0 1 2 3; do
	make_request $((base - i * 3 * 3600)) 3 30000 $((i ? 0 : 15000)) >request
	send
done
stop "$started"
"$HEARTH" store compact --store store --keep-age 30d --keep-free 0 2>/dev/null
left=$(samples) bytes=$(blocks_bytes) size=$(stat -c %s store/profiles.db)
[ "$left" = 120000 ] && [ "$size" -gt $((bytes * 2)) ] || fail "$left samples, of $size bytes $bytes are theirs: not what is to be tested"
# lacking BYTES: fills the disk, so that so many are lacking
lacking() {
	rm -f store/filler
	head -c $(($(free_bytes) - 10 * 1048576 + $1)) /dev/zero >store/filler
}
lacking $((bytes + 200000))
"$HEARTH" store prune --store store --keep-age 30d --keep-free 10 2>prune.err || fail "prune: $(cat prune.err)"
[ "$(samples)" = 120000 ] || fail "$(samples) samples of 120000 are left, and it brought nothing"
grep -q 'so they stay, and the store does not grow: make room there' prune.err || fail "does not say why it stops: $(cat prune.err)"
# Little of what is lacking costs one block of twelve, not a third of the samples.
lacking 20000
"$HEARTH" store prune --store store --keep-age 30d --keep-free 10 2>prune.err || fail "prune: $(cat prune.err)"
[ "$(free_bytes)" -ge $((10 * 1048576)) ] || fail "$(free_bytes) bytes are free: $(cat prune.err; ls -l store)"
[ "$(samples)" -lt 120000 ] && [ "$(samples)" -ge 95000 ] || fail "$(samples) samples of 120000 are left, for 20 kB of $bytes"
lacking 100000
left=$(samples)
"$HEARTH" store prune --store store --keep-age 30d --keep-free 10 2>prune.err || fail "prune: $(cat prune.err)"
[ "$(free_bytes)" -ge $((10 * 1048576)) ] || fail "$(free_bytes) bytes are free: $(cat prune.err; ls -l store)"
[ "$(samples)" -gt 20000 ] && [ "$(samples)" -lt "$left" ] || fail "$(samples) samples of $left are left, for 100 kB of $bytes"
bytes=$(blocks_bytes)
lacking $((bytes + 200000))
serve --keep-free 10
held() { [ "$(curl -sf "$url/metrics" | sed -n 's/^hearth_store_disk_lacks_bytes //p')" -gt 0 ]; }
until_true 20 held || fail "not told: $(curl -sf "$url/metrics" | grep hearth_store)"
[ "$(curl -sf "$url/metrics" | sed -n 's/^hearth_store_pruned_events_total //p')" = 0 ] || fail "samples were removed at once"
for i in 1 2 3 4 5 6 7 8; do
	make_request $((base + i * 3 * 3600)) 3 60000 0 >request
	send
done
pruned_some() { [ "$(curl -sf "$url/metrics" | sed -n 's/^hearth_store_pruned_events_total //p')" -gt 0 ]; }
until_true 30 pruned_some || fail "it grows: $(curl -sf "$url/metrics" | grep hearth_store)"
curl -sf "$url/api/v1/series?from=$((base + 24 * 3600))&to=$((base + 27 * 3600))" | grep -q shop || fail "the newest samples are not there"
stop "$started"
