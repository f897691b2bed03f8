#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A Collector's file in the place of hearth's own: pipelines without root, the collector distribution's quick start as its users
# have it, an agent's pipeline that sends to a receiver's, and what a wrong file is answered.
. "$TOP/tests/system/lib.sh"
unset HEARTH_CONFIG OTEL_RESOURCE_ATTRIBUTES
# as_nobody COMMAND...: without privileges, where there are any
as_nobody() {
	if [ "$(id -u)" = 0 ]; then
		setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs "$@"
	else
		"$@"
	fi
}

# --- made-up profiles, two pipelines that share a receiver and an exporter, no root ---
cat >synthetic.yaml <<'END'
receivers:
  synthetic: { interval: 200ms, samples: 100 }
  customprofilesreceiver: { report_interval: 200ms }
processors:
  resource: { attributes: [{ key: env, action: upsert, value: "${env:TEST_ENV:-none}" }, { key: process.pid, action: delete }] }
  filter: { profiles: { include: { match_type: regexp, resources: [{ key: service.name, value: '^sh' }] } } }
  memory_limiter: { check_interval: 1s, limit_mib: 2000 }
exporters:
  file: { path: all.jsonl }
  customprofilesexporter: { export_sample_types: [samples], export_function_file: true }
  nop:
service:
  pipelines:
    profiles: { receivers: [synthetic, customprofilesreceiver], processors: [memory_limiter, resource], exporters: [file, nop] }
    profiles/shop: { receivers: [synthetic], processors: [filter], exporters: [customprofilesexporter, nop] }
END
"$HEARTH" check --config synthetic.yaml >out 2>err || fail "check: $(cat out err)"
grep -qx 'profiles/shop: synthetic -> filter -> customprofilesexporter, nop' out || fail "check does not draw: $(cat out)"
"$HEARTH" check --config synthetic.yaml --print >out || fail "check --print: $(cat out)"
grep -qx '  sink: file=all.jsonl' out || fail "no flat form: $(cat out)"
chmod 777 .
start made env TEST_ENV=staging HOME=/nowhere bash -c "$(declare -f as_nobody); as_nobody \"\$@\"" - "$HEARTH" --config synthetic.yaml \
	--feature-gates=service.profilesSupport
until_true 20 grep -q 'End Profile' made || fail "nothing is printed: $(cat made made.err)"
until_true 20 grep -q abc123 all.jsonl || fail "no made-up resource in the file: $(cat made.err)"
kill -INT "$(pgrep -P "$started" -x hearth || echo "$started")"
wait "$started" || fail "status $?: $(cat made.err)"
grep -q 'feature-gates' made.err || fail "--feature-gates is not said: $(cat made.err)"
grep -q 'service.name: shop (Str)' made && ! grep -q 'service.name: billing' made || fail "the filter: $(cat made)"
grep -q 'Function: shop.price, File: shop/price.go' made || fail "no file: $(cat made)"
! grep -q 'env: ' made || fail "one pipeline's stage is in the other: $(cat made)"
python3 - <<'END' || fail "the file is not what the pipeline makes"
import json
resources = [r for line in open("all.jsonl") for r in json.loads(line)["resourceProfiles"]]
for r in resources:
    keys = {a["key"]: a["value"] for a in r["resource"]["attributes"]}
    assert keys["env"] == {"stringValue": "staging"} and "process.pid" not in keys, keys
assert any("scopeProfiles" in r for r in resources)
END

# --- wrong files: a line, the nearest name, status 1 ---
status=0
"$HEARTH" --config "yaml:{receivers: {profilin: }, exporters: {nop: }, service: {pipelines: {profiles: {receivers: [profilin], exporters: [nop]}}}}" \
	2>err || status=$?
[ $status = 1 ] && grep -q "yaml:1: 'profilin' is none of hearth's receivers; did you mean 'profiling'?" err || fail "status $status: $(cat err)"
status=0
"$HEARTH" serve --config "yaml:{receivers: {profiling: }, exporters: {nop: }, service: {pipelines: {profiles: {receivers: [profiling], exporters: [nop]}}}}" \
	2>err || status=$?
[ $status = 2 ] && grep -q "'hearth run --config FILE'" err || fail "serve samples: status $status: $(cat err)"

# --- a receiver's pipelines: `hearth` alone is a `serve` then ---
cat >gateway.yaml <<'END'
receivers:
  otlp: { protocols: { grpc: { endpoint: 127.0.0.1:0 }, http: { endpoint: 127.0.0.1:0 } } }
processors:
  attributes: { actions: [{ key: seen.by, value: gateway, action: insert }] }
exporters:
  file: { path: received.jsonl }
  debug:
service:
  telemetry: { logs: { encoding: json } }
  pipelines:
    profiles: { receivers: [otlp], processors: [attributes], exporters: [file, debug] }
END
start gateway "$HEARTH" --config gateway.yaml
until_true 20 grep -q 'for OTLP/gRPC' gateway.err || fail "no gateway: $(cat gateway.err)"
python3 -c 'import json; [json.loads(l) for l in open("gateway.err")]' || fail "not JSON: $(cat gateway.err)"
gateway=$started grpc=$(sed -n 's/.*grpc:..\([0-9.:]*\) .*/\1/p' gateway.err | head -n 1)
[ -n "$grpc" ] || fail "no port: $(cat gateway.err)"
http=$(sed -n 's/.*listening on \(http:[^ ]*\) for OTLP.HTTP.*/\1/p' gateway.err | head -n 1)
cat >send.yaml <<END
receivers: { synthetic: { interval: 100ms } }
exporters:
  otlp/none: { endpoint: "$grpc", tls: { insecure: true }, compression: none }
  otlp/zstd: { endpoint: "$grpc", tls: { insecure: true }, compression: zstd }
  otlphttp: { endpoint: "$http", compression: zstd }
service: { pipelines: { profiles: { receivers: [synthetic], exporters: [otlp] } } }
END
for exporter in otlp/none:7 otlp/zstd:8 otlphttp:9; do
	start sender "$HEARTH" --config send.yaml --config "yaml:receivers::synthetic::samples: ${exporter#*:}" \
		--set "service.pipelines.profiles.exporters=[${exporter%:*}]" --set service.telemetry.metrics.address=127.0.0.1:0
	until_true 20 grep -q " ${exporter#*:} samples" gateway.err || fail "nothing of $exporter is received: $(cat gateway.err sender.err)"
	metrics=$(sed -n 's/.*listening on \(http:[^ ]*\) for .metrics.*/\1/p' sender.err)
	[ "$(curl -s "$metrics/readyz")" = ready ] || fail "not ready: $(cat sender.err)"
	curl -s "$metrics/metrics" | grep -q '^hearth_export_repacked_total.* 0$' || fail "$exporter is sent another way: $(cat sender.err)"
	stop "$started"
done
kill -INT "$gateway"
wait "$gateway" || fail "the gateway ends with $?: $(cat gateway.err)"
grep -q '"seen.by"' received.jsonl || fail "the gateway's stage: $(head -n 1 received.jsonl)"

# --- an agent whose pipelines only send: they are the other half's, which asks for names and sends ---
need_bpf
start gateway "$HEARTH" --config gateway.yaml --set exporters.file.path=agents.jsonl
until_true 20 grep -q 'for OTLP/gRPC' gateway.err || fail "no gateway: $(cat gateway.err)"
gateway=$started grpc=$(sed -n 's/.*grpc:..\([0-9.:]*\) .*/\1/p' gateway.err | head -n 1)
cat >agent.yaml <<END
receivers: { profiling: { samples_per_second: 99, report_interval: 300ms } }
processors:
  k8sattributes:
  resourcedetection: { detectors: [env, system], override: false }
  resource: { attributes: [{ key: env, value: staging, action: insert }] }
exporters: { otlp: { endpoint: "http://$grpc", tls: { insecure: true } }, file: { path: closed/kept.jsonl } }
service: { pipelines: { profiles: { receivers: [profiling], processors: [k8sattributes, resourcedetection, resource], exporters: [otlp, file] } } }
END
mkdir -m 700 closed # to all but root: the file is opened for the other half
start agent env OTEL_RESOURCE_ATTRIBUTES=team=a "$HEARTH" --config agent.yaml
until_true 60 grep -q 'profiles go to otlp' agent.err || fail "the agent does not start: $(cat agent.err)"
until_true 30 grep -q '"staging"' agents.jsonl || fail "nothing from the agent: $(cat agent.err gateway.err)"
until_true 20 grep -q '"staging"' closed/kept.jsonl || fail "nothing in the file: $(cat agent.err)"
[ -n "${HEARTH_ONE_PROCESS:-}" ] || pgrep -P "$(pgrep -P "$started" -x hearth-keeper)" -x hearth-backend >/dev/null || fail "the pipelines are not in a half of their own"
stop "$started"
accounted agent.err
[ "$(stat -c %u closed/kept.jsonl)" = 0 ] || fail "the file is not root's: $(ls -ln closed)"
python3 - <<'END' || fail "the file has no samples of the agent"
import json
assert any(r.get("scopeProfiles") for line in open("closed/kept.jsonl") for r in json.loads(line)["resourceProfiles"])
END
kill -INT "$gateway"
wait "$gateway" || fail "the gateway ends with $?: $(cat gateway.err)"

# --- the distribution's quick start: the agent beside made-up resources ---
cat >quickstart.yaml <<'END'
receivers:
  profiling:
    Tracers: "perl,php,python,hotspot,ruby,v8,dotnet,go"
    SamplesPerSecond: 20
  customprofilesreceiver:
    report_interval: 1s
processors:
  customprofilesexporter:
    foo: "bar"
exporters:
  customprofilesexporter:
    ignore_profiles_without_container_id: true
    export_resource_attributes: true
    export_profile_attributes: true
    export_sample_attributes: true
    export_stack_frames: true
    export_stack_frame_types: [native, kernel, go, jvm, php, cpython]
    export_function_file: true
service:
  pipelines:
    profiles:
      receivers: [profiling, customprofilesreceiver]
      processors: [customprofilesexporter]
      exporters: [customprofilesexporter]
END
start quick "$HEARTH" --config=quickstart.yaml --feature-gates=service.profilesSupport --report-interval 500ms
until_true 60 grep -q 'profiles go to' quick.err || fail "the quick start does not start: $(cat quick.err)"
until_true 20 grep -q 'foo: bar (Str)' quick || fail "no attribute of the processor: $(cat quick quick.err)"
until_true 20 grep -q 'SKIPPED (no container.id)' quick || fail "the agent's processes are not there: $(cat quick quick.err)"
until_true 20 grep -q 'container.id: abc123 (Str)' quick || fail "no made-up resource: $(cat quick)"
stop "$started"
accounted quick.err
