#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The examples of the collector distribution that hearth takes the place of, as deploy/kubernetes has them: text, a REST server, events of
# the kernel, and two that send; each is started by its own file, with other addresses, and what it prints or serves is looked at. A
# container is a control group of a container's name.
. "$TOP/tests/system/lib.sh"
need_bpf
unset HEARTH_CONFIG OTEL_RESOURCE_ATTRIBUTES OTEL_SERVICE_NAME KUBERNETES_SERVICE_HOST
overlays=$TOP/deploy/kubernetes/overlays
id=$(printf 'examples%s' $$ | sha256sum | cut -c 1-64)
mount=$(awk '$0 ~ / - cgroup2 / { print $5; exit }' /proc/self/mountinfo)
group=$mount/hearth-examples-$$.slice/docker/$id
clean_up() {
	for pid in "${pids[@]}"; do kill -KILL "$pid" 2>/dev/null || :; done
	wait
	[ ! -d "$group" ] || rmdir "$group" "${group%/*}" "${group%/*/*}" 2>/dev/null || :
}
trap clean_up EXIT
[ -n "$mount" ] && mkdir -p "$group" 2>/dev/null || skip "no control groups of version 2 that can be written to"

# A busy program that makes processes again and again, in the container.
cp "$(command -v dash)" worker
start worker.out sh -c "echo \$\$ >'$group/cgroup.procs' && exec nice -n 5 ./worker -c 'while :; do i=0; while [ \$i -lt 1000 ]; do i=\$((i + 1)); done; (:); done'"
worker=$started

# example NAME OPTION...: hearth with that overlay's file; the node's name is from the environment, as in the manifest
example() {
	start "$1" env KUBERNETES_NODE_NAME=node-1 "$HEARTH" run --config="$overlays/$1/config.yaml" --feature-gates=service.profilesSupport \
		--set extensions.health_check.endpoint=127.0.0.1:0 --report-interval 300ms --symbols tables "${@:2}"
}
# port NAME WHAT: where NAME listens for WHAT
port() {
	sed -n "s/.*listening on http:\/\/\([0-9.:]*\) for $2.*/\1/p" "$1.err"
}
# who PID: whose process that is, by the user that it is
user_of() {
	awk '$1 == "Uid:" { print $2 }' "/proc/$1/status"
}
is_backend() { # NAME: what listens there is not root
	local keeper backend
	[ -z "${HEARTH_ONE_PROCESS:-}" ] || return 0
	keeper=$(pgrep -P "$started" -x hearth-keeper) && backend=$(pgrep -P "$keeper" -x hearth-backend) || fail "$1 has no second half: $(cat "$1.err")"
	[ "$(user_of "$backend")" != 0 ] || fail "what listens for $1 is root"
}

# --- simple: samples as text ---
example simple
until_true 60 grep -q 'profiles go to' simple.err || fail "simple: $(cat simple.err)"
is_backend simple
until_true 20 grep -q "container.id: $id (Str)" simple || fail "simple says nothing of the container: $(tail -n 20 simple) $(cat simple.err)"
until_true 20 grep -q '^Instrumentation: kernel, Function: ' simple || fail "simple has no frames: $(tail -n 20 simple)"
stop "$started"
accounted simple.err
grep -q 'SampleType: samples' simple || fail "simple: no samples"
echo "ok simple"

# --- httprest: who runs, as JSON ---
example httprest --set exporters.httprest.address=127.0.0.1:0
until_true 60 grep -q 'profiles go to httprest' httprest.err || fail "httprest: $(cat httprest.err)"
is_backend httprest
rest=$(port httprest '.workloads alone')
has_functions() { curl -fs "http://$rest/workload/$id/process/$worker/functions" >functions && grep -q '"Language":"kernel"' functions; }
until_true 20 has_functions || fail "httprest knows no functions: $(curl -s "http://$rest/workloads") $(cat httprest.err)"
curl -fs "http://$rest/workloads" >workloads
python3 - "$id" "$worker" <<'END' || fail "httprest: $(cat workloads functions)"
import json, sys
loads, functions = json.load(open("workloads")), json.load(open("functions"))
load = loads[sys.argv[1]]
assert list(load) == ["ContainerID", "NamespaceName", "PodName", "ContainerName", "Processes"], load
process = load["Processes"][sys.argv[2]]
assert process["PID"] == int(sys.argv[2]) and process["ExecutableName"] == "worker" and process["ExecutablePath"].endswith("/worker"), process
assert all(list(f) == ["Language", "Name", "File"] for f in functions)
assert {"kernel"} <= {f["Language"] for f in functions}, functions
END
[ "$(curl -s -o /dev/null -w '%{http_code}' "http://$rest/workload/none/functions")" = 404 ] || fail "httprest: an unknown id"
stop "$started"
accounted httprest.err
echo "ok httprest"

# --- profilingextension: calls of copy_process, which each new process is ---
example profilingextension
if [ -e /sys/bus/event_source/devices/kprobe ]; then
	until_true 60 grep -q 'profiles go to' profilingextension.err || fail "profilingextension: $(cat profilingextension.err)"
	until_true 20 grep -q '^Instrumentation: kernel, Function: copy_process' profilingextension || fail "no events: $(tail -n 20 profilingextension) $(cat profilingextension.err)"
	stop "$started"
	accounted profilingextension.err
	grep -q 'SampleType: events' profilingextension && ! grep -q 'SampleType: samples' profilingextension || fail "profilingextension: not events alone"
else
	! wait "$started" || fail "a kprobe without kprobes"
	grep -q "cannot probe 'kprobe:copy_process': this kernel has no kprobes" profilingextension.err || fail "no kprobes: $(cat profilingextension.err)"
fi
echo "ok profilingextension"

# --- lazybackend and pyroscope: they send, here to hearth with the lazy backend's flags; and one more receives at the same time ---
start backend "$HEARTH" serve -receiver stdout -grpc-address 127.0.0.1:0 -http-address 127.0.0.1:0 -stdout.sample-types samples
until_true 20 grep -q 'for OTLP/gRPC' backend.err || fail "no backend: $(cat backend.err)"
backend=$started grpc=$(sed -n 's/.*grpc:..\([0-9.:]*\) .*/\1/p' backend.err | head -n 1)
for name in lazybackend pyroscope; do
	before=$(grep -c "^  container.id: $id" backend || :)
	more() { [ "$(grep -c "^  container.id: $id" backend)" -gt "$before" ]; }
	example "$name" --set "exporters.otlp.endpoint=$grpc"
	until_true 60 grep -q 'profiles go to otlp' "$name.err" || fail "$name: $(cat "$name.err")"
	is_backend "$name"
	until_true 20 more || fail "$name sends nothing of the container: $(cat "$name.err" backend.err)"
	stop "$started"
	accounted "$name.err"
	echo "ok $name"
done

# --- a receiver beside what samples, a store, and a file with certificates: the other half has them all ---
[ -n "${HEARTH_ONE_PROCESS:-}" ] && exit 0
openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1 2>openssl.out || skip "no openssl"
chmod 600 ca.key ca.pem
start far "$HEARTH" serve --grpc-address 127.0.0.1:0 --http-address 127.0.0.1:0 --tls-cert ca.pem --tls-key ca.key --sink file="$PWD/far.jsonl"
until_true 20 grep -q 'for OTLP/gRPC' far.err || fail "no far end: $(cat far.err)"
far=$(sed -n 's/.*grpcs*:..\([0-9.:]*\) .*/\1/p' far.err | head -n 1)
cat >both.yaml <<END
receivers:
  profiling: { samples_per_second: 99, report_interval: 300ms }
  otlp: { protocols: { grpc: { endpoint: 127.0.0.1:0 }, http: { endpoint: 127.0.0.1:0 } } }
processors:
  resource: { attributes: [{ key: came, value: by-otlp, action: insert }] }
exporters:
  store: { folder: $PWD/store }
  otlp: { endpoint: "https://$far", tls: { ca_file: $PWD/ca.pem }, spool: $PWD/spool }
service:
  pipelines:
    profiles: { receivers: [profiling], exporters: [store] }
    profiles/others: { receivers: [otlp], processors: [resource], exporters: [store, otlp] }
END
start both "$HEARTH" run --config both.yaml --symbols off -p "$worker"
until_true 60 grep -q 'profiles go to' both.err || fail "both: $(cat both.err)"
both=$started
is_backend both
url=$(sed -n 's/.*page at \(http:[^ ]*\)\/$/\1/p' both.err)
grpc=$(sed -n 's/.*grpc:..\([0-9.:]*\) .*/\1/p' both.err | head -n 1)
[ -n "$url" ] && [ -n "$grpc" ] || fail "both does not listen: $(cat both.err)"
cat >send.yaml <<END
receivers: { synthetic: { interval: 100ms } }
exporters: { otlp: { endpoint: "$grpc", tls: { insecure: true } } }
service: { pipelines: { profiles: { receivers: [synthetic], exporters: [otlp] } } }
END
start sender "$HEARTH" --config send.yaml
values() { curl -fsS -G "$url/api/v1/values" -d "label=$1" -d 'query={}'; }
has_both() { values process.pid | grep -q "\"$worker\"" && values came | grep -q by-otlp && values service.name | grep -q shop; }
until_true 30 has_both || fail "both: $(values process.pid) $(values came) $(cat both.err sender.err)"
until_true 20 grep -q by-otlp far.jsonl || fail "nothing comes with TLS: $(cat both.err far.err)"
! grep -q "\"intValue\":\"$worker\"" far.jsonl || fail "what was sampled goes where only what came in should go"
stop "$started"
stop "$both"
accounted both.err
[ "$(stat -c %u store)" != 0 ] && [ "$(stat -c %u spool)" != 0 ] || fail "the store is root's: $(ls -ln)"
echo "ok both"
