#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The cost of many pods: a real API server with 10,000 of them, 110 on the node. Memory of hearth without pods, with one and with
# all; how soon after the start, and after the list, the first sample has a name; processor time while pods change 100 times a second.
#   usage: tests/deploy/crowd.sh BUILD APISERVER [PODS [ON_NODE [RATE [SECONDS]]]]      by hand, on a machine that does nothing else
set -euo pipefail
build=$(realpath "${1:?usage: crowd.sh BUILD APISERVER [PODS [ON_NODE [RATE [SECONDS]]]]}")
server=$(realpath "${2:?usage: crowd.sh BUILD APISERVER}")
pods=${3:-10000} on_node=${4:-110} rate=${5:-100} seconds=${6:-60}
cd "$(dirname "$0")/../.."
. tests/deploy/api.sh
. tests/deploy/shop.sh
shop_begin crowd
port=16463
api_start "$server" "$work/api" $port || fail "no API server"
export KUBECONFIG=$kubeconfig
shop_container "$work"
shop_objects node-1
shop_token "$work/account"

# run NAME OPTION...: hearth of that container alone; sets hearth and, when it listens, metrics
run() {
	local name=$1
	shift
	env KUBERNETES_SERVICE_HOST=127.0.0.1 KUBERNETES_SERVICE_PORT=$port HEARTH_KUBE_ACCOUNT="$work/account" KUBERNETES_NODE_NAME=node-1 \
		"$build/hearth" run -F 19 -p "$pid" --report-interval 200ms --symbols off --store "$work/$name" --metrics-address 127.0.0.1:0 --http-address 127.0.0.1:0 "$@" \
		>"$work/$name.out" 2>"$work/$name.err" </dev/null &
	hearth=$!
	metrics=''
	for _ in $(seq 3000); do
		metrics=$(sed -n 's/.*listening on \(http:[^ ]*\) for .metrics alone.*/\1/p' "$work/$name.err")
		[ -z "$metrics" ] || break
		sleep 0.02
	done
	[ -n "$metrics" ] || fail "hearth does not start: $(cat "$work/$name.err")"
}
end() {
	kill -INT "$hearth"
	wait "$hearth" || fail "status $?"
	hearth=''
}
counter() { curl -fsS "$metrics/metrics" | awk -v name="$1" '$1 == name { print $2 }'; }
# The half without privileges, which asks Kubernetes.
half() {
	local keeper
	for keeper in $(pgrep -P "$hearth"); do
		pgrep -P "$keeper" -x hearth-backend || :
	done | head -n 1
}
# Memory of that half alone in kB: what it has written to, and the pages of files (libraries) besides that nobody else has mapped.
private() { awk '/^Private_Dirty/ { dirty += $2 } /^Private_Clean/ { clean += $2 } END { print dirty, clean }' "/proc/$(half)/smaps_rollup"; }
ticks() { awk '{ print $14 + $15 }' "/proc/$(half)/stat"; } # of its processor time

memory() {
	sleep 10
	private
}
run without --enrich none
without=$(memory)
end
shop_pod cart-5d9-abcde
run one --enrich pods
one=$(memory)
end
python3 tests/deploy/crowd.py "$api_url" make "$pods" node-1 $((on_node - 1))

# --- the first names, as /metrics tells each 10 ms ---
run all --enrich pods
python3 - "$metrics/metrics" "$(date +%s.%N)" <<'END'
import re, sys, time, urllib.request
begin = last = float(sys.argv[2])
listed = None
while time.time() < begin + 120:
    text = urllib.request.urlopen(sys.argv[1]).read().decode()
    now = time.time()
    value = lambda name: float((re.findall("^" + re.escape(name) + r" (\S+)", text, re.M) or ["0"])[0])
    if listed is None and value("hearth_kube_synced"):
        listed = last
    last = now
    if value('hearth_enrich_samples_total{found="pod"}'):
        print(f"first names at most {now - listed:.2f} s after the list, {now - begin:.2f} s after hearth listened")
        break
    time.sleep(0.01)
else:
    sys.exit("no names")
END
all=$(memory)
echo "memory, kB written to and kB of files: $without without pods, $one with one pod, $all with $(counter hearth_kube_pods)"
echo "more than without: $((${all% *} - ${without% *})) kB; more than with one: $((${all% *} - ${one% *})) kB; $(counter 'hearth_memory_bytes{part="pods"}') bytes of pods"

# --- changes ---
hertz=$(getconf CLK_TCK)
# cost WHAT COMMAND...: for SECONDS, in thousandths of a CPU
cost() {
	local before
	before=$(ticks)
	"${@:2}"
	echo "$1: $((($(ticks) - before) * 1000 / hertz / seconds)) thousandths of a CPU"
}
cost "at rest" sleep "$seconds"
events=$(counter hearth_kube_events_total)
cost "$rate changes a second" python3 tests/deploy/crowd.py "$api_url" change $((on_node - 1)) "$rate" "$seconds"
echo "events: $((($(counter hearth_kube_events_total) - events) / seconds)) a second; memory then: $(private)"
end
