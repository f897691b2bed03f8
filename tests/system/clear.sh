#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# POST /api/v1/clear empties a store that is being written: what was there is gone, what comes afterwards is read; nobody else may.
. "$TOP/tests/system/lib.sh"
need_bpf

"$HEARTH" record -F 199 -o chain.otlp -- "$TRUTH/cpp_chain" 1 2>err || fail "exit status $?: $(cat err)"
(umask 077 && echo open-sesame >token)

# serve NAME OPTION...: its URL in $url
serve() {
	start "$1" "$HEARTH" serve --http-address 127.0.0.1:0 --grpc-address off "${@:2}"
	until_true 10 grep -q 'listening on http://127.0.0.1:[1-9]' "$1.err" || fail "does not listen: $(cat "$1.err")"
	url=$(sed -n 's/.*listening on \(http:[^ ]*\).*/\1/p' "$1.err")
}
auth=(-H 'Authorization: Bearer open-sesame')
post() {
	curl -sf -o answer "${auth[@]}" -H 'Content-Type: application/x-protobuf' --data-binary @chain.otlp "$url/v1development/profiles" ||
		fail "not taken: $(cat answer)"
}
events() { curl -sf "${auth[@]}" "$url/api/v1/status" | grep -o '"bytes":[0-9]*,"events":[0-9]*' | sed 's/.*://'; }
has_function() { curl -sf "${auth[@]}" "$url/api/v1/top?from=first&to=last" | grep -q 'truth::outer'; }
status() { curl -s -o answer -w '%{http_code}' "$@" "$url/api/v1/clear"; }

serve kept --store store --token-file token
post
until_true 10 has_function || fail "what was sent is not stored"
before=$(events)
[ "$(status -X POST)" = 401 ] || fail "cleared without a token"
[ "$(status "${auth[@]}")" = 405 ] || fail "cleared by GET"
[ "$(status -X POST "${auth[@]}" -H 'Origin: http://elsewhere.example')" = 403 ] || fail "cleared for a page of elsewhere"
[ "$(events)" = "$before" ] || fail "$(events) samples, $before before"
[ "$(status -X POST "${auth[@]}")" = 200 ] || fail "not cleared: $(cat answer)"
grep -q "{\"cleared\":$before}" answer || fail "answer: $(cat answer)"
[ "$(events)" = 0 ] && ! has_function || fail "$(events) samples are left"
post
until_true 10 has_function || fail "what came afterwards cannot be read: $(curl -s "${auth[@]}" "$url/api/v1/top?from=first&to=last")"
[ "$(events)" = "$before" ] || fail "$(events) samples came, not $before"
kill "$started" && wait "$started"
"$HEARTH" store verify --store store 2>err || fail "the store is damaged: $(cat err)"

# A store that is only read: nothing goes.
start viewed "$HEARTH" view store --http-address 127.0.0.1:0
until_true 10 grep -q 'page at http' viewed.err || fail "no view: $(cat viewed.err)"
url=$(sed -n 's/.*page at \(http:[^ ]*\)\/#.*/\1/p' viewed.err)
[ "$(status -X POST)" = 409 ] && grep -q 'only read here: clear it where it is written' answer || fail "a store that is only read: $(cat answer)"
[ "$(events)" = "$before" ] || fail "$(events) samples are left of $before"

serve unkept --print
[ "$(status -X POST)" = 404 ] && grep -q 'start hearth with --store' answer || fail "without a store: $(cat answer)"
