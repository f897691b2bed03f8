#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Who may look, over every route and path that the program has, and every format: another user of this machine gets 403 with the cure
# from all that shows profiles; one who is allowed gets answers, and no address of the kernel in any; root does see them. With frames of
# the kernel that have names, some that have none, and spans.
. "$TOP/tests/system/lib.sh"
need_bpf
chmod 755 .
cp "$TOP/tests/system/who_may_look.py" look.py
chmod 755 look.py
formats=$("$HEARTH" help convert | tr -s ' \n' ' ' | sed -n 's/.*does not say it (\([^)]*\)).*/\1/p' | sed 's/ or /, /; s/, /,/g')
command -v zstd >/dev/null || formats=${formats/otlp.zst,/}

# run NAME OPTION...: until there is something to see; sets page, agent
run() {
	start "$1" "$HEARTH" run -F 199 --off-cpu -p "$watched" --http-address 127.0.0.1:0 --report-interval 200ms --store "$1.store" "${@:2}"
	agent=$started
	until_true 30 grep -q "profiles go to" "$1.err" || fail "no profiler: $(cat "$1.err")"
	page=$(sed -n 's/.*page at \(http:[^ ]*\)\/$/\1/p' "$1.err")
	python3 "$TOP/tests/system/bare_kernel.py" >bare.json
	[ "$(curl -s -o sent -w '%{http_code}' -H 'Content-Type: application/json' --data-binary @bare.json "$page/v1development/profiles")" = 200 ] || fail "not taken: $(cat sent)"
	[ "$(curl -s -o sent -w '%{http_code}' -H 'Content-Type: application/json' --data-binary @spans.json "$page/v1/traces")" = 200 ] || fail "no spans: $(cat sent)"
	sees() { curl -sf "$page/api/v1/export?format=perf-script&from=first&to=now&kind=samples" | grep -q 'leaf.*c_chain'; }
	until_true 20 sees || fail "nothing is stored: $(cat "$1.err")"
}
# look MODE USER
look() {
	setpriv --reuid "$2" --regid "$2" --clear-groups ./look.py "$TOP" "$page" "$formats" "$1" || fail "user $2, $1"
}
now=$(date +%s%N)
cat >spans.json <<END
{"resourceSpans": [{"resource": {}, "scopeSpans": [{"spans": [{"traceId": "00000000000000000000000000000001", "spanId": "0000000000000001",
 "name": "a span", "startTimeUnixNano": "$now", "endTimeUnixNano": "$((now + 1000000))"}]}]}]}
END

start busy "$TRUTH/c_chain" 170
watched=$started
start kernel dd if=/dev/zero of=/dev/null bs=1
watched+=,$started
run closed
look refused 65533
look seen 0
stop "$agent"
run allowed --http-allow-uid 65533
look seen 0
look hidden 65533
stop "$agent"
