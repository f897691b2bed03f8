#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A store in ClickHouse: answers as the one on disk gives them; what was sent twice is there once; nothing is lost while it is away,
# also over a restart; tables of a newer hearth are refused.
. "$TOP/tests/system/lib.sh"
. "$TOP/tests/clickhouse/lib.sh"
need_bpf
need_clickhouse

# serve NAME OPTION...: its URL in $url, its pid in $server
serve() {
	start "$1.out" "$HEARTH" serve --http-address 127.0.0.1:0 --grpc-address off "${@:2}"
	server=$started
	until_true 20 grep -q 'page at http' "$1.out.err" || fail "no page: $(cat "$1.out.err")"
	url=$(sed -n 's/.*page at \(http:[^ ]*\)\/.*/\1/p' "$1.out.err")
}
post() { curl -sf -o post.out -H 'Content-Type: application/x-protobuf' --data-binary "@$1" "$2/v1development/profiles"; }
events() { ask_clickhouse 'SELECT count() FROM db.hearth_samples'; }
metric() { curl -sf "$url/metrics" | awk -v name="$1" '$1 == name { print $2 }'; }

cat >threads.c <<'END'
#define _GNU_SOURCE
#include <pthread.h>
#include <unistd.h>
volatile unsigned long sink;
__attribute__((noinline)) static void spin_inner(void) { for (int i = 0; i < 10000; i++) sink += i; }
__attribute__((noinline)) static void spin_outer(void) { spin_inner(); __asm__ volatile(""); }
static void *spin(void *arg) { for (;;) { spin_outer(); for (int i = 0; arg && i < 100; i++) getppid(); } }
int main(void) { pthread_t t; pthread_create(&t, NULL, spin, NULL); pthread_setname_np(t, "named"); spin(""); }
END
gcc -O1 -g -static -o threads threads.c -lpthread
strip -o bare threads
start threads.out ./threads
threads=$started
start bare.out ./bare
bare=$started
"$HEARTH" record -q -d 2 -F 199 -p "$threads,$bare" --drain-timeout 60s -o one.otlp
"$HEARTH" record -q -d 1 -F 199 -p "$threads" --drain-timeout 60s -o two.otlp
kill "$threads" "$bare"
samples() { "$HEARTH" convert "$1" count.folded 2>/dev/null && awk '{ n += $NF } END { print n }' count.folded; }
one=$(samples one.otlp) two=$(samples two.otlp)

# The first answers are lost on their way (libcurl tries again by itself, once): what was inserted is sent again, and is there once.
export FRONT_LOSE=3
start_clickhouse
port=${clickhouse##*:}
unset FRONT_LOSE
serve first --sink "clickhouse=$clickhouse/db"
first=$server
post one.otlp "$url" || fail "not taken: $(cat first.out.err)"
[ "$(metric hearth_store_commit_errors_total)" -ge 1 ] || fail "no answer was lost: $(cat first.out.err)"
[ "$(events)" = "$one" ] || fail "$one samples were sent twice, $(events) are there"

# The same questions, the same answers.
in_clickhouse=$url
serve disk --store store
post one.otlp "$url"
last=$(curl -sf "$url/api/v1/status" | sed 's/.*"last":\([0-9.]*\).*/\1/')
r="from=first&to=$(awk "BEGIN { printf \"%.6f\", $last + 1 }")"
n=max_nodes=200000
l=limit=100000
half=$(awk "BEGIN { printf \"%.6f\", $last - 1 }")
questions=(
	"flamegraph?$r&$n" "flamegraph?$r&$n&by=comm&lines=1" "flamegraph?$r&$n&by=cpu&inline=0" "flamegraph?$r&$n&focus=spin_outer&ignore=getppid"
	"flamegraph?from=$half&to=$last&$n" "top?$r&$l&by=tid&strip=3" "timeline?$r&by=comm&points=7" "timeline?$r&points=7&focus=getppid&by=cpu"
	"heatmap?$r&columns=7&rows=3" "labels?$r" "values?$r&label=tid" "values?$r&label=comm&focus=getppid" "values?$r&label=cpu"
	"values?$r&label=nothing" "values?$r&label=otel.scope.name" "series?$r" "executables?$r" "truth?$r"
	"top?$r&$l&query={comm=~\"[t-z].*\",cpu=\"0\"}" "top?$r&$l&query={comm!=\"hearth\",tid!~\".*[02468]\"}" "values?$r&label=comm&query={nothing=\"\"}"
	"values?$r&label=comm&query={hearth.stack.truncated!=\"\"}" "values?$r&label=comm&query={nothing!=\"\"}" "sandwich?$r&function=main"
	"values?$r&label=comm&query={comm!=\"a\\\\\`'\\\"b\"}" "diff?$r&from2=$half&$n&query={comm!=\"threads\"}&query2={}" "flamegraph?$r&kind=other"
	"values?$r&label=exe" "values?$r&label=exe&query={comm=\"threads\"}" "values?$r&label=comm&query={exe=\"threads\"}"
	"values?$r&label=comm&query={comm=\"named\"}" "values?$r&label=comm&query={comm!=\"named\"}" "values?$r&label=comm&query={comm=\"\"}"
	"values?$r&label=comm&query={comm!=\"\"}" "values?$r&label=comm&query={comm=~\"|nam.*\"}" "values?$r&label=comm&query={comm!~\".*e.*d.*\"}"
	"diff?$r&from2=$half&$n&noise=1" "diff?$r&from2=$half&$l&format=top&noise=1&query={exe=\"threads\"}&query2={exe=\"bare\"}"
	"top?$r&$l&query={exe=\"bare\"}" "flamegraph?$r&$n&by=exe" "top?$r&$l&by=exe" "tree?$r&$n"
	"timeline?from=$(awk "BEGIN { print $half - 86400 }")&to=$last" "values?$r&label=exe&focus=spin"
	"diff?$r&from2=$half&$l&format=top" "export?$r&format=folded&query={comm=\"threads\"}" "export?$r&format=folded&focus=getppid"
)
python3 "$TOP/tests/clickhouse/same.py" "$url" "$in_clickhouse" "${questions[@]/#//api/v1/}" || fail "answers are not the same"
# Code without a name is shown by its function's range, which came as an attribute.
curl -sf -G "$in_clickhouse/api/v1/top" -d from=first -d to=last --data-urlencode 'query={exe="bare"}' | grep -qE '"bare\+0x[0-9a-f]+\.\.0x[0-9a-f]+"' ||
	fail "no ranges of unnamed code: $(curl -s -G "$in_clickhouse/api/v1/top" -d from=first -d to=last --data-urlencode 'query={exe="bare"}')"
stop "$server"
url=$in_clickhouse

# It goes away: what comes is acknowledged once it is on disk, and sent when it is back; also by the next process.
kill "$first"
serve second --sink "clickhouse=$clickhouse/db" --spool spool
kill -KILL "$engine"
wait "$engine" 2>/dev/null || :
post two.otlp "$url" || fail "not taken although there is a spool: $(cat second.out.err)"
[ "$(metric hearth_store_spooled_events_total)" = "$two" ] || fail "$two samples, $(metric hearth_store_spooled_events_total) in the spool, $(metric hearth_store_events_total) sent: $(cat second.out.err)"
stop "$server"
start_clickhouse "$port"
[ "$(events)" = "$one" ] || fail "what ClickHouse had is not what it has: $(events)"
serve third --sink "clickhouse=$clickhouse/db" --spool spool
arrived() { [ "$(events)" = $((one + two)) ]; }
until_true 30 arrived || fail "$((one + two)) samples were sent, $(events) are there: $(cat third.out.err)"
[ "$(metric 'hearth_spool_samples{store="clickhouse"}')" = 0 ] || fail "the spool is not empty"
curl -sf "$url/api/v1/top?from=first&to=now" | grep -q '"rows":\[{"name"' || fail "nothing is shown"
"$HEARTH" store info --store "clickhouse+$clickhouse/db" >info.out
grep -q "^samples $((one + two))$" info.out || fail "store info: $(cat info.out)"

# All goes over HTTP where the user may empty tables; what comes afterwards is kept.
clear_status() { curl -s -o answer -w '%{http_code}' -X POST "$url/api/v1/clear"; }
touch clickhouse/readonly
[ "$(clear_status)" = 409 ] && grep -q 'readonly mode.*look at the user in the address' answer || fail "who may not empty tables: $(cat answer)"
[ "$(events)" = $((one + two)) ] || fail "$(events) samples are left"
rm clickhouse/readonly
[ "$(clear_status)" = 200 ] && grep -q "{\"cleared\":$((one + two))}" answer || fail "not cleared: $(cat answer)"
[ "$(events)" = 0 ] || fail "$(events) samples are left"
curl -sf "$url/api/v1/top?from=first&to=now" | grep -q '"rows":\[\]' || fail "rows of nothing: $(curl -s "$url/api/v1/top?from=first&to=now")"
post two.otlp "$url" || fail "not taken after it was cleared: $(cat third.out.err)"
until_true 20 eval '[ "$(events)" = "$two" ]' || fail "$(events) samples came after it was cleared, not $two"
curl -sf "$url/api/v1/top?from=first&to=now" | grep -q spin_inner || fail "names of what came after it was cleared are gone"
stop "$server"

# A newer hearth's tables, and places where there is nothing.
ask_clickhouse 'INSERT INTO db.hearth_schema SELECT 99, 1, now64(3) + 1' || fail "no newer version"
! "$HEARTH" serve --sink "clickhouse=$clickhouse/db" --http-address 127.0.0.1:0 --grpc-address off 2>newer.err || fail "newer tables are used"
grep -q 'was written by a newer hearth' newer.err || fail "not refused politely: $(cat newer.err)"
! "$HEARTH" store info --store "clickhouse+$clickhouse/none" 2>none.err || fail "there is something in nothing"
grep -q 'nothing there yet' none.err || fail "not said: $(cat none.err)"
! "$HEARTH" serve --sink clickhouse=ftp://x 2>wrong.err || fail "any address will do"
grep -q 'no address of ClickHouse' wrong.err || fail "not said: $(cat wrong.err)"
