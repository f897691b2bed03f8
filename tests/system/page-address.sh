#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Where the page is, and for whom: with --page-address what shows profiles is there alone, under the page's rules, and senders'
# address shows none; the page of `hearth view` and `hearth run` asks for tokens and speaks TLS as that of `hearth serve`.
. "$TOP/tests/system/lib.sh"

(umask 077 && echo open-sesame >token)
bearer='Authorization: Bearer open-sesame'
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout tls.key -out tls.crt -days 2 -subj /CN=page \
	-addext subjectAltName=IP:127.0.0.1 2>/dev/null || fail "openssl makes no certificate"
# hearth NAME ARG...: in the background, until it says where its page is; sets page
hearth() {
	start "$1" "$HEARTH" "${@:2}"
	until_true 20 grep -q 'page at http' "$1.err" || fail "no page: $(cat "$1.err")"
	page=$(sed -n 's/.*page at \(https\?:[^ ]*\)\/\(#.*\)\?\( .*\)\?$/\1/p' "$1.err" | sed 's/0\.0\.0\.0/127.0.0.1/')
}
# get STATUS CURL-OPTION... URL
get() {
	local got
	got=$(curl -s -o answer -w '%{http_code}' "${@:2}") || :
	[ "$got" = "$1" ] || fail "${*:2}: status $got, not $1: $(head -c 300 answer)"
}

# sends STATUS CURL-OPTION... URL: an OTLP request
sends() {
	get "$1" -H 'Content-Type: application/json' -d '{}' "${@:2:$#-2}" "${*: -1}/v1development/profiles"
}
shown=(/ /page/app.js /page/login.js /session /api/v1/status /api/v1/flamegraph /debug/pprof/symbol /pprof/cmdline)
posted=(/login /logout /api/v1/symbols /querier.v1.QuerierService/LabelNames)
# apart NAME CURL-OPTION...: of the hearth that said so in NAME.err, what shows profiles is at $page alone, OTLP is not there; sets
# senders
apart() {
	local path
	senders=$(sed -n 's/.*listening on \(https\?:[^ ]*\) for OTLP.*/\1/p' "$1.err" | sed 's/0\.0\.0\.0/127.0.0.1/')
	[ -n "$senders" ] && [ "$senders" != "$page" ] || fail "one address: $(cat "$1.err")"
	for path in "${shown[@]}"; do
		get 404 "${@:2}" "$senders$path"
		get 200 "${@:2}" "$page$path"
	done
	for path in "${posted[@]}"; do
		get 404 "${@:2}" -d '{}' "$senders$path"
		curl -s -o answer -w '%{http_code}' "${@:2}" -d '{}' "$page$path" >status
		[ "$(cat status)" != 405 ] && ! grep -q '404 not found' answer || fail "no $path at the page: $(cat status answer)"
	done
	sends 404 "${@:2}" "$page"
	sends 200 "${@:2}" "$senders"
	for path in /metrics /healthz; do
		get 200 "${@:2}" "$senders$path"
		get 200 "${@:2}" "$page$path"
	done
	get 200 "${@:2}" "$page/api/v1/status"
	grep -q '"receives":false' answer || fail "the page says that it receives: $(head -c 300 answer)"
}

# --- serve: senders from everywhere, the page for this machine ---
serve=(serve --grpc-address off --store :memory: --workloads)
hearth served "${serve[@]}" --http-address 0.0.0.0:0 --page-address 127.0.0.1:0
apart served
get 403 -H 'Host: elsewhere.example' "$page/api/v1/status"
get 403 -H 'Origin: http://elsewhere.example' "$page/api/v1/status"
get 403 -H 'Host: elsewhere.example' "$page/metrics"
get 404 "$page/workloads"
get 200 "$senders/workloads"
sends 200 -H 'Host: elsewhere.example' "$senders"
stop "$started"
# The other way round: the page off loopback, for nobody without tokens.
hearth bare "${serve[@]}" --http-address 127.0.0.1:0 --page-address 0.0.0.0:0
senders=$(sed -n 's/.*listening on \(http:[^ ]*\) for OTLP.*/\1/p' bare.err)
for path in "${shown[@]}"; do
	get 403 "$page$path"
done
get 403 -d '{}' "$page/querier.v1.QuerierService/LabelNames"
grep -q "warning: http://0.0.0.0:${page##*:} is reachable" bare.err || fail "no warning: $(cat bare.err)"
sends 200 "$senders"
stop "$started"
hearth guarded "${serve[@]}" --http-address 127.0.0.1:0 --page-address 0.0.0.0:0 --token-file token --tls-cert tls.crt --tls-key tls.key
get 401 --cacert tls.crt "$page/api/v1/status"
apart guarded --cacert tls.crt -H "$bearer"
sends 401 --cacert tls.crt "$senders"
stop "$started"
# Nowhere, or nothing to be shown.
start off "$HEARTH" "${serve[@]}" --http-address 127.0.0.1:0 --page-address off
until_true 10 grep -q 'listening on http' off.err || fail "does not listen: $(cat off.err)"
senders=$(sed -n 's/.*listening on \(http:[^ ]*\) for OTLP.*/\1/p' off.err)
get 404 "$senders/api/v1/status"
! grep -q 'page at' off.err || fail "a page: $(cat off.err)"
stop "$started"
start none "$HEARTH" serve --grpc-address off --sink null --http-address 127.0.0.1:0 --page-address 127.0.0.1:0
until_true 10 grep -q 'no page at 127.0.0.1:0: profiles are not kept' none.err || fail "says nothing: $(cat none.err)"
stop "$started"

# --- a capture ---
printf 'main;work 5\nmain 1\n' >x.folded
hearth bare view x.folded --http-address 0.0.0.0:0
grep -q 'warning: .* is reachable from other machines, without TLS or a token' bare.err || fail "no warning: $(cat bare.err)"
get 403 "$page/"
grep -q -- --token-file answer || fail "403 does not say what to do: $(cat answer)"
stop "$started"
hearth viewed view x.folded --http-address 0.0.0.0:0 --token-file token --tls-cert tls.crt --tls-key tls.key
[ "${page#https://}" != "$page" ] || fail "says $page"
get 401 --cacert tls.crt "$page/"
get 401 --cacert tls.crt "$page/api/v1/status"
get 200 --cacert tls.crt -H "$bearer" "$page/api/v1/status"
get 403 --cacert tls.crt -H "$bearer" -H 'Host: elsewhere.example' "$page/api/v1/status"
stop "$started"
: >nothing
"$HEARTH" view x.folded --http-address 127.0.0.1:0 --token-file nothing 2>err && fail "a file without a token is taken"
grep -q 'there is no token in it' err || fail "does not say why: $(cat err)"

# --- beside an agent ---
need_bpf
hearth ran run --store :memory: --http-address 0.0.0.0:0 --token-file token --pid $$
get 401 "$page/api/v1/status"
get 200 -H "$bearer" "$page/api/v1/status"
get 200 -H "$bearer" -H 'Content-Type: application/json' -d '{}' "$page/v1development/profiles"
get 401 -H 'Content-Type: application/json' -d '{}' "$page/v1development/profiles"
stop "$started"
hearth beside run --store :memory: --http-address 0.0.0.0:0 --page-address 127.0.0.1:0 --pid $$
apart beside
stop "$started"
hearth alone run --store :memory: --http-address off --page-address 127.0.0.1:0 --pid $$
get 200 "$page/api/v1/status"
! grep -q 'for OTLP' alone.err || fail "receives: $(cat alone.err)"
stop "$started"
# Ports that are taken: each has another.
start port python3 -u -c 'import socket, time
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(8); print(s.getsockname()[1]); time.sleep(60)'
until_true 10 test -s port || fail "no port"
hearth moved run --store :memory: --http-address "127.0.0.1:$(cat port)" --page-address "127.0.0.1:$(cat port)" --pid $$
grep -q 'the page has port' moved.err && grep -q 'the receiver has port' moved.err || fail "does not say so: $(cat moved.err)"
apart moved
stop "$started"
