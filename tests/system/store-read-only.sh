#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A file system that takes no more writes while the store is being written: an ext4 whose kernel finds an error, one that is frozen and
# thawed, and writes that are refused in place for a while, to serve and to the form of one process. Refused samples are counted, it is
# said once and with what to do, what is there is shown, the store stays whole, and goes on by itself where the disk lets it.
. "$TOP/tests/system/lib.sh"
[ "$(id -u)" = 0 ] || skip "a disk of its own needs root"
PATH=$PATH:/usr/sbin
command -v mkfs.ext4 >/dev/null || skip "no mkfs.ext4 here"
"${CC:-cc}" -shared -fPIC -O1 -o luck.so "$TOP/tests/system/bad_luck.c" -ldl || skip "no C compiler here"
# A mount that another process's namespace has a copy of would not end with ours.
[ -n "${HEARTH_OWN_MOUNTS:-}" ] || HEARTH_OWN_MOUNTS=yes exec unshare -m --propagation private "$0"
mkdir disk luck
truncate -s 60M image
mkfs.ext4 -q -m 0 image
mount -o loop,errors=remount-ro image disk 2>mount.err || skip "no loop device: $(cat mount.err)"
trap 'fsfreeze -u disk 2>/dev/null || :; umount -l disk 2>/dev/null || :; for pid in "${pids[@]}"; do kill -KILL "$pid" 2>/dev/null || :; done' EXIT
python3 "$TOP/tests/system/store_request.py" $(($(date +%s) - 600)) 1 300 0 >request
# samples a request
each=$(python3 -c 'import json
print(sum(len(s["timestampsUnixNano"]) for r in json.load(open("request"))["resourceProfiles"] for c in r["scopeProfiles"] for p in c["profiles"] for s in p["samples"]))')

# serve STORE [COMMAND...]: sets url and server
serve() {
	start serve.out "${@:2}" "$HEARTH" serve --grpc-address off --http-address 127.0.0.1:0 --store "$1" --keep-free 0
	server=$started
	until_true 20 grep -q 'page at http' serve.out.err || fail "$what: no page: $(cat serve.out.err)"
	url=$(sed -n 's/.*page at \(http:[^ ]*\)\/.*/\1/p' serve.out.err)
}
# feed NAME: sends without end; a line a request in NAME: its status
feed() {
	while [ ! -e "$1.end" ]; do
		curl -s -m 30 -o /dev/null -w '%{http_code}\n' -H 'Content-Type: application/json' --data-binary @request "$url/v1development/profiles" >>"$1" || :
		sleep 0.05
	done
}
start_feed() {
	rm -f feed feed.end
	feed feed &
	feeder=$!
	pids+=("$feeder")
	until_true 20 has 3 200 || fail "$what: nothing is taken: $(cat feed serve.out.err)"
}
end_feed() {
	touch feed.end
	wait "$feeder"
}
# has NUMBER STATUS: so many requests were answered so
has() { [ "$(grep -c "^$2" feed)" -ge "$1" ]; }
metric() { curl -sf "$url/metrics" | sed -n "s/^$1 //p"; }
shown() { curl -sf "$url/api/v1/top?from=first&to=last&limit=1" | sed -n 's/.*"events":\([0-9]*\),.*/\1/p'; }
samples() { "$HEARTH" store info --store "$1" 2>info.err | sed -n 's/^samples //p'; }
sound() { "$HEARTH" store verify --store "$1" >verify.out 2>&1 || fail "$what: $(cat verify.out)"; }
# refused FILE: it is said once, with what to do
refused() {
	[ "$(grep -c 'cannot keep' "$1")" = 1 ] || fail "$what: said $(grep -c 'cannot keep' "$1") times: $(cat "$1")"
	grep -q 'cannot keep [0-9]* samples in .*profiles.db: Read-only file system; mount it for writing' "$1" || fail "$what: not said: $(cat "$1")"
}
# accounted_for: each request was taken, and is shown, or was refused, and is counted
accounted_for() {
	local taken refused
	taken=$(($(grep -c '^200' feed || :) * each)) refused=$(($(grep -c '^503' feed || :) * each))
	[ "$(wc -l <feed)" = $(((taken + refused) / each)) ] || fail "$what: other answers: $(sort feed | uniq -c)"
	[ "$(metric hearth_store_lost_events_total)" = $refused ] || fail "$what: $refused samples refused, $(metric hearth_store_lost_events_total) counted"
	[ "$(shown)" = $((before + taken)) ] || fail "$what: $before before and $taken acknowledged, $(shown) shown"
	before=$((before + taken))
	[ "$(metric hearth_store_moved_aside_total)" = 0 ] || fail "$what: taken for damage: $(cat serve.out.err)"
}
before=0

# --- frozen for a while: everybody waits, nothing is lost; and nobody can make it read-only meanwhile ---
what=frozen
serve "$PWD/disk/store"
start_feed
! mount -o remount,ro disk 2>mount.err || fail "the kernel makes a file system read-only that is written"
fsfreeze -f disk
sleep 2
fsfreeze -u disk
answered=$(wc -l <feed)
until_true 20 has $((answered + 5)) 200 || fail "$what: does not go on: $(cat feed serve.out.err)"
end_feed
! has 1 503 || fail "$what: refused: $(cat serve.out.err)"
accounted_for
echo "ok $what"

# --- the kernel finds an error: nothing comes back from that without a mount ---
what="an error of the file system"
sync -f disk
flushed=$before
start_feed
echo 1 >"/sys/fs/ext4/$(basename "$(findmnt -no SOURCE disk)")/trigger_fs_error"
until_true 30 has 5 503 || fail "$what: not refused: $(cat feed serve.out.err)"
end_feed
refused serve.out.err
[ "$(metric hearth_store_is_refusing)" = 1 ] || fail "$what: hearth_store_is_refusing is $(metric hearth_store_is_refusing)"
accounted_for
stop "$server"
umount disk
is_free() { [ -z "$(losetup -j image)" ]; }
until_true 20 is_free || fail "$what: the file system is still in use"
fsck.ext4 -fy image >fsck.out 2>&1 || [ $? -lt 4 ] || fail "$(cat fsck.out)"
mount -o loop image disk
sound disk/store
kept=$(samples disk/store)
[ "$kept" -ge "$flushed" ] && [ "$kept" -le "$before" ] || fail "$what: $flushed samples were flushed and $before acknowledged, $kept are there"
before=$kept
serve "$PWD/disk/store"
start_feed
end_feed
accounted_for
stop "$server"
sound disk/store
umount disk
echo "ok $what"

# --- refused in place, and taken again: by serve, under load ---
export LUCK=$PWD/luck
unlucky() { LD_PRELOAD=$PWD/luck.so exec "$@"; }
what="refused in place"
before=0
serve "$PWD/store" unlucky
for round in 1 2; do
	what="refused in place, round $round"
	start_feed
	[ $round = 1 ] || lost=$(metric hearth_store_lost_events_total)
	echo 30 >luck/errno
	until_true 30 has 4 503 || fail "$what: not refused: $(cat feed serve.out.err)"
	[ "$(metric hearth_store_is_refusing)" = 1 ] || fail "$what: hearth_store_is_refusing is $(metric hearth_store_is_refusing)"
	rm luck/errno
	answered=$(grep -c '^200' feed)
	until_true 30 has $((answered + 3)) 200 || fail "$what: does not go on: $(cat feed serve.out.err)"
	end_feed
	[ $round = 2 ] || accounted_for
	[ "$(grep -c 'samples are kept again in ' serve.out.err)" = $round ] || fail "$what: it is not said that it goes on: $(cat serve.out.err)"
	[ "$(metric hearth_store_is_refusing)" = 0 ] || fail "$what: hearth_store_is_refusing is $(metric hearth_store_is_refusing)"
	[ $round = 2 ] || refused serve.out.err
done
[ "$(metric hearth_store_lost_events_total)" = $((lost + $(grep -c '^503' feed) * each)) ] || fail "$what: not all is counted"
[ "$(grep -c 'cannot keep' serve.out.err)" = 2 ] || fail "$what: each time is said once: $(cat serve.out.err)"
shown=$(shown)
[ "$shown" = $((before + $(grep -c '^200' feed) * each)) ] || fail "$what: $shown samples are shown"
stop "$server"
[ "$(samples store)" = "$shown" ] || fail "$what: $shown samples were shown, $(samples store) are there"
sound store
echo "ok refused in place, serve"

# --- the same of what samples this machine, in one process ---
what="refused in place, one process"
"$(command -v bpftool || echo false)" prog show >/dev/null 2>&1 || {
	left_out one-process "BPF is not allowed here"
	exit 0
}
start spin.out "$TRUTH/c_chain" 120
spin=$started
export HEARTH_ONE_PROCESS=yes
start run.out unlucky "$HEARTH" run -F 99 -p "$spin" --http-address 127.0.0.1:0 --report-interval 500ms --store "$PWD/own"
hearth=$started
unset HEARTH_ONE_PROCESS
until_true 60 grep -q 'page at http' run.out.err || fail "$what: no page: $(cat run.out.err)"
url=$(sed -n 's/.*page at \(http:[^ ]*\)\/.*/\1/p' run.out.err)
some() { [ "$(shown)" -gt "$1" ]; }
until_true 30 some 20 || fail "$what: nothing is kept: $(cat run.out.err)"
echo 30 >luck/errno
lost() { [ "$(metric hearth_store_lost_events_total)" -gt 40 ]; }
until_true 30 lost || fail "$what: nothing is counted: $(cat run.out.err)"
[ "$(metric hearth_store_is_refusing)" = 1 ] || fail "$what: hearth_store_is_refusing is $(metric hearth_store_is_refusing)"
[ "$(shown)" -gt 20 ] || fail "$what: nothing is shown meanwhile"
rm luck/errno
kept=$(shown)
until_true 30 some $((kept + 40)) || fail "$what: does not go on: $(cat run.out.err)"
refused run.out.err
grep -q 'samples are kept again in ' run.out.err || fail "$what: it is not said that it goes on: $(cat run.out.err)"
lost=$(metric hearth_store_lost_events_total)
stop "$hearth"
accounted run.out.err
[ "$(samples own)" = $(($(count delivered run.out.err) - lost)) ] || fail "$what: $lost samples were refused, $(samples own) are there: $(cat run.out.err)"
sound own
echo "ok refused in place, one process"
