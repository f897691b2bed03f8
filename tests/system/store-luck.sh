#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The store and bad luck that must come at a certain moment (tests/system/bad_luck.c): killed within a write of a commit, of pruning, of
# packing and of a checkpoint; a disk that takes no more writes while it serves; a clock set forward and back. Needs no BPF.
# Waits: for servers that begin and end.
. "$TOP/tests/system/lib.sh"
"${CC:-cc}" -shared -fPIC -O1 -o luck.so "$TOP/tests/system/bad_luck.c" -ldl || skip "no C compiler here"
now=$(date +%s)

# unlucky COMMAND...: with KILL_FILE, KILL_AT and LUCK of the caller's
unlucky() {
	LD_PRELOAD=$PWD/luck.so exec "$@"
}
# serve OPTION...: a server over ./store; sets url and server
serve() {
	start served unlucky "$HEARTH" serve --grpc-address off --http-address 127.0.0.1:0 --store "$PWD/store" --keep-free 0 "$@"
	server=$started
	until_true 20 grep -q 'page at http' served.err || fail "no page: $(cat served.err)"
	url=$(sed -n 's/.*page at \(http:[^ ]*\)\/.*/\1/p' served.err)
}
# make_request AT SAMPLES: OTLP/JSON, samples of the hour from AT (Unix seconds) on, on stacks and of names that no other has
make_request() {
	python3 - "$@" >request <<-'PYTHON'
		import json, random, sys
		at, count = int(sys.argv[1]), int(sys.argv[2])
		strings = ["", "samples", "count"] + [f"f{random.random()}" for _ in range(50)]
		tables = {"mappingTable": [{}], "linkTable": [{}], "attributeTable": [{}], "stringTable": strings}
		tables["functionTable"] = [{}] + [{"nameStrindex": 3 + i} for i in range(50)]
		tables["locationTable"] = [{}] + [{"lines": [{"functionIndex": 1 + i}]} for i in range(50)]
		tables["stackTable"] = [{}] + [{"locationIndices": random.sample(range(1, 51), 10)} for _ in range(50)]
		samples = [{"stackIndex": 1 + i % 50, "timestampsUnixNano": [str(at * 10**9 + random.randrange(3600 * 10**9))]} for i in range(count)]
		profile = {"sampleType": {"typeStrindex": 1, "unitStrindex": 2}, "samples": samples}
		print(json.dumps({"resourceProfiles": [{"scopeProfiles": [{"profiles": [profile]}]}], "dictionary": tables}))
	PYTHON
}
# send: the status of the answer
send() {
	curl -s -m 20 -o answer -w '%{http_code}' -H 'Content-Type: application/json' --data-binary @request "$url/v1development/profiles" || :
}
metric() { curl -fsS "$url/metrics" | sed -n "s/^$1 //p"; }
# samples WHERE: as sqlite3 counts them, in a store that it finds sound
samples() {
	[ "$(sqlite3 store/profiles.db 'PRAGMA integrity_check')" = ok ] || fail "$what: sqlite3 finds $(sqlite3 store/profiles.db 'PRAGMA integrity_check')"
	sqlite3 store/profiles.db "SELECT coalesce(sum(events), 0) FROM blocks WHERE $1"
}
sound() {
	"$HEARTH" store verify --store store >verify.out 2>&1 || fail "$what: $(cat verify.out)"
	! ls store/*damaged* 2>/dev/null || fail "$what: moved aside"
}

# --- killed within a write: of the log (commits), of the file (checkpoints); old samples may be gone, others not ---
serve --keep-age 30d
for i in 1 2 3 4 5 6; do
	make_request $((now - (i > 3 ? 10 : 1) * 86400)) 500
	[ "$(send)" = 200 ] || fail "not taken: $(cat answer)"
done
stop "$server"
mv store before
fresh="from_ns > $((now - 2 * 86400))000000000"
prune=("$HEARTH" store prune --store store --keep-free 0 --keep-age 2d)
killed() {
	what="$1, write $2 of $3"
	rm -rf store
	cp -a before store
	status=0
	(KILL_FILE=$3 KILL_AT=$2 unlucky "$HEARTH" store "$1" --store store --keep-free 0 --keep-age 2d) >killed.out 2>&1 || status=$?
	[ $status = 137 ] || fail "$what: was not killed: $status, $(cat killed.out)"
	[ "$(samples "$fresh")" = 1500 ] || fail "$what: of 1500 fresh samples $(samples "$fresh") are there"
	[ "$(samples 1)" -le 3000 ] || fail "$what: $(samples 1) samples are there"
	sound
	"${prune[@]}" 2>killed.out || fail "$what: afterwards $(cat killed.out)"
	[ "$(samples 1)" = 1500 ] || fail "$what: in the end $(samples 1) samples are there"
}
for at in 1 4; do
	killed prune $at /profiles.db-wal
	killed prune $at /profiles.db
	killed compact $at /profiles.db
	killed compact $((at * 4)) /profiles.db-wal
done
# Another program looks into it meanwhile, as if it were the only one, and must not take the log away.
rm -rf store before
what="looked into, then killed"
serve --keep-age 30d
for i in 1 2 3; do
	[ "$(samples 1)" = $(((i - 1) * 100)) ] || fail "$what: $(samples 1) samples are seen"
	make_request $((now - 3600)) 100
	[ "$(send)" = 200 ] || fail "not taken: $(cat answer)"
done
kill -KILL "$server"
wait "$server" 2>/dev/null || :
[ "$(samples 1)" = 300 ] || fail "$what: 300 were acknowledged, $(samples 1) are there"
sound
for file in profiles.db profiles.db-wal; do
	what="serving, a write of $file"
	export KILL_FILE=/$file KILL_AT=40
	serve --keep-age 30d
	unset KILL_FILE KILL_AT
	before=$(samples 1) taken=0
	for _ in $(seq 60); do
		make_request $((now - 3600)) 200
		[ "$(send)" = 200 ] || break
		taken=$((taken + 200))
	done
	[ $taken -lt 12000 ] || fail "$what: was not killed"
	status=0
	wait "$server" || status=$?
	[ $status = 137 ] || fail "$what: was not killed: $status, $taken taken"
	[ "$(samples 1)" -ge $((before + taken)) ] && [ "$(samples 1)" -le $((before + taken + 200)) ] ||
		fail "$what: $taken acknowledged, $before before, $(samples 1) are there"
	sound
done
echo "ok killed"

# --- a disk that takes no writes from some time on: refused and counted, no harm, and kept again when it does ---
rm -rf store
mkdir luck
export LUCK=$PWD/luck
serve --keep-age 30d
make_request $((now - 3600)) 10
[ "$(send)" = 200 ] || fail "not taken: $(cat answer)"
for number in 30 5; do # EROFS, EIO
	what="errno $number"
	lost=$(metric hearth_store_lost_events_total)
	echo $number >luck/errno
	[ "$(send)" = 503 ] || fail "$what: the answer is $(cat answer)"
	[ "$(metric hearth_store_lost_events_total)" = $((lost + 10)) ] || fail "$what: not counted"
	curl -sf "$url/api/v1/top?from=first&to=now" | grep -q '"rows":\[{"name"' || fail "$what: nothing is shown meanwhile"
	rm luck/errno
	[ "$(send)" = 200 ] || fail "$what: not taken though it may be written: $(cat answer)"
done
grep -q 'cannot keep 10 samples in ' served.err || fail "not said: $(cat served.err)"
[ "$(metric hearth_store_moved_aside_total)" = 0 ] || fail "what is no damage was taken for it: $(cat served.err)"
stop "$server"
[ "$(samples 1)" = 30 ] || fail "30 acknowledged, $(samples 1) are there"
sound
echo "ok a disk that takes no writes"

# --- a clock set forward by 30 days removes nothing that is not old; nor does one set back lose anything ---
what=clock
rm -rf store
serve --keep-age 1d
make_request $((now - 3600)) 10
[ "$(send)" = 200 ] || fail "not taken: $(cat answer)"
echo $((30 * 86400)) >luck/clock
make_request $((now - 20 * 86400)) 7 # surely old: when it is gone, retention was at work
[ "$(send)" = 200 ] || fail "not taken: $(cat answer)"
one_pruned() { [ "$(metric hearth_store_pruned_events_total)" -ge 7 ]; }
until_true 30 one_pruned || fail "nothing was removed: $(cat served.err)"
[ "$(metric hearth_store_pruned_events_total)" = 7 ] || fail "a clock set forward removed $(metric hearth_store_pruned_events_total) samples, 7 were old"
echo $((-30 * 86400)) >luck/clock
make_request $((now - 1800)) 10
[ "$(send)" = 200 ] || fail "not taken: $(cat answer)"
curl -sf "$url/api/v1/series?from=first&to=last" | grep -q '"series":\[{' || fail "nothing is shown"
stop "$server"
[ "$(samples 1)" = 20 ] || fail "20 were acknowledged, $(samples 1) are there"
sound
