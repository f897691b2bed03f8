#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The Collector's own k8sattributes and resourcedetection (oracle.go) beside hearth's: the same API server, pod and container, a table of
# the attributes that both tell, and a failure where they differ without a reason that stands below.
#   usage: tests/deploy/oracle.sh BUILD APISERVER [ORACLE]      APISERVER: a folder with kube-apiserver, or `objects`: a server that only has the
#   objects (objects.py); ORACLE: oracle.go as it was built before
set -euo pipefail
build=$(realpath "${1:?usage: oracle.sh BUILD APISERVER [ORACLE]}")
server=${2:?usage: oracle.sh BUILD APISERVER [ORACLE]}
[ "$server" = objects ] || server=$(realpath "$server")
oracle=${3:+$(realpath "$3")}
cd "$(dirname "$0")/../.."
. tests/deploy/api.sh
. tests/deploy/shop.sh
[ -n "$oracle" ] || command -v go >/dev/null || { echo "needs go, or an oracle"; exit 77; }
shop_begin oracle
if [ -z "$oracle" ]; then
	contrib=github.com/open-telemetry/opentelemetry-collector-contrib/processor
	oracle=$work/go/oracle
	mkdir "$work/go"
	cp tests/deploy/oracle.go "$work/go/main.go"
	(cd "$work/go" && go mod init oracle && go get $contrib/k8sattributesprocessor@v0.144.0 $contrib/resourcedetectionprocessor@v0.144.0 \
		github.com/hetznercloud/hcloud-go/v2@v2.41.2 && go mod tidy && go build -o oracle .) >"$work/go.log" 2>&1 || fail "the oracle: $(tail -n 5 "$work/go.log")"
fi
shop_container "$work"
# The same as the real server gets by shop.sh, and what it adds.
start_objects() {
	local folder=$work/api
	mkdir -p "$folder" "$work/account"
	openssl req -x509 -newkey rsa:2048 -nodes -keyout "$folder/server.key" -out "$folder/server.crt" -days 2 -subj /CN=server \
		-addext subjectAltName=IP:127.0.0.1 2>/dev/null
	python3 - "$id" >"$folder/objects.json" <<'END'
import hashlib, json, sys
def owned(kind, name, uid, api="apps/v1"):
    return [{"apiVersion": api, "kind": kind, "name": name, "uid": uid, "controller": True}]
def meta(name, uid, **more):
    return {"name": name, "uid": uid, "resourceVersion": "7", "creationTimestamp": "2026-01-02T03:04:00Z"} | more
digest = "cart@sha256:" + hashlib.sha256(b"x").hexdigest()
print(json.dumps([
    {"kind": "Namespace", "apiVersion": "v1", "metadata": meta("kube-system", "5a-cluster")},
    {"kind": "Namespace", "apiVersion": "v1", "metadata": meta("shop", "5a-shop", labels={"team": "blue"})},
    {"kind": "Node", "apiVersion": "v1", "metadata": meta("node-1", "5a-node")},
    {"kind": "ConfigMap", "apiVersion": "v1", "metadata": meta("kubeadm-config", "5a-config", namespace="kube-system"),
     "data": {"ClusterConfiguration": "apiVersion: kubeadm.k8s.io/v1beta4\nclusterName: blue\n"}},
    {"kind": "Deployment", "apiVersion": "apps/v1", "metadata": meta("cart", "5a-cart", namespace="shop", labels={"tier": "back"})},
    {"kind": "ReplicaSet", "apiVersion": "apps/v1", "metadata": meta("cart-5d9", "5a-set", namespace="shop", ownerReferences=owned("Deployment", "cart", "5a-cart"))},
    {"kind": "Pod", "apiVersion": "v1",
     "metadata": meta("cart-5d9-abcde", "8a9b1c2d-1111-4222-8333-000000000001", namespace="shop", ownerReferences=owned("ReplicaSet", "cart-5d9", "5a-set"),
                      labels={"app": "cart", "tier": "back", "app.kubernetes.io/version": "v7.1"},
                      annotations={"resource.opentelemetry.io/deployment.environment.name": "staging"}),
     "spec": {"nodeName": "node-1", "containers": [{"name": "app", "image": "cart:7"}]},
     "status": {"phase": "Running", "startTime": "2026-01-02T03:04:05Z", "podIP": "10.9.8.7", "podIPs": [{"ip": "10.9.8.7"}],
                "containerStatuses": [{"name": "app", "image": "cart:7", "imageID": digest, "ready": True, "restartCount": 0,
                                       "containerID": "containerd://" + sys.argv[1]}]}}]))
END
	python3 tests/deploy/objects.py "$folder/server.crt" "$folder/server.key" admintoken "$folder/objects.json" >"$folder/out" 2>"$folder/err" &
	api_pids=("$!")
	for _ in $(seq 100); do
		grep -q '^port' "$folder/out" && break
		sleep 0.2
	done
	port=$(sed -n 's/^port //p' "$folder/out")
	api_kubeconfig "$folder" "$port"
	printf admintoken >"$work/account/token"
	cp "$folder/server.crt" "$work/account/ca.crt"
	printf hearth >"$work/account/namespace"
	chmod 755 "$work/account"
}
if [ "$server" = objects ]; then
	start_objects
else
	port=16463
	api_start "$server" "$work/api" $port || fail "no API server"
	export KUBECONFIG=$kubeconfig
	shop_objects node-1
	shop_pod cart-5d9-abcde
	# As kubeadm leaves it; the right to read it is no part of the manifests.
	kubectl -n kube-system create configmap kubeadm-config --from-literal=ClusterConfiguration=$'apiVersion: kubeadm.k8s.io/v1beta4\nclusterName: blue\n' >/dev/null
	kubectl -n kube-system create role kubeadm --verb=get --resource=configmaps --resource-name=kubeadm-config >/dev/null
	kubectl -n kube-system create rolebinding kubeadm --role=kubeadm --serviceaccount=hearth:hearth >/dev/null
	kubectl apply -f - >/dev/null <<<'{ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "node-1" } }'
	kubectl create clusterrole nodes --verb=get,list,watch --resource=nodes >/dev/null
	kubectl create clusterrolebinding nodes --clusterrole=nodes --serviceaccount=hearth:hearth >/dev/null
	shop_token "$work/account"
fi
export KUBECONFIG=$kubeconfig

keys='k8s.namespace.name k8s.pod.name k8s.pod.uid k8s.pod.start_time k8s.pod.ip k8s.pod.hostname k8s.node.name k8s.node.uid k8s.cluster.uid k8s.deployment.name
	k8s.deployment.uid k8s.replicaset.name k8s.replicaset.uid k8s.container.name container.id container.image.name container.image.tag
	container.image.repo_digests service.name service.namespace service.version service.instance.id'
python3 - "$work" $keys <<'END'
import json, sys
work, keys = sys.argv[1], sys.argv[2:]
labels = [{"from": "pod", "key": "tier"}, {"from": "namespace", "key": "team"}]
kube = {"filter": {"node": "node-1"}, "wait_for_metadata": True, "extract": {"metadata": keys, "labels": labels, "otel_annotations": True},
        "pod_association": [{"sources": [{"from": "resource_attribute", "name": "container.id"}]}]}
detect = {"detectors": ["env", "system", "kubeadm"], "override": False}
theirs = {"system": {"resource_attributes": {k: {"enabled": True} for k in ("host.name", "host.id", "host.arch", "os.type", "os.description")}}}
json.dump(kube | {"auth_type": "kubeConfig"}, open(work + "/kube.json", "w"))
json.dump(detect | theirs | {"kubeadm": {"auth_type": "kubeConfig"}}, open(work + "/detect.json", "w"))
ours = {"receivers": {"profiling": {"samples_per_second": 99, "report_interval": "300ms", "symbols": "off"}},
        "processors": {"k8sattributes": kube, "resourcedetection": detect}, "exporters": {"file": {"path": work + "/ours.jsonl"}},
        "service": {"pipelines": {"profiles": {"receivers": ["profiling"], "processors": ["k8sattributes", "resourcedetection"], "exporters": ["file"]}}}}
json.dump(ours, open(work + "/ours.yaml", "w"))
END
export OTEL_RESOURCE_ATTRIBUTES=team.name=shop%20team
echo "{\"container.id\": \"$id\"}" | timeout 60 "$oracle" k8sattributes="$work/kube.json" resourcedetection="$work/detect.json" >"$work/theirs.json" 2>"$work/theirs.err" ||
	fail "the oracle: $(tail -n 5 "$work/theirs.err")"

env KUBERNETES_SERVICE_HOST=127.0.0.1 KUBERNETES_SERVICE_PORT=$port HEARTH_KUBE_ACCOUNT="$work/account" \
	"$build/hearth" run --config "$work/ours.yaml" -p "$pid" >"$work/out" 2>"$work/err" </dev/null &
hearth=$!
end=$((SECONDS + 60))
until grep -q '"k8s.cluster.name"' "$work/ours.jsonl" 2>/dev/null; do
	[ $SECONDS -lt $end ] || fail "hearth tells no cluster: $(cat "$work/err") $(tail -c 2000 "$work/ours.jsonl")"
	sleep 0.3
done
kill -INT "$hearth"
wait "$hearth" || fail "status $?: $(cat "$work/err")"
hearth=''
grep 'samples taken' "$work/err"

python3 - "$work" "$id" <<'END'
import json, sys
work, container = sys.argv[1:]
# Keys that may differ, and why; (only hearth, only the Collector, or both with other values).
REASONS = {
    "container.image.repo_digests": "hearth tells it as the runtime writes it; the Collector puts the usual registry in front of a name without one",
    "k8s.pod.hostname": "hearth leaves out what is empty",
    "k8s.pod.start_time": "status.startTime in hearth, as the convention has it; when the object was made in the Collector",
    "k8s.cluster.name": "hearth reads the ClusterConfiguration that kubeadm writes; the Collector a key clusterName beside it, which kubeadm does not",
    "os.description": "the kernel's words in both, put together otherwise",
    "os.version": "told by hearth without being asked",
    "os.name": "told by hearth without being asked",
    "process.pid": "of the process that was sampled", "process.vpid": "of the process that was sampled", "process.executable.name": "of the process that was sampled", "process.executable.path": "of the process that was sampled",
}
def plain(v):
    kind, value = next(iter(v.items()))
    return int(value) if kind == "intValue" else [plain(i) for i in value.get("values", [])] if kind == "arrayValue" else value
theirs, ours = json.load(open(work + "/theirs.json")), None
for line in open(work + "/ours.jsonl"):
    message = json.loads(line)
    strings = message.get("dictionary", {}).get("stringTable", [])
    for r in message["resourceProfiles"]:
        found = {}
        for a in r["resource"]["attributes"]:
            value = a.get("value", {})
            found[a.get("key") or strings[a["keyStrindex"]]] = strings[value["stringValueStrindex"]] if "stringValueStrindex" in value else plain(value)
        if found.get("container.id") == container and "k8s.cluster.name" in found:
            ours = found
assert ours, "no resource of the container"
wrong = 0
for key in sorted(set(ours) | set(theirs)):
    a, b = theirs.get(key, "-"), ours.get(key, "-")
    same = a == b
    word = "same" if same else REASONS.get(key, "DIFFERS")
    wrong += word == "DIFFERS"
    print(f"| `{key}` | {json.dumps(a) if not isinstance(a, str) else a} | {json.dumps(b) if not isinstance(b, str) else b} | {word} |")
assert len(theirs) > 20, theirs
if wrong:
    sys.exit("there are differences without a reason")
END
echo "ok the same attributes, but for those with a reason"
