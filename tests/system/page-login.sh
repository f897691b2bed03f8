#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Who is let in where a token is asked for: by header, by password, by the cookie that a browser gets for it; who guesses; under
# which names counters and workloads are told.
. "$TOP/tests/system/lib.sh"

(umask 077 && echo open-sesame >token)
# serve NAME ARG...: sets url
serve() {
	start "$1" "$HEARTH" serve --grpc-address off "${@:2}"
	until_true 10 grep -q 'page at http' "$1.err" || fail "does not listen: $(cat "$1.err")"
	url=$(sed -n 's/.*listening on \(http:[^ ]*\) for OTLP.*/\1/p' "$1.err")
}
# get STATUS CURL-OPTION... PATH
get() {
	local got
	got=$(curl -s -D head -o answer -w '%{http_code}' "${@:2:$#-2}" "$url${*: -1}")
	[ "$got" = "$1" ] || fail "${*:2}: status $got, not $1: $(head -c 300 answer)"
}

serve guarded --http-address 0.0.0.0:0 --store :memory: --token-file token
url=http://127.0.0.1:${url##*:}
get 401 /
grep -q '<form id="login">' answer && grep -qi '^www-authenticate: Bearer' head || fail "no form: $(cat head answer)"
get 401 /page/app.js
get 200 /page/login.js
get 401 /api/v1/status
! grep -qi '^www-authenticate: Basic' head || fail "the browser's own dialog would cover the page"
get 401 /debug/pprof/profile
grep -qi '^www-authenticate: Basic' head || fail "pprof is not asked for a password: $(cat head)"
get 401 -X POST /login
get 401 -X POST -H 'Authorization: Bearer wrong' /login
get 200 /session
grep -q '"session":false' answer || fail "/session: $(cat answer)"

# The cookie: what it is like, what it may, its end.
login=(-X POST -H 'Authorization: Bearer open-sesame')
get 403 "${login[@]}" -H 'Origin: http://elsewhere.example' /login
get 204 "${login[@]}" -c jar /login
cookie=$(sed -n 's/^set-cookie: \([^;]*\);.*/\1/Ip' head)
grep -Eqi '^set-cookie: hearth-[0-9]+=[0-9a-f]{64}; Path=/; Max-Age=604800; HttpOnly; SameSite=Strict.$' head || fail "cookie: $(cat head)"
get 200 -b jar /
get 200 -b jar /api/v1/status
get 200 -b jar /session
grep -q '"session":true' answer || fail "/session: $(cat answer)"
get 401 -b "${cookie%?}x" /api/v1/status
get 401 -b jar /metrics
get 401 -b jar -H 'Content-Type: application/json' -d '{}' /v1development/profiles
get 403 -b jar --data-binary @token /api/v1/symbols
get 403 -b jar -H "Origin: http://elsewhere.example" --data-binary @token /api/v1/symbols
get 400 -b jar -H "Origin: $url" --data-binary @token /api/v1/symbols
get 403 -b jar -H "Host: elsewhere.example" /api/v1/status
get 200 -u x:open-sesame /api/v1/status
get 200 "${login[@]:2}" /api/v1/status
get 403 -b jar -X POST /logout
get 204 -b jar -X POST -H "Origin: $url" /logout
grep -qi '^set-cookie: .*Max-Age=0' head || fail "the cookie stays: $(cat head)"
get 401 -b "$cookie" /api/v1/status
# With its token.
get 204 "${login[@]}" -c jar /login
echo sesame-2 >token
not_in() { [ "$(curl -s -o /dev/null -w '%{http_code}' -b jar "$url/api/v1/status")" = 401 ]; }
until_true 10 not_in || fail "a session outlives its token"

# A browser's way.
status=0
python3 "$TOP/tests/browser/page_login.py" "$url" sesame-2 . || status=$?
[ $status = 0 ] || [ $status = 77 ] || exit $status

# Guessing: ten different ones, then nobody there is heard for a while. The same again is no guess.
refused=$(for i in $(seq 20); do curl -s -o /dev/null -w '%{http_code} ' -H "Authorization: Bearer stale" "$url/metrics"; done)
[ -z "${refused//401 /}" ] || fail "one stale token: $refused"
refused=$(for i in $(seq 14); do curl -s -o /dev/null -w '%{http_code} ' -u "x:guess$i" "$url/api/v1/status"; done)
[[ $refused =~ 401.*429\ 429\  ]] || fail "guesses: $refused"
get 429 -H 'Authorization: Bearer sesame-2' /metrics
grep -qi '^retry-after: [1-9]' head || fail "429 does not say when: $(cat head)"
[ "$(curl -s -o /dev/null -w '%{http_code}' --interface 127.0.0.2 -H 'Authorization: Bearer sesame-2' "$url/metrics")" = 200 ] || fail "others are shut out too"
get 200 /healthz
stop "$started"

# Names. On loopback they are all that keeps other sites out; off it whoever gets there may ask, by any name.
serve named --http-address 127.0.0.1:0 --rest-address 127.0.0.1:0 --metrics-address 127.0.0.1:0 --store :memory: --page-name me.example
all=$url
alone=($(sed -n 's/.*listening on \(http:[^ ]*\) for .*alone.*/\1/p' named.err))
[ ${#alone[@]} = 2 ] || fail "no ports of their own: $(cat named.err)"
told=0
for url in "$all" "${alone[@]}"; do
	for path in /metrics /workloads; do
		[ "$(curl -s -o /dev/null -w '%{http_code}' "$url$path")" = 200 ] || continue
		told=$((told + 1))
		get 403 -H 'Host: rebound.example' $path
		get 200 -H 'Host: localhost:1' $path
		get 200 -H 'Host: me.example' $path
	done
done
[ $told = 4 ] || fail "$told of 4 pages were there"
stop "$started"
serve open --http-address 0.0.0.0:0 --rest-address 0.0.0.0:0 --store :memory:
url=http://127.0.0.1:${url##*:}
get 200 -H 'Host: node7.example:9100' /metrics
get 200 -H 'Host: node7.example:9100' /workloads
get 403 /
[ $status = 0 ] || left_out browser "no chromium and chromedriver here"
