#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Two halves: the half that listens is not root; it is killed and comes back; a store of before changes its owner once; secrets; who may
# look; and what goes wrong at the start is said as before.
. "$TOP/tests/system/lib.sh"
need_bpf
unset HEARTH_ONE_PROCESS
umask 077
mkdir closed # a folder that nobody else may enter

# run NAME OPTION...: until it samples; sets agent, backend, page
run() {
	start "$1" "$HEARTH" run --http-address 127.0.0.1:0 --report-interval 200ms "${@:2}"
	agent=$started
	until_true 30 grep -q "profiles go to" "$1.err" || fail "no profiler: $(cat "$1.err")"
	keeper=$(pgrep -P "$agent" -x hearth-keeper) || fail "no second half: $(cat "$1.err")"
	backend=$(pgrep -P "$keeper" -x hearth-backend) || fail "no backend"
	page=$(sed -n 's/.*page at \(http:[^ ]*\)\/$/\1/p' "$1.err")
}

# field PID NAME: the first word of that line of its status
field() {
	awk -v name="$2:" '$1 == name { print $2 }' "/proc/$1/status"
}

events() {
	"$HEARTH" store info --store "$1" | awk '/^ *samples/ { print $2 }'
}

# --- the backend is another user, also in a folder that is closed to others (tests/system/process-table.sh has the rest) ---
start busy "$TRUTH/c_chain" 100
run table -F 199 --store closed/store
uid=$(field "$backend" Uid)
[ "$uid" != 0 ] && [ "$uid" != 65534 ] || fail "the backend runs as the user $uid"
[ "$(stat -c %u closed/store closed/store/profiles.db closed/store/lock | sort -u)" = "$uid" ] || fail "whose store? $(ls -ln closed/store)"
# the agent tells once a second
told() {
	curl -sf "$page/api/v1/status" >status && python3 -c '
import json
s = json.load(open("status"))
assert s["live"] and s["store"]["place"] == "closed/store" and any("profiles go to" in m["text"] for m in s["log"])'
}
until_true 10 told || fail "status: $(cat status)"

# --- who may look: not everybody who has a shell here, but senders and who counts ---
others() {
	setpriv --reuid 65533 --regid 65533 --clear-groups curl -s -o answer -w '%{http_code}' "$@"
}
chmod 755 .
: >answer
chmod 666 answer
[ "$(others "$page/api/v1/top")" = 403 ] && grep -q -- '--http-allow-uid 65533' answer || fail "another user sees profiles: $(cat answer)"
[ "$(others "$page/")" = 403 ] && [ "$(others "$page/debug/pprof/profile?seconds=1")" = 403 ] || fail "another user sees the page"
[ "$(others "$page/metrics")" = 200 ] && [ "$(others -H 'Content-Type: application/json' -d '{}' "$page/v1development/profiles")" = 200 ] ||
	fail "another user may not send: $(cat answer)"
curl -sf "$page/debug/pprof/profile?seconds=1" -o live.pb.gz && "$HEARTH" report live.pb.gz >live || fail "no live profile"
grep -q c_chain live || fail "the live profile has not what runs: $(head -n 20 live)"

# --- symbols that are sent are read by a process that the backend forks ---
"$HEARTH" symbols push "$TRUTH/c_chain" "$page" >pushed 2>&1 || fail "symbols are not taken: $(cat pushed)"

# --- the backend is killed (tests/system/kills.sh has more of that) ---
kill -KILL "$backend"
another() {
	[ "$(pgrep -P "$keeper" -x hearth-backend)" != "$backend" ] && curl -sf "$page/healthz"
}
until_true 60 another || fail "no backend after its death: $(cat table.err)"
until_true 10 curl -sf "$page/api/v1/status" || fail "the page did not come back"
curl -s "$page/metrics" >metrics
! grep '^hearth_refused_system_calls_total.* [1-9]' metrics || fail "a system call was refused: $(cat table.err)"
stop "$agent"
accounted table.err
[ "$(events closed/store)" -ge "$(count delivered table.err)" ] || fail "$(events closed/store) of them are kept"
until_true 10 sh -c "! pgrep -g 0 -x hearth-backend && ! kill -0 $keeper" || fail "a process is left"

# --- a store of before ---
HEARTH_ONE_PROCESS=yes
export HEARTH_ONE_PROCESS
start one "$HEARTH" run --store old --http-address off --report-interval 200ms
until_true 30 grep -q "profiles go to" one.err || fail "no profiler: $(cat one.err)"
! pgrep -P "$started" -x hearth-keeper || fail "--one-process makes two"
sleep 1
stop "$started"
unset HEARTH_ONE_PROCESS
[ "$(stat -c %u old old/profiles.db | sort -u)" = 0 ] || fail "not root's: $(ls -ln old)"
first=$(events old)
run taken --store old
grep -q "old was root's; it belongs to the user [0-9]* now" taken.err || fail "the change is not said: $(cat taken.err)"
sleep 1
stop "$agent"
[ "$(stat -c %u old old/* | sort -u | wc -l)" = 1 ] && [ "$(stat -c %u old)" != 0 ] || fail "not all of it: $(ls -ln old)"
[ "$(events old)" -gt "$first" ] || fail "the taken store is not written"

# --- a folder that is not hearth's stays whose it is ---
mkdir mine
echo word >mine/file
run foreign --store mine
grep -q 'mine is root.s and holds more than hearth.s files' foreign.err || fail "$(cat foreign.err)"
[ "$(field "$backend" Uid)$(field "$backend" CapEff)" = 00000000000000000 ] || fail "capabilities as root"
stop "$agent"
[ "$(stat -c %u mine mine/file | sort -u)" = 0 ] || fail "a folder was taken"

# --- what goes wrong at the start ---
python3 -c 'import socket, time; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1], flush=True); time.sleep(60)' >port &
pids+=($!)
until_true 10 test -s port
status=0
timeout 20 "$HEARTH" run --collector http://127.0.0.1:1 --metrics-address "127.0.0.1:$(cat port)" 2>err || status=$?
[ $status = 1 ] && grep -q 'cannot listen on' err || fail "status $status: $(cat err)"
status=0
timeout 20 "$HEARTH" run --collector nonsense:// 2>err || status=$?
[ $status = 2 ] && grep -q 'is no collector' err || fail "status $status: $(cat err)"
status=0
timeout 20 "$HEARTH" run --store closed/new --token-file closed/none 2>err || status=$?
[ $status = 1 ] && grep -q 'token-file: cannot use closed/none: No such file' err || fail "status $status: $(cat err)"

# --- secrets: only root may read them, and they are read again ---
echo first >closed/token
chmod 600 closed/token
run secret --store closed/new --token-file closed/token
[ "$(curl -s -o answer -w '%{http_code}' -H 'Authorization: Bearer first' "$page/api/v1/status")" = 200 ] || fail "the token is not taken: $(cat answer)"
echo second >closed/token.new
mv closed/token.new closed/token
renewed() {
	[ "$(curl -s -o answer -w '%{http_code}' -H 'Authorization: Bearer second' "$page/api/v1/status")" = 200 ]
}
until_true 15 renewed || fail "the new token is not taken: $(cat answer)"
stop "$agent"
# --- who is allowed sees what runs, not where: 65533 is neither root nor the owner ---
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout closed/key -out closed/cert -days 2 -subj /CN=localhost \
	-addext 'subjectAltName=DNS:localhost,IP:127.0.0.1' 2>openssl.err || fail "$(cat openssl.err)"
chmod 600 closed/key
cp closed/cert cert
chmod 644 cert
run allowed -F 199 --store closed/new --http-allow-uid 65533 --tls-cert closed/cert --tls-key closed/key
page=$(sed -n 's/.*page at \(https:[^ ]*\)\/$/\1/p' allowed.err | sed 's/127.0.0.1/localhost/')
kernel=$(printf '\tffff[89a-f]') # an address of it, as perf script has them
seen() {
	curl -sf --cacert cert "$page/api/v1/export?format=perf-script" | grep -q "$kernel" # root sees the kernel's addresses
}
until_true 20 seen || fail "root sees no address of the kernel: $(curl -s --cacert cert "$page/api/v1/export?format=perf-script" | head -n 20)"
[ "$(others --cacert cert "$page/api/v1/status")" = 200 ] || fail "the user who is allowed is refused: $(cat answer)"
[ "$(others --cacert cert "$page/api/v1/export?format=perf-script")" = 200 ] && grep -q c_chain answer || fail "no profile: $(head -n 20 answer)"
! grep -m 3 "$kernel" answer || fail "another user sees where the kernel is"
[ "$(others --cacert cert "$page/debug/pprof/profile?seconds=1")" = 200 ] && "$HEARTH" convert --format perf-script answer seen || fail "no pprof"
! grep -m 3 "$kernel" seen || fail "another user sees where the kernel is"
stop "$agent"

# --- root's other commands work as the store's owner ---
owner=$(stat -c %u closed/new)
[ "$owner" != 0 ] || fail "the store is root's"
start served "$HEARTH" serve --store closed/new --http-address 127.0.0.1:0 --grpc-address off --token-file closed/token
until_true 20 grep -q 'page at http' served.err || fail "no page: $(cat served.err)"
[ "$(field "$started" Uid)$(field "$started" CapEff)$(field "$started" NoNewPrivs)$(field "$started" Seccomp)" = "${owner}000000000000000012" ] ||
	fail "serve is: $(cat "/proc/$started/status")"
page=$(sed -n 's/.*page at \(http:[^ ]*\)\/$/\1/p' served.err)
[ "$(curl -s -o answer -w '%{http_code}' -H 'Authorization: Bearer second' "$page/api/v1/status")" = 200 ] || fail "the token is not taken: $(cat answer)"
echo third >closed/token.new
mv closed/token.new closed/token
changed() {
	[ "$(curl -s -o answer -w '%{http_code}' -H 'Authorization: Bearer third' "$page/api/v1/status")" = 200 ]
}
until_true 15 changed || fail "the new token is not taken: $(cat answer)"
for verb in info prune compact verify; do
	"$HEARTH" store $verb --store closed/new >done 2>&1 || [ $verb = prune ] || [ $verb = compact ] || fail "store $verb: $(cat done)"
done
"$HEARTH" report closed/new >report.out 2>&1 || fail "report: $(cat report.out)"
stop "$started"
for verb in prune compact info; do
	"$HEARTH" store $verb --store closed/new >done 2>&1 || fail "store $verb: $(cat done)"
done
[ "$(stat -c %u closed/new closed/new/* | sort -u)" = "$owner" ] || fail "not all of it is the owner's: $(ls -ln closed/new)"
echo "all as it should be"
