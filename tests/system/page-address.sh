#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Where the page is, and for whom: that of `hearth view` and `hearth run` asks for tokens and speaks TLS as that of `hearth serve`.
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
