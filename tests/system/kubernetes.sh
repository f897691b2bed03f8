#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Pod, container and service of a process, from its control group to the selectors of a store: a pod by the API of a server that stands in for
# Kubernetes', a container by docker's file, a service; and what `hearth check` says of both. The processes are in control groups
# that are called as those of containers; real containers are in docker.sh.
. "$TOP/tests/system/lib.sh"
need_bpf

pod_id=$(printf 'pod%s' $$ | sha256sum | cut -c 1-64)
docker_id=$(printf 'docker%s' $$ | sha256sum | cut -c 1-64)
lone_id=$(printf 'lone%s' $$ | sha256sum | cut -c 1-64)
uid=8a9b1c2d-1111-4222-8333-$(printf '%012x' $$)
mount=$(awk '$0 ~ / - cgroup2 / { print $5; exit }' /proc/self/mountinfo)
group=$mount/hearth-kube-$$.slice
clean_up() {
	for pid in "${pids[@]}"; do kill -KILL "$pid" 2>/dev/null || :; done
	wait
	[ ! -d "$group" ] || find "$group" -depth -type d -exec rmdir {} + 2>/dev/null || :
}
trap clean_up EXIT
[ -n "$mount" ] && mkdir -p "$group/kubepods/burstable/pod$uid/"{"$pod_id","$lone_id"} "$group/docker/$docker_id" "$group/busy.service" 2>/dev/null ||
	skip "no control groups of version 2 that can be written to"

# in_group FOLDER COMMAND...: joins it and becomes COMMAND
in_group() {
	local folder=$1
	shift
	start "$(basename "$folder").out" sh -c 'echo $$ >"$0/cgroup.procs" && exec nice -n 5 "$@"' "$folder" "$@"
}
cp "$(command -v dash)" worker
busy='while :; do :; done'
in_group "$group/kubepods/burstable/pod$uid/$pod_id" env -u OTEL_SERVICE_NAME -u OTEL_RESOURCE_ATTRIBUTES ./worker -c "$busy"
in_pod=$started
in_group "$group/kubepods/burstable/pod$uid/$lone_id" env OTEL_SERVICE_NAME=own ./worker -c "$busy"
lone=$started
in_group "$group/docker/$docker_id" env -u OTEL_SERVICE_NAME -u OTEL_RESOURCE_ATTRIBUTES ./worker -c "$busy"
in_docker=$started
in_group "$group/busy.service" env -u OTEL_SERVICE_NAME -u OTEL_RESOURCE_ATTRIBUTES ./worker -c "$busy"
in_unit=$started
start plain.out nice -n 5 env -u OTEL_SERVICE_NAME -u OTEL_RESOURCE_ATTRIBUTES ./worker -c "$busy"
plain=$started

# The host's files, and an API server.
mkdir -p "root/var/lib/docker/containers/$docker_id"
echo "{\"Name\":\"/shop-web-1\",\"Config\":{\"Image\":\"web:2\",\"Labels\":{\"com.docker.compose.project\":\"shop\",\"com.docker.compose.service\":\"web\"}}}" \
	>"root/var/lib/docker/containers/$docker_id/config.v2.json"
mkdir account
(
	cd account
	printf secret >token
	openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.crt -days 2 -subj /CN=ca -addext keyUsage=keyCertSign
	openssl req -newkey rsa:2048 -nodes -keyout server.key -out server.csr -subj /CN=server
	printf 'subjectAltName=IP:127.0.0.1\nauthorityKeyIdentifier=keyid\n' >ext
	openssl x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -out server.pem -days 2 -extfile ext
) >openssl.out 2>&1 || skip "no openssl"
mkfifo orders
start api.out sh -c "exec python3 '$TOP/tests/unit/enrich/kube/api_server.py' account/server.pem account/server.key secret <orders"
exec 9>orders
until_true 10 grep -q '^port' api.out || fail "the API server does not start: $(cat api.out.err)"
{
	echo 'object /api/v1/namespaces/kube-system {"metadata":{"uid":"cluster-1"}}'
	echo 'object /apis/apps/v1/namespaces/shop/replicasets/cart-1 {"metadata":{"uid":"r","ownerReferences":[{"kind":"Deployment","name":"cart","uid":"d","controller":true}]}}'
	echo "put {\"metadata\":{\"uid\":\"$uid\",\"name\":\"cart-1-abc\",\"namespace\":\"shop\",\"labels\":{\"tier\":\"back\"},\"ownerReferences\":[{\"kind\":\"ReplicaSet\",\"name\":\"cart-1\",\"uid\":\"r\",\"controller\":true}]},\"spec\":{\"nodeName\":\"node-1\",\"containers\":[{\"name\":\"app\",\"image\":\"cart:7\"}]},\"status\":{\"containerStatuses\":[{\"name\":\"app\",\"containerID\":\"containerd://$pod_id\"}]}}"
} >&9
export KUBERNETES_SERVICE_HOST=127.0.0.1 KUBERNETES_SERVICE_PORT KUBE_NODE_NAME=node-1 HEARTH_KUBE_ACCOUNT=$PWD/account HEARTH_ROOTFS=$PWD/root
KUBERNETES_SERVICE_PORT=$(sed -n 's/^port //p' api.out)

start serve.out "$HEARTH" serve --grpc-address off --http-address 127.0.0.1:0 --store "$PWD/store" --sink file=all.framed
until_true 10 grep -q 'page at' serve.out.err || fail "does not listen: $(cat serve.out.err)"
url=$(sed -n 's/.*listening on \(http:[^ ]*\) for OTLP.*/\1/p' serve.out.err)
start run.out "$HEARTH" run -F 199 --report-interval 0.5s --symbols off --wait-for-metadata 20s --kube-label tier --metrics-address 127.0.0.1:0 \
	--collector "$url" -p "$in_pod,$lone,$in_docker,$in_unit,$plain"
runner=$started
reports() {
	"$HEARTH" report --format print all.framed 2>/dev/null >print && for pid in "$in_pod" "$lone" "$in_docker" "$in_unit" "$plain"; do
		grep -qx "  process.pid: $pid" print || return 1
	done
}
until_true 20 reports || fail "not all processes are in: $(cat run.out.err)"
kill -STOP "$in_pod" "$lone" "$in_docker" "$in_unit" "$plain" # they leave the CPUs to what follows

# says PID LINE...: exactly these lines of the process's resource, beside those that all have
says() {
	local pid=$1
	shift
	awk -v pid="  process.pid: $pid" '/New Resource/ { text = ""; on = 1; next } /New Profile/ { on = 0 } on { text = text $0 "\n" } $0 == pid { mine = 1 }
		!on && mine { printf "%s", text; exit }' print | grep -vE '^  (process\.(pid|executable\.(name|path))|host\.[a-z]+|os\.[a-z]+): ' | sort >got
	printf '  %s\n' "$@" | sort | diff - got || fail "process $pid does not say so"
	echo "ok $test"
}
of_pod=("k8s.pod.uid: $uid" 'k8s.namespace.name: shop' 'k8s.pod.name: cart-1-abc' 'k8s.deployment.name: cart' 'k8s.node.name: node-1'
	'k8s.cluster.uid: cluster-1' 'k8s.pod.labels.tier: back' 'service.namespace: shop')
test='a container of a pod'
says "$in_pod" "${of_pod[@]}" "container.id: $pod_id" 'k8s.container.name: app' 'container.image.name: cart' 'container.image.tag: 7' \
	'service.name: cart' 'service.version: 7' 'service.instance.id: shop.cart-1-abc.app'
test='one that its status does not have, which says its service itself'
says "$lone" "${of_pod[@]}" "container.id: $lone_id" 'service.name: own'
test='a container of docker and Compose'
says "$in_docker" "container.id: $docker_id" 'container.name: shop-web-1' 'container.image.name: web' 'container.image.tag: 2' \
	'service.name: web' 'service.namespace: shop' 'service.version: 2'
test='a unit of systemd'
says "$in_unit" 'systemd.unit.name: busy.service' 'service.name: busy'
test='a program'
grep -q '/[^/]*\.\(service\|scope\)$' "/proc/$plain/cgroup" || says "$plain" 'service.name: worker'

test=counters
metrics=$(sed -n 's/.*listening on \(http:[^ ]*\) for .metrics alone.*/\1/p' run.out.err)/metrics
counted() { curl -fsS "$metrics" >metrics && grep -qx "$1" metrics; }
for line in 'hearth_kube_pods 1' 'hearth_kube_synced 1' 'hearth_local_containers 1'; do # the agent tells its own each second
	until_true 10 counted "$line" || fail "not in /metrics: $line: $(grep -E 'hearth_(kube|local)' metrics)"
done
grep -qE '^hearth_enrich_samples_total\{found="pod"\} [1-9]' metrics || fail "no samples of pods: $(grep enrich metrics)"
echo "ok $test"
stop "$runner"
grep -qE '= [0-9]+ delivered \+ 0 lost' run.out.err || fail "samples are lost: $(cat run.out.err)"

pids_of() {
	curl -fsS -G "$url/api/v1/values" -d label=process.pid --data-urlencode "query=$1" |
		python3 -c 'import json, sys; print(*sorted(v["value"] for v in json.load(sys.stdin)["values"]))'
}
test='selectors'
both=$(printf '%s\n' "$in_pod" "$lone" | sort | paste -sd' ')
is_pods() { [ "$(pids_of '{k8s.pod.name="cart-1-abc"}')" = "$both" ]; }
until_true 10 is_pods || fail "k8s.pod.name: $(pids_of '{k8s.pod.name="cart-1-abc"}')"
[ "$(pids_of '{service.name="cart"}')" = "$in_pod" ] || fail "service.name: $(pids_of '{service.name="cart"}')"
[ "$(pids_of '{k8s_namespace_name="shop",k8s_container_name="app"}')" = "$in_pod" ] || fail "k8s_container_name: $(pids_of '{k8s_container_name="app"}')"
[ "$(pids_of '{service_name="web"}')" = "$in_docker" ] || fail "service_name"
echo "ok $test"

test='hearth check'
"$HEARTH" check -v >check 2>check.err || :
grep -q "^yes *Kubernetes' API: https://127.0.0.1:$KUBERNETES_SERVICE_PORT, 1 pods on the node node-1" check || fail "$test: $(cat check)"
grep -q '^yes *files of container runtimes: docker' check || fail "$test: $(cat check)"
echo 'forbid /pods' >&9
is_forbidden() { [ "$(grep -c done api.out)" = 4 ]; }
until_true 10 is_forbidden || fail "the API server hangs"
"$HEARTH" check >check 2>check.err || :
grep -q "^partly *Kubernetes' API: https://.*: status 403: /pods is forbidden" check || fail "$test: $(cat check)"
echo "ok $test"

test='nothing of it'
kill -CONT "$in_pod"
"$HEARTH" record -q --enrich none -F 199 -d 0.3 --symbols off -p "$in_pod" -o none.otlp 2>err || fail "$test: $(cat err)"
"$HEARTH" report --format print none.otlp >print
! grep -qE 'service.name|k8s.pod.name' print || fail "$test: $(grep -E 'service|k8s' print)"
! "$HEARTH" record --enrich pots -d 0.1 -o none.otlp 2>err || fail "$test: taken"
grep -q "there is no 'pots'; did you mean pods?" err || fail "$test: $(cat err)"
echo "ok $test"

# --- a folder for the host's files that is not there is said ---
"$HEARTH" record -q -d 1 --rootfs /nowhere -o nowhere.otlp -p $$ 2>err || :
grep -q -e '--rootfs /nowhere: No such file' err || fail "a --rootfs that is not there: $(cat err)"
