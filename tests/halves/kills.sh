#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Ends either half by SIGKILL, under load, N times each. Nothing that was acknowledged is lost, neither of what is sampled nor of what
# others send; sampling goes on: a backend that dies is started anew, an agent that dies by whoever runs hearth, here at once and on
# the same port; the store stays whole. By hand: make kills KILLS=30; tests/system/kills.sh has two each.
#   kills.sh BUILD [N]
build=$(readlink -f "${1:?usage: kills.sh BUILD [N]}")
kills=${2:-30}
unset HEARTH_ONE_PROCESS SUDO_USER SUDO_UID SUDO_GID
. "$(dirname "$0")/../by-hand.sh"
export HEARTH_SYMBOL_CACHE=${HEARTH_SYMBOL_CACHE:-$here/symbols}
need_bpf
port=$(python3 -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])')
page=http://127.0.0.1:$port

# run NAME: until it samples; sets agent, keeper
run() {
	start "$1" "$HEARTH" run -F 499 --off-cpu --http-address "127.0.0.1:$port" --report-interval 100ms --store store "${@:2}"
	agent=$started
	until_true 60 grep -q "profiles go to" "$1.err" || fail "no profiler: $(cat "$1.err")"
	keeper=$(pgrep -P "$agent" -x hearth-keeper) || fail "no second half: $(cat "$1.err")"
}

# stored: how many samples are in the store, as the page says
stored() {
	curl -sf "$page/api/v1/status" | python3 -c 'import json, sys; print(json.load(sys.stdin)["store"]["events"])'
}

# more THAN: whether there are more than that
more() {
	local now
	now=$(stored) && [ "$now" -gt "$1" ]
}

# answered QUERY: an answer into the file answer. Beside this load a question about all of it may take longer than the page allows
answered() {
	[ "$(curl -sG "$page/api/v1/top?from=first&to=now&kind=samples" --data-urlencode "query=$1" -o answer -w '%{http_code}')" = 200 ]
}

# ask QUERY: how many samples it has, of the first kind
ask() {
	local start=$SECONDS
	until_true 300 answered "$1" || fail "no answer to $1: $(head -c 300 answer)" >&2
	[ $((SECONDS - start)) -lt 3 ] || echo "an answer took $((SECONDS - start)) s" >&2
	python3 -c 'import json; print(json.load(open("answer"))["events"])'
}

# sender_starts, sender_ends: sends to the page's port; what was acknowledged is there, once
sender_starts() {
	acknowledged=acknowledged$1
	sent_before=$2
	start sender python3 "$TOP/tests/halves/sender.py" "$port" "$acknowledged"
	sender=$started
}
sender_ends() {
	local taken sent there
	kill "$sender" && wait "$sender" || :
	read -r taken sent <"$acknowledged"
	there=$(($(ask '{service.name="sender"}') - sent_before))
	echo "a sender's: $taken of $sent samples acknowledged, $there stored"
	[ "$taken" -gt 0 ] && [ "$there" -ge "$taken" ] && [ "$there" -le "$sent" ] || fail "acknowledged $taken, sent $sent, stored $there"
}

# whole: the store says so
whole() {
	"$HEARTH" store verify --store store >verified 2>&1 || fail "the store is damaged: $(cat verified)"
}

for _ in 1 2; do
	start load "$TRUTH/c_chain" 3600
done

# --- the backend ---
run backends
sender_starts 1 0
for ((i = 1; i <= kills; i++)); do
	before=$(stored) || fail "no answer before kill $i"
	victim=$(pgrep -P "$keeper" -x hearth-backend) || fail "no backend before kill $i: $(cat backends.err)"
	sleep "0.$((RANDOM % 10))"
	kill -KILL "$victim"
	until_true 60 more "$before" || fail "kill $i of the backend: nothing comes after it: $(tail -n 5 backends.err)"
done
sender_ends
others=$(ask '{service.name="sender"}')
said() {
	[ "$(grep -c 'process [0-9]*) was ended by signal 9.*started again in' backends.err)" = "$kills" ]
}
until_true 10 said || fail "its deaths are not said: $(cat backends.err)"
# counted: the agent tells its counters to a new backend with the next report
counted() {
	curl -sf "$page/metrics" >metrics
	[ "$(awk '$1 == "hearth_backend_restarts_total" { print $2 }' metrics)" = "$kills" ]
}
until_true 10 counted || fail "deaths are not counted: $(grep restarts metrics)"
! grep '^hearth_refused_system_calls_total.* [1-9]' metrics || fail "a system call was refused: $(cat backends.err)"
stop "$agent"
accounted backends.err
whole
events=$("$HEARTH" store info --store store | awk '/^ *samples/ { print $2 }')
delivered=$(count delivered backends.err)
# what did not wait for the next backend, as 64 MB did already; it is told
dropped=$(grep -o '; [0-9]* dropped by a sink (reason="queue full")' backends.err | awk '{ n += $2 } END { print n + 0 }')
twice=$((events - others - delivered + dropped))
echo "$kills times the backend: $delivered samples delivered, $dropped dropped of a full queue, $((events - others)) stored"
# messages that were committed when it died, but not acknowledged yet, are stored twice: docs/halves.md
[ "$twice" -ge 0 ] || fail "$((-twice)) samples are lost"
[ "$twice" -le $((delivered / 10)) ] || fail "$twice samples are stored twice"

# --- the agent, and at once the next one ---
before=$events
for ((i = 1; i <= kills + 1; i++)); do
	run "agent$i"
	[ $i != 1 ] || sender_starts 2 "$others"
	until_true 60 more "$before" || fail "life $i: nothing comes: $(cat "agent$i.err")"
	[ $i -le "$kills" ] || break
	sleep "0.$((RANDOM % 10))"
	before=$(stored) || fail "no answer before kill $i of the agent"
	kill -KILL "$agent"
done
sender_ends
stop "$agent"
whole
for ((i = 1; i <= kills; i++)); do
	grep -q 'the half of hearth that samples has ended.*start it again' "agent$i.err" || fail "death $i is not said: $(cat "agent$i.err")"
done
gone() {
	! pgrep -g 0 -x hearth-keeper && ! pgrep -g 0 -x hearth-backend
}
until_true 20 gone || fail "a half outlives its agent"
echo "$kills times the agent: $("$HEARTH" store info --store store | awk '/^ *samples/ { print $2 }') samples at the end"

# --- a collector that does not answer, and its spool: the next hearth does not wait for the whole of --drain-timeout ---
run away --collector http://127.0.0.1:1 --spool spool --drain-timeout 60s
sleep 0.5
kill -KILL "$agent"
run again --collector http://127.0.0.1:1 --spool spool --drain-timeout 1s
kill -INT "$agent"
wait "$agent" || : # what waits for that collector is not delivered
whole
