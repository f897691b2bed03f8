#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Foreign code in the process that listens (tests/hostile/foreign.c) finds nothing that it may do: after a magic request to the
# receiver, to the page, and in the answer of a collector. It cannot read /etc/shadow, open perf events, load BPF, touch the agent,
# write outside of the store, or connect elsewhere than where it was told to (Linux 6.7); sampling goes on, and hearth counts what it refused.
. "$TOP/tests/system/lib.sh"
need_bpf
unset HEARTH_ONE_PROCESS HEARTH_REFUSED_CALLS
command -v gcc >/dev/null || skip "no gcc here"
gcc -std=gnu17 -O1 -Wall -Werror -Wno-nonnull -D_GNU_SOURCE -shared -fPIC -U_FORTIFY_SOURCE -o foreign.so "$TOP/tests/hostile/foreign.c" -ldl
outside=$(mktemp -d) # that the half that listens could write to, if it may
chmod 777 "$outside"
trap 'rm -rf "$outside"; for pid in "${pids[@]}"; do kill -KILL "$pid" 2>/dev/null || :; done' EXIT

refusals=16 unguarded=
if [ "$(printf '%s\n' 6.7 "$(uname -r)" | sort -V | head -n 1)" != 6.7 ]; then
	refusals=15 unguarded='foreign: connect-elsewhere: WORKED'
	echo "left out: connections, which Landlock guards from Linux 6.7 on"
fi

# attack NAME OPTION...: hearth with the bug; sets agent, url
attack() {
	LD_PRELOAD=$PWD/foreign.so start "$1" "$HEARTH" run -F 99 --http-address 127.0.0.1:0 --report-interval 200ms --store "$PWD/store-$1" "${@:2}"
	agent=$started
	until_true 30 grep -q "profiles go to" "$1.err" || fail "no profiler: $(cat "$1.err")"
	url=$(sed -n 's/.*page at \(http:[^ ]*\)\/$/\1/p' "$1.err")
	magic="FOREIGN-CODE pid=$agent path=$outside/$1 "
}

# refused NAME: all of it was, in a process that is not the agent and not root
refused() {
	until_true 20 grep -q '^foreign: done' "$1.err" || fail "$1: the code did not run: $(cat "$1.err")"
	! grep '^foreign: .*WORKED' "$1.err" | grep -vx "$unguarded" || fail "$1: foreign code may do this"
	[ "$(grep -c '^foreign: .*: refused' "$1.err")" = "$refusals" ] || fail "$1: $(grep '^foreign' "$1.err")"
	! grep -qE "^foreign: done in process $agent |as user 0$" "$1.err" || fail "$1: it ran as: $(grep '^foreign: done' "$1.err")"
	[ ! -e "$outside/$1" ] || fail "$1: a file was written"
	kill -0 "$agent" || fail "$1: the agent has ended"
}

# counted NAME: refusals reach /metrics
counted() {
	curl -sf "$url/metrics" >"$1.metrics"
	[ "$(awk '/^hearth_refused_system_calls_total\{process="backend"\}/ { print $2 }' "$1.metrics")" -gt 5 ] ||
		fail "$1: $(grep refused "$1.metrics")"
}

attack page
curl -s "$url/api/v1/status" -H "X-Any: $magic" -o /dev/null || :
refused page
until_true 10 counted page || counted page
stop "$agent"
accounted page.err

attack receiver
curl -s "$url/v1development/profiles" -H 'Content-Type: application/json' -d "{\"resourceProfiles\":[],\"x\":\"$magic\"}" -o /dev/null || :
refused receiver
stop "$agent"

cat >collector.py <<'PY'
import http.server, sys
class H(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = open("magic", "rb").read()
        self.send_response(200)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *a): pass
s = http.server.ThreadingHTTPServer(("127.0.0.1", 0), H)
print(s.server_port, flush=True)
s.serve_forever()
PY
: >magic
start port python3 collector.py
until_true 10 test -s port
attack collector --collector "http://127.0.0.1:$(cat port)"
echo "$magic" >magic.new
mv magic.new magic
refused collector
stop "$agent"
echo "all as it should be"
