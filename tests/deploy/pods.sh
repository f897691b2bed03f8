#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Pods by a real API server: a real container of podman's stands in a pod's status; hearth asks as the manifests' own service account, with
# the manifests' own rights. Then the API server is taken away and comes back, the pod changes, and the token is replaced.
#   usage: tests/deploy/pods.sh BUILD APISERVER      APISERVER: a folder with kube-apiserver
set -euo pipefail
build=$(realpath "${1:?usage: pods.sh BUILD APISERVER}")
server=$(realpath "${2:?usage: pods.sh BUILD APISERVER}")
cd "$(dirname "$0")/../.."
. tests/deploy/api.sh
. tests/deploy/shop.sh
shop_needs
work=$(mktemp -d /var/tmp/hearth-pods.XXXXXX)
hearth=''
finish() {
	[ -z "$hearth" ] || kill -KILL "$hearth" 2>/dev/null || :
	shop_end
	api_stop
	rm -rf --one-file-system "$work"
}
trap finish EXIT
fail() {
	echo "FAILED: $*"
	exit 1
}
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
chmod 755 "$work"
shop_container "$work"
shop_objects node-1
shop_pod cart-5d9-abcde
account=$work/account
shop_token "$account"

# --- hearth, with a Collector's file, a store and a page ---
cat >"$work/config.yaml" <<END
receivers: { profiling: { samples_per_second: 99, report_interval: 300ms, symbols: "off", pid: $pid } }
processors:
  k8sattributes:
    wait_for_metadata: true
    filter: { node_from_env_var: KUBERNETES_NODE_NAME }
    extract: { labels: [{ from: pod, key: tier }, { from: namespace, key: team }], otel_annotations: true }
exporters: { store: { folder: $work/store } }
service: { telemetry: { metrics: { address: "127.0.0.1:0" } }, pipelines: { profiles: { receivers: [profiling], processors: [k8sattributes], exporters: [store] } } }
END
env KUBERNETES_SERVICE_HOST=127.0.0.1 KUBERNETES_SERVICE_PORT=$port HEARTH_KUBE_ACCOUNT="$account" KUBERNETES_NODE_NAME=node-1 \
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
	service.namespace=shop service.instance.id=shop.cart-5d9-abcde.app k8s.pod.labels.tier=back \
	k8s.namespace.labels.team=blue deployment.environment.name=staging; do
	until_true 20 says "${pair%%=*}" "${pair#*=}" || fail "${pair%%=*} is $(value_of "${pair%%=*}"), not ${pair#*=}: $(cat "$work/err")"
done
curl -fsS -G "$url/api/v1/top" -d 'by=k8s.deployment.name' -d 'query={}' | grep -q '"cart"' || curl -fsS -G "$url/api/v1/series" -d 'by=k8s.deployment.name' -d 'query={}' | grep -q cart ||
	fail "not grouped by Deployments"
echo "ok pod, container, Deployment, namespace: $(value_of k8s.pod.name)"
[ "$(counter hearth_kube_pods)" = 1 ] || fail "pods: $(counter hearth_kube_pods)"

# --- the token is replaced, and the old one's account is no more ---
kubectl -n hearth delete serviceaccount hearth >/dev/null
kubectl -n hearth create serviceaccount hearth >/dev/null
shop_token "$account"
# --- the API server is taken away (the watch is cut), and comes back with another pod of the container ---
kill "${api_pids[1]}"
wait "${api_pids[1]}" 2>/dev/null || :
sleep 2
before=$(counter 'hearth_enrich_samples_total{found="pod"}')
more() { [ "$(counter 'hearth_enrich_samples_total{found="pod"}')" -gt "$before" ]; }
until_true 10 more || fail "samples are not named while the API server is away"
echo "ok without the API server: the pod is still known"
api_serve
until_true 60 kubectl get namespace shop || fail "the API server does not come back"
kubectl -n shop delete pod cart-5d9-abcde --grace-period=0 --force >/dev/null 2>&1
shop_pod cart-5d9-fghij
until_true 60 says k8s.pod.name cart-5d9-fghij || fail "the new pod is not seen: $(value_of k8s.pod.name): $(cat "$work/err")"
echo "ok with it again, and another token: $(value_of k8s.pod.name)"
kill -INT "$hearth"
wait "$hearth" || fail "status $?: $(cat "$work/err")"
hearth=''
grep 'samples taken' "$work/err"
