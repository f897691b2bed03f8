#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# ClickHouse over TLS and with a password: what is wrong is said with what to do, and counted; what was acknowledged arrives, once; the
# password is seen nowhere. Certificates are made here, a stand-in looks at who asks (tests/clickhouse/stand_in.py); where there
# is a real engine it is behind it. Needs no BPF.
# Waits: for certificates to end and servers to begin.
. "$TOP/tests/system/lib.sh"
. "$TOP/tests/clickhouse/lib.sh"
command -v openssl >/dev/null || skip "no openssl"
command -v zstd >/dev/null || skip "no zstd"
secret=S3cret-pass,word

# --- certificates: of this address, of another name, and one that has expired ---
mkdir tls
openssl ecparam -genkey -name prime256v1 -out tls/key.pem 2>/dev/null
openssl req -x509 -new -key tls/key.pem -subj "/CN=made for a test" -days 10 -out tls/ca.pem
certificate() {
	openssl req -new -key tls/key.pem -subj "/CN=$1" -out request
	printf 'subjectAltName=%s\n' "$2" >extensions
	openssl x509 -req -in request -CA tls/ca.pem -CAkey tls/key.pem -days "$3" -extfile extensions -out "tls/$1.pem" 2>/dev/null
}
certificate good IP:127.0.0.1 5
certificate other DNS:elsewhere.example 5
certificate expired IP:127.0.0.1 0 # days: it ends with the second in which it was made
until_true 5 eval '! openssl x509 -checkend 0 -noout -in tls/expired.pem' || fail "the certificate does not end"
echo "$secret" >tls/password
echo "$secret" >password
touch tls/taken

if [ -d "$chdb/chdb" ] && command -v node >/dev/null; then
	start_clickhouse
fi
start stand_in.out python3 "$TOP/tests/clickhouse/stand_in.py" tls ${clickhouse:+"$clickhouse"}
until_true 20 grep -q ready stand_in.out || fail "no stand-in: $(cat stand_in.out.err)"
port() { sed -n "s/^$1 //p" stand_in.out; }

# serve NAME OPTION...: its URL in $url, its pid in $server
serve() {
	start "$1.out" "$HEARTH" serve --http-address 127.0.0.1:0 --grpc-address off "${@:2}"
	server=$started
	log=$1.out.err
	until_true 20 grep -q 'page at http' "$log" || fail "no page: $(cat "$log")"
	url=$(sed -n 's/.*page at \(http:[^ ]*\)\/.*/\1/p' "$log")
}
metric() { curl -sf "$url/metrics" | awk -v name="$1" 'index($0, name " ") == 1 { print $NF }'; }
failures() { metric "hearth_clickhouse_errors_total{reason=\"$1\"}"; }
taken() { awk '{ n += $1 } END { print n + 0 }' tls/taken; }
# send: a message of five samples that none before had
send() {
	sent=$((${sent:-0} + 5))
	for i in 1 2 3 4 5; do echo "main;f$sent;g$i $i"; done >one.folded
	"$HEARTH" convert one.folded one.otlp 2>/dev/null
	curl -s -m 20 -o answer -w '%{http_code}' -H 'Content-Type: application/x-protobuf' --data-binary @one.otlp "$url/v1development/profiles" >status || :
}
acknowledged() { [ "$(cat status)" = 200 ] || fail "$1: answered $(cat status answer): $(cat "$log")"; }
have_all() { [ "$(taken)" = "$sent" ]; }
place() { echo "clickhouse=https://hearth@127.0.0.1:$(port "$1")/db"; }
trusted=(--store-ca tls/ca.pem --store-password-file password)

# --- all is well; the password stands nowhere, also where somebody wrote it into the address ---
serve good --sink "clickhouse=https://hearth:$secret@127.0.0.1:$(port good)/db" --store-ca tls/ca.pem --verbose
send
acknowledged "over TLS"
have_all || fail "$sent samples were acknowledged, $(taken) are there"
curl -sf "$url/metrics" >seen
curl -sf "$url/api/v1/status" >>seen
grep -q "https://hearth@127.0.0.1" seen || fail "the status does not say where the samples are"
tr '\0' '\n' <"/proc/$server/cmdline" >>seen
cat "$log" >>seen
! grep -F -n "$secret" seen || fail "the password is shown"
grep -q 'hearth:xxx' seen || fail "the command line is not what was looked at: $(cat seen)"
stop "$server"

# --- who is there is not who we trust: said, counted, and what comes is on disk meanwhile ---
# distrusted NAME HOST MESSAGE OPTION...
distrusted() {
	serve "bad$1" --sink "clickhouse=https://hearth@$2:$(port "$1")/db" --spool "spool$1" --store-password-file password "${@:4}"
	send
	acknowledged "with a spool"
	grep -q "https://hearth@$2:[0-9]*/db: $3" "$log" || fail "$1: does not say '$3': $(cat "$log")"
	[ "$(failures tls)" -ge 1 ] || fail "$1: not counted: $(curl -s "$url/metrics" | grep clickhouse)"
	[ "$(metric 'hearth_spool_samples{store="clickhouse"}')" = 5 ] || fail "$1: not in the spool"
	curl -s -o answer -w '%{http_code}' "$url/api/v1/top" >status
	[ "$(cat status)" = 503 ] && grep -q "$3" answer || fail "$1: a question is answered $(cat status answer)"
	stop "$server"
}
distrusted good 127.0.0.1 '.*issuer.*--store-ca FILE'
distrusted other 127.0.0.1 ".*alternative certificate subject name.*127.0.0.1.*call it by a name that its certificate has" --store-ca tls/ca.pem
distrusted expired 127.0.0.1 '.*certificate has expired; renew its certificate' --store-ca tls/ca.pem
[ "$(taken)" = 5 ] || fail "$(taken) samples went to who is not trusted"
serve regained --sink "$(place good)" --spool spoolgood "${trusted[@]}"
arrived() { [ "$(taken)" = 10 ]; }
until_true 20 arrived || fail "what was in the spool is not there: $(taken): $(cat "$log")"
stop "$server"
sent=10

! "$HEARTH" store info --store "clickhouse+https://hearth@127.0.0.1:$(port good)/db" --store-ca none.pem 2>none.err || fail "any file will do"
grep -q -- '--store-ca: none.pem: No such file' none.err || fail "not said: $(cat none.err)"
! "$HEARTH" store info --store "clickhouse+https://hearth@127.0.0.1:$(port good)/db" --store-ca stand_in.out 2>none.err || fail "any file will do"
grep -q -- '--store-ca is to be a file of certificates' none.err || fail "not said: $(cat none.err)"

# --- a wrong password: at the start, and from some time on, without a spool ---
echo wrong >wrong
! "$HEARTH" serve --sink "$(place good)" --store-ca tls/ca.pem --store-password-file wrong --http-address 127.0.0.1:0 --grpc-address off 2>wrong.err ||
	fail "a wrong password will do"
grep -q 'Authentication failed.*look at the user in the address and at --store-password-file' wrong.err || fail "not said: $(cat wrong.err)"
serve changed --sink "$(place good)" "${trusted[@]}"
echo another >tls/password
send &
sender=$!
said() { grep -q 'does not take samples: .*Authentication failed.*--store-password-file; they wait in memory' "$log"; }
until_true 20 said || fail "not said: $(cat "$log")"
[ "$(failures login)" -ge 1 ] || fail "not counted: $(curl -s "$url/metrics" | grep clickhouse)"
[ "$(taken)" = 10 ] || fail "samples were taken with a wrong password"
echo "$secret" >tls/password
wait "$sender"
sent=15
until_true 40 have_all || fail "after the password was right again $(taken) of $sent are there: $(cat "$log")"

# A password that is changed on both sides: the file is read again, and nobody notices.
refused=$(failures login)
for side in tls/password password; do
	echo "$secret-2" >$side
done
send
acknowledged "with a new password"
[ "$(failures login)" = $((refused + 1)) ] || fail "the old password was tried $(($(failures login) - refused)) times"
sent=20
have_all || fail "with a new password $(taken) of $sent are there: $(cat "$log")"

# --- it goes away in the midst of an answer, and of a request ---
for mode in cut hold; do
	before=$(failures "cut off")
	echo "$mode" >tls/mode
	send &
	sender=$!
	counted() { [ "$(failures "cut off")" -gt "$before" ]; }
	until_true 20 counted || fail "$mode: not counted: $(curl -s "$url/metrics" | grep clickhouse): $(cat "$log")"
	rm tls/mode
	wait "$sender"
	sent=$((sent + 5))
	until_true 40 have_all || fail "$mode: $(taken) of $sent are there: $(cat "$log")"
	[ "$(metric hearth_store_events_total)" = $((sent - 10)) ] || fail "$mode: $(metric hearth_store_events_total) samples are counted"
done
grep -q 'the connection ended within the answer' "$log" || fail "not said: $(cat "$log")"
[ "$(metric hearth_store_lost_events_total)" = 0 ] || fail "samples were lost: $(cat "$log")"
stop "$server"
! grep -F -n "$secret" ./*.err || fail "the password is in a log"
if [ "${clickhouse-}" ]; then
	[ "$(ask_clickhouse 'SELECT count() FROM db.hearth_samples')" = "$sent" ] || fail "the engine has $(ask_clickhouse 'SELECT count() FROM db.hearth_samples') of $sent"
fi

# --- the same from the half of `hearth run` that listens, which may not read the password's file itself ---
if [ "$(id -u)" = 0 ] && [ -r /sys/kernel/btf/vmlinux ]; then
	before=$(taken)
	chmod 600 password
	start half.out env -u HEARTH_ONE_PROCESS "$HEARTH" run -F 199 --report-interval 200ms --http-address 127.0.0.1:0 \
		--store "clickhouse+https://hearth@127.0.0.1:$(port good)/db" "${trusted[@]}"
	server=$started
	until_true 60 grep -q 'profiles go to' half.out.err || fail "no profiler: $(cat half.out.err)"
	backend=$(pgrep -P "$(pgrep -P "$server" -x hearth-keeper)" -x hearth-backend) || fail "it is one process"
	[ "$(awk '/^Uid:/ { print $2 }' "/proc/$backend/status")" != 0 ] || fail "the half that sends is root"
	come() { [ "$(taken)" -gt "$before" ]; }
	until_true 30 come || fail "nothing comes from there: $(cat half.out.err)"
	stop "$server"
	accounted half.out.err
else
	left_out halves "needs root and BTF"
fi
