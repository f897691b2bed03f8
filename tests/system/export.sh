#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A large part of a store as a file of OTLP, which is made on disk: it has each sample that was sent, over HTTP and TLS, to two who ask at
# once; a client that goes away leaves nothing behind. Needs no BPF.
. "$TOP/tests/system/lib.sh"
requests=28 each=60000 # more than two sockets hold
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout key -out cert -days 2 -subj /CN=localhost \
	-addext "subjectAltName=DNS:localhost,IP:127.0.0.1" 2>/dev/null || skip "no openssl here"
now=$(date +%s)
for i in $(seq $requests); do
	python3 "$TOP/tests/system/store_request.py" $((now / 3600 * 3600 - i * 3600)) 1 $each 0 >"request$i" || skip "no Python here"
done

# serve OPTION...: sets url and server
serve() {
	start served "$HEARTH" serve --grpc-address off --http-address 127.0.0.1:0 --store "$PWD/store" "$@"
	server=$started
	until_true 20 grep -q 'page at http' served.err || fail "no page: $(cat served.err)"
	url=$(sed -n 's/.*page at \(https*:[^ ]*\)\/.*/\1/p' served.err)
}
# files: of the server that have no name
files() { find "/proc/$server/fd" -lname '*(deleted)' | wc -l; }
no_files() { [ "$(files)" = 0 ]; }
# has_all FILE
has_all() {
	[ "$("$HEARTH" report "$1" --format json | python3 -c 'import json, sys; print(json.load(sys.stdin)["samples"])')" = $((requests * each)) ] ||
		fail "$1 ($(wc -c <"$1") bytes): $("$HEARTH" report "$1" | head -n 3)"
}

serve
for i in $(seq $requests); do
	[ "$(curl -sS -m 20 -o answer -w '%{http_code}' -H 'Content-Type: application/json' --data-binary "@request$i" \
		"$url/v1development/profiles")" = 200 ] || fail "request $i is not taken: $(cat answer served.err)"
done
range="from=first&to=now&format=otlp"
for i in 1 2; do
	curl -sS -m 60 -D "headers$i" -o "plain$i.otlp" "$url/api/v1/export?$range" &
	clients[i]=$!
done
wait "${clients[@]}"
for i in 1 2; do
	has_all "plain$i.otlp"
	! grep -qi '^etag' "headers$i" || fail "the file was made in memory: $(cat "headers$i")"
	grep -qi "^content-length: $(wc -c <"plain$i.otlp")" "headers$i" || fail "another length: $(cat "headers$i")"
done
until_true 10 no_files || fail "$(files) files are left"

# A part that is small has no need of a disk.
curl -sS -m 60 -D headers -o small.otlp "$url/api/v1/export?from=now-5m&to=now&format=otlp"
grep -qi '^etag' headers || fail "a small file is on disk: $(cat headers)"

# Whoever stops reading takes the file along.
curl -sS --limit-rate 20k -o gone "$url/api/v1/export?$range" &
client=$!
has_file() { [ "$(files)" -ge 1 ]; }
until_true 20 has_file || fail "no file is sent"
kill "$client"
wait "$client" || :
until_true 10 no_files || fail "$(files) files are left of a client that went away"
stop "$server"

serve --tls-cert "$PWD/cert" --tls-key "$PWD/key"
curl -sS -m 60 --cacert cert -D headers -o tls.otlp "$url/api/v1/export?$range" || fail "no answer: $(cat served.err)"
has_all tls.otlp
! grep -qi '^etag' headers || fail "the file was made in memory: $(cat headers)"
stop "$server"
