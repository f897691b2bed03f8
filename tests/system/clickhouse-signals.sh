#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Spans, logs and exemplars beside profiles in ClickHouse: the same answers as from the file beside the store on disk; kept over a
# restart and while ClickHouse is away; removed.
. "$TOP/tests/system/lib.sh"
. "$TOP/tests/clickhouse/lib.sh"
need_clickhouse

python3 "$TOP/tests/system/signals.py" "$(date +%s.%N)" profiles.json traces.json logs.json metrics.json

# serve NAME OPTION...: its URL in $url, its pid in $server
serve() {
	start "$1.out" "$HEARTH" serve --http-address 127.0.0.1:0 --grpc-address off "${@:2}"
	server=$started
	until_true 20 grep -q 'page at http' "$1.out.err" || fail "no page: $(cat "$1.out.err")"
	url=$(sed -n 's/.*page at \(http:[^ ]*\)\/.*/\1/p' "$1.out.err")
}
post() {
	local path=v1/$1
	[ "$1" != profiles ] || path=v1development/profiles
	curl -sf -H 'Content-Type: application/json' --data-binary "@$1.json" "$url/$path" >reply || fail "$1: not taken: $(cat reply)"
}
kept() { curl -s "$url/metrics" | awk '/^hearth_signals_kept_total/ { n += $2 } END { print n + 0 }'; }
lost() { curl -s "$url/metrics" | awk '/^hearth_signals_lost_requests_total/ { n += $2 } END { print n + 0 }'; }
is_kept() { [ "$(kept)" = 84 ]; } # 60 spans, 4 log lines, 20 exemplars

serve disk --store kept
disk=$url
for signal in profiles traces logs metrics; do post $signal; done
until_true 20 is_kept || fail "kept $(kept)"

start_clickhouse
serve first --store "clickhouse+$clickhouse/db"
first=$server
for signal in profiles traces logs metrics; do post $signal; done
until_true 60 is_kept || fail "kept $(kept) in ClickHouse: $(cat first.out.err)"
[ "$(lost)" = 0 ] || fail "$(lost) requests lost"
[ "$(ask_clickhouse 'SELECT count() FROM db.hearth_spans')" = 60 ] || fail "$(ask_clickhouse 'SELECT count() FROM db.hearth_spans') spans are there"
verdict "answers differ" python3 "$TOP/tests/clickhouse/same_records.py" "$disk" "$url"
stop "$first"

serve second --store "clickhouse+$clickhouse/db" --signals-age 1h
verdict "answers differ after a restart" python3 "$TOP/tests/clickhouse/same_records.py" "$disk" "$url"

# Away for a moment: what comes meanwhile is kept afterwards.
port=${clickhouse##*:}
kill -KILL "$engine"
wait "$engine" 2>/dev/null || :
post logs
start_clickhouse "$port"
until_true 60 sh -c '[ "$(curl -s "$1/?default_format=TabSeparated" --data-binary "SELECT count() FROM db.hearth_logs")" = 8 ]' - "$clickhouse" ||
	fail "$(ask_clickhouse 'SELECT count() FROM db.hearth_logs') log lines are there: $(cat second.out.err)"
ask_clickhouse 'SHOW CREATE TABLE db.hearth_logs' | grep -q 'toIntervalSecond(3600)' || fail "the age is not as it was asked for"

curl -sf -X POST "$url/api/v1/clear" >reply || fail "not cleared: $(cat reply)"
[ "$(ask_clickhouse 'SELECT count() FROM db.hearth_spans')" = 0 ] || fail "spans are left"
stop "$server"
