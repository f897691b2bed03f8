#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `hearth serve` and gRPC clients: grpcio, curl, and hearth's own sender; plain, gzip, zstd, TLS, tokens; certificates that are replaced;
# a stop while a call is half sent. Refusals and their reasons, frame by frame, are in
# tests/unit/backend/grpc_requests.py.
. "$TOP/tests/system/lib.sh"
/usr/bin/python3 -c 'import grpc, hpack' 2>/dev/null || skip "no python3-grpcio or python3-h2 here"
clients=$TOP/tests/system/grpc_clients.py

# serve NAME OPTION...: leaves $server, $http, $port
serve() {
	local name=$1
	shift
	start "$name" "$HEARTH" serve --http-address 127.0.0.1:0 --grpc-address 127.0.0.1:0 "$@"
	server=$started
	until_true 10 grep -q 'on grpcs*://127.0.0.1:[1-9]' "$name.err" || fail "does not listen: $(cat "$name.err")"
	http=$(sed -n 's|.*listening on \(https*://[^ ]*\).*|\1|p' "$name.err")
	port=$(sed -n 's|.* grpcs*://127.0.0.1:\([0-9]*\).*|\1|p' "$name.err")
}

# One sample with one time stamp, and the seven tables.
python3 - >request <<-'PYTHON'
	import sys
	def field(number, data):
	    return bytes([number << 3 | 2, len(data)]) + data
	sample = field(5, (1758603335000000000).to_bytes(8, "little"))
	tables = b"".join(field(table, b"") for table in (1, 2, 3, 4, 5, 6, 7))
	sys.stdout.buffer.write(field(1, field(2, field(2, field(2, sample)))) + field(2, tables))
PYTHON

# samples URL: those received, as /metrics says
samples() {
	curl -kfsS ${2:+-H "Authorization: Bearer $2"} "$1/metrics" | sed -n 's/^hearth_received_samples_total //p'
}

# --- plain ---
serve plain --print --store :memory:
"$clients" plain "$port" request || fail "grpcio"
[ "$(samples "$http")" = 4 ] || fail "$(samples "$http") samples of 4"

# curl is no gRPC library, but can say what one says.
{ printf '\0\0\0\0'; printf "\\x$(printf %x "$(stat -c %s request)")"; cat request; } >message
curl -sS --http2-prior-knowledge -o answer -D headers -H 'Content-Type: application/grpc' -H 'TE: trailers' --data-binary @message \
	"http://127.0.0.1:$port/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"
tr -d '\r' <headers | grep -qx 'grpc-status: 0' || fail "curl: $(cat headers)"
[ "$(od -An -tx1 answer)" = " 00 00 00 00 00" ] || fail "curl: $(od -c answer)"
curl -sS -o answer "http://127.0.0.1:$port/v1development/profiles" && grep -q 'OTLP/HTTP has a port' answer || fail "HTTP/1.1: $(cat answer)"
curl -fsS "$http/metrics" >metrics
grep -q '^hearth_received_requests_total{path="/opentelemetry.*ProfilesService/Export",code="OK"} 5$' metrics || fail "$(cat metrics)"
curl -fsS "$http/api/v1/status" | python3 -c '
import json, sys
requests = json.load(sys.stdin)["requests"]
seen = {(r["path"].split(".")[-1], r["status"]) for r in requests}
of_curl = [r["headers"] for r in requests if any(h.startswith("user-agent: curl/") for h in r["headers"])]
if not of_curl or not {"te: trailers", "content-type: application/grpc"} <= set(of_curl[-1]) or any(h.startswith(":") for h in of_curl[-1]):
    sys.exit(f"the metadata of curl: {of_curl}")
wanted = {("ProfilesService/Export", s) for s in (200, 400, 429)} | {("LogsService/Export", 200)}
sys.exit(f"not among the last requests: {wanted - seen}" if wanted - seen else 0)' || fail "the last requests"

# hearth sends to hearth, over both protocols, packed in each way.
sent=5
arrived() { [ "$(samples "$http")" = $sent ]; }
# header LINE: among those of the last requests
header() {
	curl -fsS "$http/api/v1/status" | python3 -c 'import json, sys; sys.exit(not any(sys.argv[1] in map(str.lower, r["headers"])
		for r in json.load(sys.stdin)["requests"]))' "$1"
}
for way in gzip:grpc-encoding zstd:grpc-encoding zstd:content-encoding; do
	case $way in *:grpc*) url=grpc://127.0.0.1:$port ;; *) url=$http ;; esac
	start "forward-$way" "$HEARTH" serve --http-address 127.0.0.1:0 --grpc-address off --collector "$url" --collector-compression "${way%:*}"
	until_true 10 grep -q 'listening on' "forward-$way.err" || fail "$(cat "forward-$way.err")"
	forward=$(sed -n 's|.*listening on \(http://[^ ]*\).*|\1|p' "forward-$way.err")
	curl -fsS -H 'Content-Type: application/x-protobuf' --data-binary @request "$forward/v1development/profiles"
	sent=$((sent + 1))
	until_true 10 arrived || fail "hearth to hearth, $way: $(samples "$http") samples of $sent; $(cat "forward-$way.err")"
	header "${way#*:}: ${way%:*}" || fail "no request with ${way#*:}: ${way%:*}"
	curl -fsS "$forward/metrics" | grep -qx 'hearth_export_repacked_total 0' || fail "$way is sent another way: $(cat "forward-$way.err")"
	stop "$started"
done

status=0
"$clients" stop "$port" request "$server" || fail "stop"
wait "$server" || status=$?
[ $status = 0 ] || fail "exit status $status after SIGTERM"
[ "$(grep -c 'New Sample' plain)" = 9 ] || fail "printed $(grep -c 'New Sample' plain) samples of 9"

# --- TLS and tokens ---
# certificate NAME: made anew, for localhost, its own CA
certificate() {
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj "/CN=$1" -keyout key.new -out cert.new \
		-addext subjectAltName=DNS:localhost,IP:127.0.0.1 2>openssl.log || fail "$(cat openssl.log)"
	mv key.new key.pem
	mv cert.new cert.pem
}
certificate first
printf 'old\nsecret\n' >tokens
serve tls --sink null --tls-cert cert.pem --tls-key key.pem --token-file tokens
"$clients" tls "$port" request cert.pem secret || fail "grpcio with TLS"

# subject ALPN: of the certificate that a handshake gets
subject() {
	openssl s_client -connect "127.0.0.1:$port" -alpn "$1" </dev/null 2>/dev/null | sed -n 's/^subject=.*CN *= *//p'
}
[ "$(subject h2)" = first ] || fail "certificate is '$(subject h2)'"
openssl s_client -connect "127.0.0.1:$port" -alpn http/1.1 </dev/null >alpn 2>&1 && fail "took a client of HTTP/1.1: $(cat alpn)"
openssl s_client -connect "127.0.0.1:$port" -alpn h2 -tls1_1 </dev/null >old 2>&1 && fail "took TLS 1.1"
certificate second
second() { [ "$(subject h2)" = second ]; }
until_true 10 second || fail "the new certificate is not used: $(subject h2)"
"$clients" tls "$port" request cert.pem old || fail "grpcio with the new certificate"

before=$(samples "$http" secret)
printf secret >token
start forward-tls "$HEARTH" serve --http-address 127.0.0.1:0 --grpc-address off --collector "grpcs://localhost:$port" \
	--collector-ca cert.pem --collector-token-file token
until_true 10 grep -q 'listening on' forward-tls.err || fail "$(cat forward-tls.err)"
forward=$(sed -n 's|.*listening on \(http://[^ ]*\).*|\1|p' forward-tls.err)
curl -fsS -H 'Content-Type: application/x-protobuf' --data-binary @request "$forward/v1development/profiles"
more() { [ "$(samples "$http" secret)" = $((before + 1)) ]; }
until_true 10 more || fail "hearth to hearth with TLS: $(samples "$http" secret) samples, before $before; $(cat forward-tls.err)"
stop "$server"
