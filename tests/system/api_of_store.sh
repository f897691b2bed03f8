# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# The query API's duties over any store, $store; sourced by a test of each. Every path of docs/api.md; a known program's
# share against what it says itself; pprof reads live and stored ranges; what is kept is there after a restart; who may
# ask.

code() { curl -s -o /dev/null -w '%{http_code}' "$@"; }

cat >spin.c <<'END'
#include <stdint.h>
volatile uint64_t sink;
__attribute__((noinline)) static void spin_inner(void) { for (int i = 0; i < 10000; i++) sink += i; }
__attribute__((noinline)) static void spin_outer(void) { for (;;) { spin_inner(); __asm__ volatile(""); } }
int main(void) { spin_outer(); }
END
gcc -O1 -g -o spin-api spin.c
start spin.out ./spin-api

start run.out "$HEARTH" run -F 199 --store "$store" --http-address 127.0.0.1:0 --report-interval 1s
hearth=$started
until_true 40 grep -q 'page at http' run.out.err || fail "no page: $(cat run.out.err)"
url=$(sed -n 's/.*page at \(http:[^ ]*\)\/.*/\1/p' run.out.err)
has_spin() { curl -sf "$url/api/v1/top?query=\{comm=\"spin-api\"\}" | grep -q spin_inner; }
until_true 60 has_spin || fail "spin_inner is not seen: $(curl -s "$url/api/v1/top" | head -c 500)"
sleep 3
python3 "$TOP/tests/system/api.py" "$TOP/docs/api.md" "$url" spin_inner || fail "the API is not as documented"

# One program that never waits: nearly all of its time is in one function below another.
share=$(curl -sf "$url/api/v1/top?query=\{comm=\"spin-api\"\}&focus=spin_outer" | python3 -c '
import json, sys
d = json.load(sys.stdin)
print(round(100 * next(r["self"] for r in d["rows"] if r["name"] == "spin_inner") / d["total"]))')
[ "$share" -ge 80 ] || fail "spin_inner has $share % of its program"

if command -v go >/dev/null; then
	go tool pprof -top -seconds 2 "$url" >live.txt 2>live.err || fail "pprof: $(cat live.err)"
	grep -q spin_inner live.txt || fail "pprof sees no spin_inner: $(head live.txt)"
	! grep -vE '^(Fetching profile|Saved profile|Please wait)' live.err || fail "pprof complains"
	go tool pprof -top "$url/debug/pprof/profile?from=first&to=last&query=%7Bcomm%3D%22spin-api%22%7D" >stored.txt 2>stored.err || fail "pprof: $(cat stored.err)"
	grep -q spin_inner stored.txt || fail "pprof sees no stored spin_inner"
else
	left_out pprof "no go here"
fi

[ "$(curl -sf "$url/pprof/cmdline") $(curl -sf "$url/debug/pprof/symbol")" = "hearth num_symbols: 0" ] || fail "pprof's further paths"
[ "$(code -X POST "$url/api/v1/clear?from=now-1h") $(code "$url/metrics?name[]=x") $(code "$url/?trace=1") $(code "$url/healthz?x")" = "400 200 200 200" ] || fail "other paths' parameters"
[ "$(code "$url/pprof/nothing")" = 404 ] || fail "/pprof/nothing is something"
# Of one process alone, by name and hearth itself.
for name in spin-api hearth; do
	curl -sf -o of.pb.gz "$url/debug/pprof/profile?from=first&to=now&process=$name" || fail "no profile of $name"
	"$HEARTH" report of.pb.gz --format csv >of.csv
	! grep -q spin_inner of.csv || [ $name = spin-api ] || fail "spin_inner in the profile of $name"
	grep -qE 'spin_inner|hearth' of.csv || fail "the profile of $name: $(head of.csv)"
done

before=$(curl -sf "$url/api/v1/values?label=comm&from=first&to=now&prefix=spin" | sed 's/.*"events":\([0-9]*\).*/\1/')
kill -INT "$hearth"
wait "$hearth" || fail "hearth ended with $?"

# Another process shows what was kept, with names; the ids of its tokens are asked for.
echo s3cret >token
start serve.out "$HEARTH" serve --store "$store" --http-address 127.0.0.1:0 --grpc-address off --token-file token
until_true 20 grep -q 'page at http' serve.out.err || fail "no page: $(cat serve.out.err)"
url=$(sed -n 's/.*page at \(http:[^ ]*\)\/.*/\1/p' serve.out.err)
after=$(curl -sf -u x:s3cret "$url/api/v1/values?label=comm&from=first&to=now&prefix=spin" | sed 's/.*"events":\([0-9]*\).*/\1/')
[ "$after" -ge "$before" ] || fail "$before events of spin-api were there, now $after"
curl -sf -u x:s3cret "$url/api/v1/top?from=first&to=now&query=\{comm=\"spin-api\"\}" | grep -q spin_inner || fail "names are gone"
[ "$(code "$url/api/v1/top")" = 401 ] || fail "no token is asked for"
[ "$(code -u x:wrong "$url/")" = 401 ] || fail "any token will do"
[ "$(code -H 'Authorization: Bearer s3cret' "$url/api/v1/top")" = 200 ] || fail "the token is refused"
[ "$(code -u x:s3cret -H 'Host: elsewhere.example' "$url/")" = 403 ] || fail "any name will do"
[ "$(code -u x:s3cret -H 'Origin: http://elsewhere.example' "$url/api/v1/top")" = 403 ] || fail "any origin will do"
[ "$(code -u x:s3cret -H 'Host: me.localhost:99' "$url/")" = 200 ] || fail "localhost is refused"
