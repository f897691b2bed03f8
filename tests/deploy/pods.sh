#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Pods by a real API server: a real container of podman's stands in a pod's status; hearth asks as the manifests' own service account, with
# the manifests' own rights. Then the watch is cut, the token is replaced, and the API server is taken away and comes back with a history that
# begins later; after each a pod that is made must become known.
#   usage: tests/deploy/pods.sh BUILD APISERVER      APISERVER: a folder with kube-apiserver
set -euo pipefail
build=$(realpath "${1:?usage: pods.sh BUILD APISERVER}")
server=$(realpath "${2:?usage: pods.sh BUILD APISERVER}")
cd "$(dirname "$0")/../.."
. tests/deploy/api.sh
. tests/deploy/shop.sh
shop_begin pods
until_true() {
	local end=$((SECONDS + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.2
	done
}
port=16453
api_start "$server" "$work/api" $port || fail "no API server"
export KUBECONFIG=$kubeconfig

# --- a container, its pod, with a Deployment above it; and hearth's account, as the manifests have it ---
shop_container "$work"
shop_objects node-1
shop_pod cart-5d9-abcde
account=$work/account
shop_token "$account"

# --- a way to the API server that can be cut ---
mkfifo "$work/orders"
python3 tests/deploy/relay.py $port <"$work/orders" >"$work/relay" 2>"$work/relay.err" &
relay=$!
exec 9>"$work/orders"
until_true 10 grep -q '^port' "$work/relay" || fail "the relay does not start: $(cat "$work/relay.err")"
# order WORD: prints how many connections were cut
order() {
	local lines
	lines=$(wc -l <"$work/relay")
	echo "$1" >&9
	until_true 10 answered "$lines" || return
	tail -n 1 "$work/relay" | cut -d ' ' -f 2
}
answered() { [ "$(wc -l <"$work/relay")" -gt "$1" ]; }

# --- hearth, with a Collector's file, a store and a page ---
cat >"$work/config.yaml" <<END
receivers: { profiling: { samples_per_second: 99, report_interval: 300ms, symbols: "off", pid: $pid } }
processors:
  k8sattributes:
    wait_for_metadata: true
    filter: { node_from_env_var: KUBERNETES_NODE_NAME }
    extract: { labels: [{ from: pod, key: tier }, { from: pod, key: tier, tag_name: my.tier }, { from: namespace, key: team }], otel_annotations: true }
exporters: { store: { folder: $work/store } }
service: { telemetry: { metrics: { address: "127.0.0.1:0" } }, pipelines: { profiles: { receivers: [profiling], processors: [k8sattributes], exporters: [store] } } }
END
env KUBERNETES_SERVICE_HOST=127.0.0.1 KUBERNETES_SERVICE_PORT="$(sed -n 's/^port //p' "$work/relay")" HEARTH_KUBE_ACCOUNT="$account" KUBERNETES_NODE_NAME=node-1 \
	"$build/hearth" run --config "$work/config.yaml" >"$work/out" 2>"$work/err" </dev/null &
hearth=$!
until_true 60 grep -q 'page at' "$work/err" || fail "hearth does not start: $(cat "$work/err")"
url=$(sed -n 's/.*page at \(http:[^ ]*\)\/$/\1/p' "$work/err")
metrics=$(sed -n 's/.*listening on \(http:[^ ]*\) for .metrics alone.*/\1/p' "$work/err")/metrics
value_of() { curl -fsS -G "$url/api/v1/values" -d "label=$1" -d 'query={}' | python3 -c 'import json, sys; print(*sorted(v["value"] for v in json.load(sys.stdin)["values"]))'; }
says() { [[ " $(value_of "$1") " = *" $2 "* ]]; }
counter() { curl -fsS "$metrics" | awk -v name="$1" '$1 == name { print $2 }'; }
for pair in container.id="$id" k8s.pod.name=cart-5d9-abcde k8s.container.name=app k8s.deployment.name=cart k8s.namespace.name=shop k8s.node.name=node-1 \
	k8s.cluster.uid="$(kubectl get namespace kube-system -o 'jsonpath={.metadata.uid}')" container.image.name=cart container.image.tag=7 service.name=cart \
	service.namespace=shop service.instance.id=shop.cart-5d9-abcde.app k8s.pod.labels.tier=back my.tier=back \
	k8s.namespace.labels.team=blue deployment.environment.name=staging; do
	until_true 20 says "${pair%%=*}" "${pair#*=}" || fail "${pair%%=*} is $(value_of "${pair%%=*}"), not ${pair#*=}: $(cat "$work/err")"
done

# grouped_by LABEL VALUE: graph, table and timeline of the page have all samples below that value, and no other
grouped_by() {
	local what
	for what in tree 'top?limit=1000' 'timeline?limit=1000'; do
		curl -fsS -G "$url/api/v1/$what" -d "by=$1" -d 'query={}' >"$work/${what%%\?*}.json" || return
	done
	python3 - "$2" "$work"/{tree,top,timeline}.json <<-'END'
		import json, sys
		tree, top, timeline = (json.load(open(name)) for name in sys.argv[2:])
		of_tree = {c["name"]: c["total"] for c in tree["children"]}
		of_time = {s["value"]: s["total"] for s in timeline["series"]}
		of_top = {}
		for row in top["rows"]:
		    of_top[row["value"]] = of_top.get(row["value"], 0) + row["self"]
		told = [(of_tree, tree["total"]), (of_top, top["total"]), (of_time, timeline["total"])]
		if any(whole <= 0 or groups != {sys.argv[1]: whole} for groups, whole in told):
		    sys.exit(f"by {sys.argv[1]}: {told}")
	END
}
for pair in k8s.pod.name=cart-5d9-abcde k8s.namespace.name=shop k8s.deployment.name=cart; do
	grouped_by "${pair%%=*}" "${pair#*=}" || fail "not grouped by ${pair%%=*}"
done
echo "ok pod, container, Deployment, namespace, and grouped by them: $(value_of k8s.pod.name)"
[ "$(counter hearth_kube_pods)" = 1 ] || fail "pods: $(counter hearth_kube_pods)"

# next_pod NAME: the container's pod goes, and another one has it
at=cart-5d9-abcde
next_pod() {
	kubectl -n shop delete pod "$at" --grace-period=0 --force >/dev/null 2>&1
	shop_pod "$1"
	at=$1
}
seen() { until_true "$1" says k8s.pod.name "$at" || fail "the pod $at is not seen: $(value_of k8s.pod.name): $(cat "$work/err")"; }
lists() { counter 'hearth_kube_requests_total{verb="list"}'; }
ends() { counter hearth_kube_watch_ends_total; }
named() { counter 'hearth_enrich_samples_total{found="pod"}'; }
more_than() { [ "$("$1" "${@:3}")" -gt "$2" ]; } # COMMAND NUMBER [ARGUMENT...]
still_named() { until_true 10 more_than named "$(named)" || fail "samples are not named $1"; }

# --- the watch is cut: it goes on from where it ended, without a list ---
lists=$(lists) ends=$(ends)
[ "$lists" -ge 1 ] || fail "no list was counted"
[ "$(order cut)" -ge 1 ] || fail "there was no connection to cut"
until_true 10 more_than ends "$ends" || fail "hearth does not notice that its watch is cut"
next_pod cart-5d9-bbbbb
seen 30
echo "ok the watch cut: $at"
# ... and while it is cut, pods come and go
ends=$(ends)
[ "$(order close)" -ge 1 ] || fail "the watch did not begin anew"
until_true 10 more_than ends "$ends" || fail "hearth does not notice that its watch is cut"
next_pod cart-5d9-ccccc
still_named "while there is no way to the server"
! says k8s.pod.name "$at" || fail "$at is known although there was no way to the server"
order open >/dev/null
seen 40
[ "$(lists)" = "$lists" ] || fail "it listed again, although the watch could go on: $(lists), $lists before"
echo "ok pods changed while it was cut: $at, without another list"

# --- the token is replaced, and the old one's account is no more: 401 until the kubelet has written the new one ---
failed() { counter "hearth_kube_errors_total{reason=\"$1\"}"; }
status_of_token() { curl -sk -o /dev/null -w '%{http_code}' -H "Authorization: Bearer $(cat "$account/token")" "$api_url/api/v1/pods?fieldSelector=spec.nodeName%3Dnode-1"; }
refused() { [ "$(status_of_token)" = 401 ]; }
[ "$(status_of_token)" = 200 ] || fail "the account's token does not count: $(status_of_token)"
kubectl -n hearth delete serviceaccount hearth >/dev/null
kubectl -n hearth create serviceaccount hearth >/dev/null
until_true 60 refused || fail "the old token still counts"
before=$(failed 401)
order cut >/dev/null
until_true 40 more_than failed "$before" 401 || fail "no 401: $(cat "$work/err")"
next_pod cart-5d9-ddddd
still_named "while the token does not count"
! says k8s.pod.name "$at" || fail "$at is known although the token does not count"
shop_token "$account"
seen 60
grep -q 'cannot follow pods.*check the token' "$work/err" || fail "it does not say that the token does not count: $(cat "$work/err")"
grep -q 'answers again' "$work/err" || fail "it does not say that the server answers again: $(cat "$work/err")"
echo "ok the token replaced: $at"

# --- the API server is taken away, and comes back without the versions from before: 410, and a list ---
ends=$(ends) lists=$(lists) before=$(failed 410)
kill "${api_pids[1]}"
wait "${api_pids[1]}" 2>/dev/null || :
until_true 10 more_than ends "$ends" || fail "hearth does not notice that the server is away"
still_named "while the API server is away"
echo "ok without the API server: the pod is still known"
order close >/dev/null
api_serve
until_true 60 kubectl get namespace shop || fail "the API server does not come back"
next_pod cart-5d9-fghij
api_compact || fail "etcd does not forget old versions"
kill "${api_pids[1]}" # once more: what it has in memory begins behind the pod
wait "${api_pids[1]}" 2>/dev/null || :
api_serve
until_true 60 kubectl get namespace shop || fail "the API server does not come back"
order open >/dev/null
seen 60
[ "$(failed 410)" -gt "$before" ] && [ "$(lists)" -gt "$lists" ] || fail "no 410 and list: $(failed 410), $(lists) lists"
echo "ok with it again, which has forgotten where the watch ended: $at"

kill -INT "$hearth"
wait "$hearth" || fail "status $?: $(cat "$work/err")"
hearth=''
grep 'samples taken' "$work/err"
