#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# hearth's own profile at --pprof-address and by a Collector's pprof extension: with a store, with nothing but a collector, with nothing
# kept at all, as two halves and as one process. All samples are of hearth's own processes, as /proc has them and protobuf's own decoder
# the profile; go tool pprof reads it; nothing else is at that address; who may look is as with the page.
. "$TOP/tests/system/lib.sh"
need_bpf
chmod 755 .

# get STATUS CURL-OPTION... URL
get() {
	local got
	got=$(curl -s -o answer -w '%{http_code}' "${@:2}") || :
	[ "$got" = "$1" ] || fail "${*:2}: status $got, not $1: $(head -c 300 answer)"
}

# hearth NAME ARG...: in the background, until it samples; sets own, where its profile is, and agent
hearth() {
	start "$1" "$HEARTH" "${@:2}"
	agent=$started
	until_true 30 grep -q 'sampling\|profiles go to' "$1.err" || fail "does not sample: $(cat "$1.err")"
	own=$(sed -n "s/.*listening on \(https\?:[^ ]*\) for hearth's own profile.*/\1/p" "$1.err" | sed 's/0\.0\.0\.0/127.0.0.1/')
	[ -n "$own" ] || fail "no address: $(cat "$1.err")"
}

# family PID: it and all that descends from it
family() {
	local child
	echo "$1"
	for child in $(cat "/proc/$1/task/"*/children 2>/dev/null); do
		family "$child"
	done
}

# A second hearth, whose samples are not to be in the profile of the first, and work for both: code that nobody has seen yet, and
# processes that come and go.
start load bash -c 'while :; do /bin/true; sleep 0.02; done'
start other "$HEARTH" run -F 199 --sink null
other=$started

# profiled NAME SECONDS CURL-OPTION...: the profile of SECONDS is of hearth's own processes alone, the agent's among them
profiled() {
	rm -f family.out others came
	(
		while [ ! -e came ]; do
			family "$agent" >>family.out
			family "$other" >>others
			sleep 0.2
		done
	) &
	pids+=("$!")
	local watcher=$!
	curl -sf -m 60 -o own.pb.gz "${@:3}" "$own/debug/pprof/profile?seconds=$2" || fail "$1: no profile: $(cat ./*.err)"
	touch came
	wait "$watcher" || :
	sort -u family.out >family
	echo "$1:"
	verdict "$1: not hearth's own profile" python3 "$TOP/tests/system/pprof_own.py" own.pb.gz "$agent" family others
}

# leave: ends a hearth whose collector never took anything, which it says by its exit status
leave() {
	kill -INT "$agent" 2>/dev/null || fail "hearth ended before: $(cat ./*.err)"
	wait "$agent" || :
}

# nothing_else CURL-OPTION...
nothing_else() {
	local path
	get 200 "$@" "$own/debug/pprof/"
	grep -q '/debug/pprof/profile?seconds=N' answer || fail "no list: $(cat answer)"
	get 200 "$@" "$own/debug/pprof/symbol"
	get 200 "$@" "$own/debug/pprof/cmdline"
	for path in / /metrics /healthz /readyz /api/v1/status /api/v1/top /page/app.js /login /pprof/profile /workloads /v1/profiles \
		/debug/pprof/heap /debug/pprof/goroutine /debug/pprof/allocs /debug/pprof/trace; do
		get 404 "$@" "$own$path"
		grep -q '/debug/pprof/profile' answer || fail "$path does not say what is there: $(cat answer)"
	done
	get 400 "$@" "$own/debug/pprof/profile?query=%7B%7D"
	get 400 "$@" "$own/debug/pprof/profile?seconds=3601"
}

# --- without a store: what passes ---
hearth sent run -F 999 --collector http://127.0.0.1:1 --drain-timeout 1s --pprof-address 127.0.0.1:0 --report-interval 500ms
nothing_else
profiled sent 2
if command -v go >/dev/null; then
	HOME=$PWD go tool pprof -top "$own/debug/pprof/profile?seconds=1" >top.txt 2>top.err || fail "go tool pprof: $(cat top.err)"
	grep -q '^Showing nodes' top.txt && grep -q '^Type: cpu' top.txt || fail "go tool pprof shows none: $(head top.txt)"
	sed -n '1,12p' top.txt
else
	left_out go "no go here"
fi
# Two at once; and one whose client goes away.
curl -s -m 1 -o gone "$own/debug/pprof/profile?seconds=60" || :
curl -sf -m 30 -o both.1 "$own/debug/pprof/profile?seconds=2" &
curl -sf -m 30 -o both.2 "$own/debug/pprof/profile?seconds=1" || fail "not two at once"
wait $! || fail "not two at once"
[ -s both.1 ] && [ -s both.2 ] || fail "one of two is empty"
# Another user of this machine may not look.
if command -v setpriv >/dev/null; then
	[ "$(setpriv --reuid 65533 --regid 65533 --clear-groups curl -s -o refused -w '%{http_code}' "$own/debug/pprof/profile?seconds=1")" = 403 ] || fail "another user may look"
fi
# A backend that dies has the same port again.
if backend=$(pgrep -x hearth-backend -P "$(pgrep -x hearth-keeper -P "$agent")"); then
	kill -KILL "$backend"
	until_true 20 curl -sf -o answer "$own/debug/pprof/" || fail "another backend is not at $own"
	profiled restarted 2
fi
leave

# --- nothing kept, long intervals: the end of the window ends one ---
hearth printed run -F 999 --sink null --pprof-address 127.0.0.1:0 --report-interval 20s
profiled printed 2
! grep -q 'channel' printed.err || fail "says: $(cat printed.err)"
stop "$agent"

# --- with a store, whose page is elsewhere ---
hearth stored run -F 999 --store :memory: --http-address 127.0.0.1:0 --pprof-address 127.0.0.1:0 --report-interval 500ms
nothing_else
profiled stored 2
page=$(sed -n 's/.*page at \(http:[^ ]*\)\/$/\1/p' stored.err)
[ -n "$page" ] && get 200 "$page/api/v1/status"
stop "$agent"

# --- as one process ---
hearth one run --one-process -F 999 --sink null --pprof-address 127.0.0.1:0 --report-interval 500ms
nothing_else
profiled one 2
stop "$agent"
hearth one-stored run --one-process -F 999 --store :memory: --http-address off --pprof-address 127.0.0.1:0 --report-interval 500ms
profiled one-stored 2
! grep -q 'page at' one-stored.err || fail "a page: $(cat one-stored.err)"
stop "$agent"

# --- a Collector's file ---
# file EXPORTERS ENDPOINT
file() {
	cat >c.yaml <<-END
		receivers: { profiling: { samples_per_second: 997, report_interval: 500ms } }
		exporters: { nop: {}, debug: {}, otlp: { endpoint: "127.0.0.1:1", tls: { insecure: true } } }
		extensions: { pprof: { endpoint: "$2" } }
		service: { extensions: [pprof], pipelines: { profiles: { receivers: [profiling], exporters: [$1] } } }
	END
}
file otlp localhost:0
hearth otlp run --drain-timeout 1s --config c.yaml
! grep -q "'pprof' has no effect" otlp.err || fail "says: $(cat otlp.err)"
profiled otlp 2
leave
# From everywhere: with a token alone.
(umask 077 && echo open-sesame >token)
file nop :0
hearth guarded run --config c.yaml --token-file token
get 401 "$own/debug/pprof/profile?seconds=1"
nothing_else -H 'Authorization: Bearer open-sesame'
profiled guarded 2 -u x:open-sesame
stop "$agent"

# --- nothing is sampled ---
start served "$HEARTH" serve --sink null --http-address 127.0.0.1:0 --grpc-address off --pprof-address 127.0.0.1:0
until_true 10 grep -q "for hearth's own profile" served.err || fail "no address: $(cat served.err)"
own=$(sed -n "s/.*listening on \(http:[^ ]*\) for hearth's own profile.*/\1/p" served.err)
grep -q 'warning: .*samples nothing' served.err || fail "does not warn: $(cat served.err)"
nothing_else
get 404 "$own/debug/pprof/profile?seconds=1"
grep -q "ask a 'hearth run'" answer || fail "does not say what to do: $(cat answer)"
stop "$started"

# --- a port that is taken ---
status=0
timeout 20 "$HEARTH" run --sink null --pprof-address 127.0.0.1:22222222 >port.out 2>&1 || status=$?
[ $status != 0 ] && [ $status != 124 ] || fail "takes any port: $(cat port.out)"
