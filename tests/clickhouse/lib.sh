# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# A real ClickHouse engine for a test, on loopback; sourced after tests/system/lib.sh.
chdb=${HEARTH_CHDB:-$(dirname "$HEARTH")/chdb/node_modules}

need_clickhouse() {
	[ -d "$chdb/chdb" ] || skip "no ClickHouse: 'make chdb' fetches one (550 MB, from npm)"
	command -v node >/dev/null || skip "no node, which ClickHouse's engine runs in"
}

# start_clickhouse [PORT]: sets $clickhouse, its URL, and $engine, its pid; what it keeps is in $PWD/clickhouse
start_clickhouse() {
	rm -f front.out # of one before
	start front.out node "$TOP/tests/clickhouse/front.js" "$chdb" "$PWD/clickhouse" "${1:-0}"
	engine=$started
	until_true 60 grep -q listening front.out || fail "no ClickHouse: $(cat front.out.err)"
	clickhouse=http://127.0.0.1:$(sed -n 's/listening on //p' front.out)
}

# ask_clickhouse SQL: the answer, tabs between columns
ask_clickhouse() {
	curl -sf "$clickhouse/?default_format=TabSeparated" --data-binary "$1"
}
