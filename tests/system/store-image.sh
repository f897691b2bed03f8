#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Retention on a small disk of its own, an ext4 image: a store that is fed for long stays within --keep-size, and leaves --keep-free of the
# disk alone; the newest samples are always there. And a clock that is wrong when it starts. Needs no BPF.
# Waits: for retention, which is at work each 10 s.
. "$TOP/tests/system/lib.sh"
[ "$(id -u)" = 0 ] || skip "a disk of its own needs root"
PATH=$PATH:/usr/sbin
command -v mkfs.ext4 >/dev/null || skip "no mkfs.ext4 here"
"${CC:-cc}" -shared -fPIC -O1 -o luck.so "$TOP/tests/system/bad_luck.c" -ldl || skip "no C compiler here"
mkdir disk luck
truncate -s 40M image
mkfs.ext4 -q -m 0 image
mount -o loop image disk 2>mount.err || skip "no loop device: $(cat mount.err)"
trap 'umount -l disk 2>/dev/null || :; for pid in "${pids[@]}"; do kill -KILL "$pid" 2>/dev/null || :; done' EXIT
export LUCK=$PWD/luck
unlucky() { LD_PRELOAD=$PWD/luck.so exec "$@"; }

# serve OPTION...: a server over disk/store; sets url and server
serve() {
	start served unlucky "$HEARTH" serve --grpc-address off --http-address 127.0.0.1:0 --store "$PWD/disk/store" "$@"
	server=$started
	until_true 20 grep -q 'page at http' served.err || fail "$what: no page: $(cat served.err)"
	url=$(sed -n 's/.*page at \(http:[^ ]*\)\/.*/\1/p' served.err)
}
send() {
	curl -sS -m 20 -o answer -w '%{http_code}' -H 'Content-Type: application/json' --data-binary @request "$url/v1development/profiles"
}
metric() { curl -sf "$url/metrics" | sed -n "s/^$1 //p"; }
samples() { "$HEARTH" store info --store disk/store | sed -n 's/^samples //p'; }
free_bytes() { df -B1 --output=avail disk | tail -n 1 | tr -d ' '; }
make_request() { python3 "$TOP/tests/system/store_request.py" "$@" >request; }
# feed HOURS: 300,000 samples an hour, the newest last; the last one's begin is $newest
feed() {
	local i
	for i in $(seq "$1"); do
		newest=$(((now / 3600 - 30 + i) * 3600))
		make_request $newest 1 60000 0
		for _ in 1 2 3 4 5; do
			[ "$(send)" = 200 ] || fail "$what: not taken: $(cat answer served.err)"
		done
	done
}
newest_is_there() {
	curl -sf "$url/api/v1/series?from=$newest&to=$((newest + 3600))" | grep -q shop || fail "$what: the newest samples are not there"
}
now=$(date +%s)

what=--keep-size
serve --keep-size 6M --keep-free 0 --keep-age 30d
feed 16
# Of the log nothing is said: it is brought back into the file each few seconds, so the file may fit before what was fed is in it.
fits() {
	pruned=$(metric hearth_store_pruned_events_total)
	[ $(($(stat -c %s disk/store/profiles.db) + $(stat -c %s disk/store/reserve))) -le $((6 << 20)) ] && [ "$pruned" -gt 1000000 ]
}
until_true 40 fits || fail "$what: $pruned samples were removed: $(ls -l disk/store)"
newest_is_there
pruned=$(metric hearth_store_pruned_events_total)
[ "$pruned" -lt 4500000 ] || fail "$what: $pruned of 4,800,000 samples were removed"
stop "$server"
[ "$(samples)" = $((4800000 - pruned)) ] || fail "$what: $(samples) samples, $pruned of 4800000 were removed"
"$HEARTH" store verify --store disk/store >verify.out 2>&1 || fail "$what: $(cat verify.out)"
echo "ok $what"

what=--keep-free
rm -rf disk/store
disk=$(df -B1 --output=size disk | tail -n 1)
serve --keep-size 1G --keep-free 80 --keep-age 30d
feed 20
is_free() { [ "$(free_bytes)" -ge $((disk * 79 / 100)) ]; }
until_true 60 is_free || fail "$what: $(free_bytes) of $disk bytes are free: $(ls -l disk/store; cat served.err)"
pruned=$(metric hearth_store_pruned_events_total)
[ "$pruned" -gt 100000 ] && [ "$pruned" -lt 5700000 ] || fail "$what: $pruned of 6,000,000 samples were removed"
newest_is_there
stop "$server"
[ "$(samples)" = $((6000000 - pruned)) ] || fail "$what: $(samples) samples, $pruned of 6000000 were removed"
"$HEARTH" store verify --store disk/store >verify.out 2>&1 || fail "$what: $(cat verify.out)"
echo "ok $what"

# --- a clock that is a month ahead, or behind, when it starts, as of a machine whose battery is empty: nothing is lost ---
for days in 30 -30; do
	what="clock wrong by $days days at the start"
	rm -rf disk/store luck/clock
	serve --keep-size 1G --keep-free 0 --keep-age 1d
	make_request $((now / 3600 * 3600 - 3600)) 1 6000 0
	[ "$(send)" = 200 ] || fail "$what: not taken: $(cat answer)"
	stop "$server"
	echo $((days * 86400)) >luck/clock
	serve --keep-size 1G --keep-free 0 --keep-age 1d
	sleep 4 # retention is at work at once, and each 10 s
	[ "$(send)" = 200 ] || fail "$what: not taken: $(cat answer)"
	[ "$(metric hearth_store_pruned_events_total)" = 0 ] || fail "$what: $(metric hearth_store_pruned_events_total) samples were removed"
	rm luck/clock # somebody sets it right
	sleep 11
	[ "$(send)" = 200 ] || fail "$what: not taken: $(cat answer)"
	[ "$(metric hearth_store_pruned_events_total)" = 0 ] || fail "$what: $(metric hearth_store_pruned_events_total) samples were removed once it was right"
	stop "$server"
	[ "$(samples)" = 18000 ] || fail "$what: $(samples) samples of 18000 are there"
done
echo "ok clock at the start"
