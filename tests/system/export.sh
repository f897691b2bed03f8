#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A large part of a store as a file of OTLP, which is made on disk: it has each sample that was sent, over HTTP and TLS, to two who ask at
# once; a client that goes away leaves nothing behind. So are other formats, and a disk that is full is told. Needs no BPF.
. "$TOP/tests/system/lib.sh"
requests=28 each=60000 # more than two sockets hold
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout key -out cert -days 2 -subj /CN=localhost \
	-addext "subjectAltName=DNS:localhost,IP:127.0.0.1" 2>/dev/null || skip "no openssl here"
now=$(date +%s)
for i in $(seq $requests); do
	python3 "$TOP/tests/system/store_request.py" $((now / 3600 * 3600 - i * 3600)) 1 $each 0 >"request$i" || skip "no Python here"
done

# serve OPTION...: of the store in $store; sets url and server
store=$PWD/store
serve() {
	start served "$HEARTH" serve --grpc-address off --http-address 127.0.0.1:0 --store "$store" "$@"
	server=$started
	until_true 20 grep -q 'page at http' served.err || fail "no page: $(cat served.err)"
	url=$(sed -n 's/.*page at \(https*:[^ ]*\)\/.*/\1/p' served.err)
}
# files: of the server that have no name
files() { find "/proc/$server/fd" -lname '*(deleted)' | wc -l; }
no_files() { [ "$(files)" = 0 ]; }
# send FILE
send() {
	[ "$(curl -sS -m 20 -o answer -w '%{http_code}' -H 'Content-Type: application/json' --data-binary "@$1" \
		"$url/v1development/profiles")" = 200 ] || fail "$1 is not taken: $(cat answer served.err)"
}
# has FILE SAMPLES
has() {
	[ "$("$HEARTH" report "$1" --format json | python3 -c 'import json, sys; print(json.load(sys.stdin)["samples"])')" = "$2" ] ||
		fail "$1 ($(wc -c <"$1") bytes): $("$HEARTH" report "$1" | head -n 3)"
}
has_all() { has "$1" $((requests * each)); }
# was_on_disk FILE HEADERS
was_on_disk() {
	! grep -qi '^etag' "$2" || fail "$1 was made in memory: $(cat "$2")"
	grep -qi "^content-length: $(wc -c <"$1")" "$2" || fail "$1 has another length: $(cat "$2")"
}
# gone QUERY: a client reads some of the answer and goes away
gone() {
	curl -sS --limit-rate 20k -o gone "$url/api/v1/export?$1" &
	client=$!
	has_file() { [ "$(files)" -ge 1 ] && [ -s gone ]; }
	until_true 20 has_file || fail "no file is sent"
	kill "$client"
	wait "$client" || :
	until_true 10 no_files || fail "$(files) files are left of a client that went away"
	rm gone
}

serve
for i in $(seq $requests); do
	send "request$i"
done
range="from=first&to=now&format=otlp"
for i in 1 2; do
	curl -sS -m 60 -D "headers$i" -o "plain$i.otlp" "$url/api/v1/export?$range" &
	clients[i]=$!
done
wait "${clients[@]}"
for i in 1 2; do
	has_all "plain$i.otlp"
	was_on_disk "plain$i.otlp" "headers$i"
done
until_true 10 no_files || fail "$(files) files are left"

# A part that is small has no need of a disk.
curl -sS -m 60 -D headers -o small.otlp "$url/api/v1/export?from=now-5m&to=now&format=otlp"
grep -qi '^etag' headers || fail "a small file is on disk: $(cat headers)"

# Whoever stops reading takes the file along.
gone "$range"
stop "$server"

serve --tls-cert "$PWD/cert" --tls-key "$PWD/key"
curl -sS -m 60 --cacert cert -D headers -o tls.otlp "$url/api/v1/export?$range" || fail "no answer: $(cat served.err)"
has_all tls.otlp
was_on_disk tls.otlp headers
stop "$server"

# Sums of samples: long names make their files large.
store=$PWD/long
python3 "$TOP/tests/system/store_request.py" $((now / 3600 * 3600 - 3600)) 1 $each 10000 >long_names
serve
send long_names
for format in folded svg html pprof; do
	curl -sS -m 60 -D headers -o "long.$format" "$url/api/v1/export?from=first&to=now&format=$format"
	was_on_disk "long.$format" headers
	until_true 10 no_files || fail "$(files) files are left of $format"
done
has long.folded $each
has long.pprof $each
[ "$(tail -n 1 long.svg)" = '</svg>' ] && [ "$(tail -n 1 long.html)" = '</html>' ] || fail "a picture has no end"
curl -sS -m 60 -D headers -o none.folded "$url/api/v1/export?from=now-5m&to=now&format=folded"
grep -qi '^etag' headers || fail "a small file is on disk: $(cat headers)"
gone 'from=first&to=now&format=folded'
stop "$server"

# A disk that is full is told, and nothing stays on it.
mkdir small
if ! mount -t tmpfs -o size=$(($(du -s --block-size=1 long | cut -f1) + 4000000)) tmpfs small 2>/dev/null; then
	left_out "a full disk: no file system can be mounted here"
	exit 0
fi
trap 'for pid in "${pids[@]}"; do kill -KILL "$pid" 2>/dev/null || :; done; umount -l small' EXIT
store=$PWD/small/store
cp -r long "$store"
serve
[ "$(curl -sS -m 60 -o answer -w '%{http_code}' "$url/api/v1/export?from=first&to=now&format=folded")" = 507 ] &&
	grep -q 'no room on the store' answer || fail "a full disk: $(head -c 200 answer)"
until_true 10 no_files || fail "$(files) files are left on a full disk"
[ "$(curl -sS -m 60 -o none.folded -w '%{http_code}' "$url/api/v1/export?from=now-5m&to=now&format=folded")" = 200 ] ||
	fail "no answer after a full disk: $(cat none.folded)"
stop "$server"
