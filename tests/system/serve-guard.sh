#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The guards of `hearth serve`, by curl and openssl: TLS whose files change, clients' certificates, tokens that change,
# other origins.
# Waits: for limits of time.
. "$TOP/tests/system/lib.sh"

# certificate NAME: NAME.crt and NAME.key for 127.0.0.1, its own authority
certificate() {
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$1.key" -out "$1.crt" -days 2 -subj "/CN=$1" \
		-addext subjectAltName=IP:127.0.0.1 2>/dev/null || fail "openssl makes no certificate"
}
certificate first
certificate second

# serve NAME ARG...: sets url
serve() {
	local name=$1
	shift
	start "$name" "$HEARTH" serve --grpc-address off --http-address 127.0.0.1:0 --sink null "$@"
	until_true 10 grep -q 'listening on http' "$name.err" || fail "does not listen: $(cat "$name.err")"
	url=$(sed -n 's/.*listening on \(https\?:[^ ]*\).*/\1/p' "$name.err")
}
# get STATUS CURL-OPTION... PATH: curl's idea of the status; 000: no answer
get() {
	local expected=$1 got
	got=$(curl -s -o answer -w '%{http_code}' "${@:2:$#-2}" "$url${*: -1}") || true
	[ "$got" = "$expected" ] || fail "${*:2}: status $got, not $expected: $(cat answer)"
}
trusts() {
	curl -s -o /dev/null --cacert "$1.crt" "$url/healthz"
}

# --- TLS, and a token ---
cp first.crt server.crt
cp first.key server.key
printf 'old-token\n' >tokens
serve guarded --tls-cert server.crt --tls-key server.key --token-file tokens
[ "${url#https://}" != "$url" ] || fail "says $url"
tls=(--cacert first.crt)
get 200 "${tls[@]}" /healthz
get 200 "${tls[@]}" --tls-max 1.2 /healthz
get 000 "${tls[@]}" --tls-max 1.1 --ciphers DEFAULT@SECLEVEL=0 /healthz
get 000 --cacert second.crt /healthz
get 401 "${tls[@]}" /metrics
for header in old-token 'Bearer old-toke' 'Bearer old-token2' 'Bearer old-tokem' 'Bearer' 'Basic old-token' ''; do
	get 401 "${tls[@]}" -H "Authorization: $header" /metrics
done
get 200 "${tls[@]}" -H 'Authorization: Bearer old-token' /metrics
get 200 "${tls[@]}" -H 'Authorization: bearer  old-token' -H 'Content-Type: application/json' -d '{}' /v1development/profiles
get 401 "${tls[@]}" -H 'Content-Type: application/json' -d '{}' /v1development/profiles
grep -q '"code":16,' answer || fail "401 says $(cat answer)"
curl -s "${tls[@]}" -D - -o /dev/null "$url/metrics" | grep -qi '^www-authenticate: Bearer' || fail "401 does not ask for a token"

# --- tokens change: both for a while, then the new one ---
may() {
	curl -sf -o /dev/null "${tls[@]}" -H "Authorization: Bearer $1" "$url/metrics"
}
printf 'old-token\nnew-token\n' >tokens
until_true 10 may new-token || fail "a token that was added is not taken"
may old-token || fail "the old token is not taken beside the new one"
: >tokens
sleep 1.2
may new-token || fail "an empty file ended the old tokens"
printf 'new-token\n' >tokens
not() { ! "$@"; }
until_true 10 not may old-token || fail "a token that was removed is taken"
may new-token || fail "the token that stayed is not taken"

# --- the certificate changes, a moment before its key; who is connected stays so ---
exec {held}<> >(openssl s_client -quiet -connect "${url#https://}" >held 2>/dev/null)
printf 'GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n' >&$held
until_true 10 grep -q '^ok' held || fail "no answer over openssl: $(cat held)"
cp second.crt server.crt
until_true 10 grep -q 'changed TLS files cannot be used' guarded.err || fail "a certificate without its key: $(cat guarded.err)"
trusts first || fail "the old certificate went before the new one could be used"
cp second.key server.key
until_true 10 trusts second || fail "the new certificate is not used: $(cat guarded.err)"
not trusts first || fail "the old certificate is still shown"
printf 'GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n' >&$held
until_true 10 eval '[ "$(grep -c "^ok" held)" = 2 ]' || fail "a connection from before the change does not live on"
exec {held}>&-
tls=(--cacert second.crt -H 'Authorization: Bearer new-token')
get 200 "${tls[@]}" /metrics
grep -qx 'hearth_tls_reloads_total 1' answer && grep -qx 'hearth_tls_reload_failures_total 1' answer || fail "reloads are not counted: $(grep tls answer)"
stop "$started"

# --- clients' certificates, and other origins ---
serve clients --tls-cert first.crt --tls-key first.key --tls-client-ca second.crt --cors-origin https://page.example
tls=(--cacert first.crt)
get 000 "${tls[@]}" /healthz
get 000 "${tls[@]}" --cert first.crt --key first.key /healthz
get 000 "${tls[@]}" --tls-max 1.2 /healthz
get 200 "${tls[@]}" --cert second.crt --key second.key /healthz
get 200 "${tls[@]}" --tls-max 1.2 --cert second.crt --key second.key /healthz
tls+=(--cert second.crt --key second.key)
get 204 "${tls[@]}" -X OPTIONS -H 'Origin: https://page.example' -H 'Access-Control-Request-Method: POST' -D headers /v1/logs
grep -qi '^access-control-allow-origin: https://page.example' headers || fail "preflight: $(cat headers)"
get 403 "${tls[@]}" -X OPTIONS -H 'Origin: https://other.example' -H 'Access-Control-Request-Method: POST' -D headers /v1/logs
not grep -qi "^access-control" headers || fail "another origin is let in: $(cat headers)"
get 200 "${tls[@]}" -H 'Origin: https://page.example' -H 'Content-Type: application/json' -d '{}' -D headers /v1/logs
grep -qi '^access-control-allow-origin: https://page.example' headers || fail "answer to an origin: $(cat headers)"
get 403 "${tls[@]}" -H 'Origin: https://other.example' -H 'Content-Type: application/json' -d '{}' /v1/logs
grep -q 'pages of https://other.example may not ask here' answer || fail "another origin is told $(cat answer)"
stop "$started"

# --- a site that points its own name here (DNS rebinding), and pages of elsewhere, may not write into the store ---
serve plain --page-name shop.example
for path in /v1development/profiles /v1/profiles /v1/logs /v1/metrics /v1/traces; do
	post=(-H 'Content-Type: application/json' -d '{}')
	get 200 "${post[@]}" "$path"
	get 200 "${post[@]}" -H 'Host: shop.example' -H 'Origin: http://shop.example' "$path"
	get 403 "${post[@]}" -H 'Host: evil.example:4318' -H 'Origin: http://evil.example:4318' "$path"
	grep -q 'start hearth with --page-name evil.example' answer || fail "a name that is not ours is told $(cat answer)"
	get 403 "${post[@]}" -H 'Origin: http://evil.example' "$path"
	get 403 "${post[@]}" -H 'Origin: null' "$path"
done
get 403 -H 'Host: evil.example' /metrics
get 200 -H 'Host: evil.example' /healthz
get 200 /metrics
grep -qx 'hearth_rejected_requests_total{reason="origin"} 16' answer || fail "refusals are not counted: $(grep origin answer)"
stop "$started"

# --- what cannot be used is said at once ---
refuses() {
	local text=$1
	shift
	"$HEARTH" serve --sink null --http-address 127.0.0.1:0 --grpc-address off "$@" 2>err && fail "$*: starts"
	grep -qF -- "$text" err || fail "$*: does not say '$text': $(cat err)"
}
: >nothing
refuses 'cannot read missing.crt: No such file' --tls-cert missing.crt
refuses 'no certificate in nothing' --tls-cert nothing
refuses 'do not match' --tls-cert first.crt --tls-key second.key
refuses 'no private key in first.crt' --tls-cert first.crt
refuses '--tls-key needs --tls-cert' --tls-key first.key
refuses 'no certificate in nothing' --tls-cert first.crt --tls-key first.key --tls-client-ca nothing
refuses 'there is no token in it' --token-file nothing
refuses 'missing: No such file' --token-file missing
