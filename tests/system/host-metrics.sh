#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Metrics of the host as a Collector's hostmetrics receiver tells them: over HTTP, without root, against /proc read by Python, through a
# collector that is busy at first; over gRPC to another hearth; of a made-up root; and beside an agent, from the half without privileges.
. "$TOP/tests/system/lib.sh"
unset HEARTH_CONFIG OTEL_RESOURCE_ATTRIBUTES
tool=$TOP/tests/system/host_metrics.py
chmod 777 .

# as_nobody COMMAND...: without privileges, where there are any
as_nobody() {
	if [ "$(id -u)" = 0 ]; then
		exec setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs "$@"
	else
		exec "$@"
	fi
}

# collect FOLDER BUSY: a collector; its port is $port
collect() {
	mkdir -p "$1"
	start "$1.out" python3 "$tool" listen "$1" "$2"
	until_true 20 test -s "$1/port" || fail "no collector: $(cat "$1.out.err")"
	port=$(cat "$1/port")
}

# came FOLDER COUNT: that many bodies of metrics are there
came() {
	[ "$(find "$1" -name '*.metrics' | wc -l)" -ge "$2" ]
}

# --- over HTTP, all scrapers, nobody; the collector is busy twice: what it did not take comes again ---
collect http 2
cat >http.yaml <<END
receivers:
  hostmetrics:
    collection_interval: 300ms
    initial_delay: 0s
    scrapers: { cpu: {}, memory: {}, disk: {}, network: {}, load: {}, filesystem: {}, paging: {} }
processors:
  resource: { attributes: [{ key: env, action: upsert, value: staging }] }
  resourcedetection: { detectors: [env, system] }
  batch:
exporters:
  otlphttp: { endpoint: "http://127.0.0.1:$port" }
  debug:
service:
  telemetry: { metrics: { address: "127.0.0.1:0" } }
  pipelines:
    metrics: { receivers: [hostmetrics], processors: [resourcedetection, resource, batch], exporters: [otlphttp, debug] }
END
"$HEARTH" check --config http.yaml --print >out 2>err || fail "check: $(cat out err)"
grep -qx 'metrics: hostmetrics -> resourcedetection -> resource -> batch -> otlphttp, debug' out || fail "check does not draw: $(cat out)"
grep -qx '# hostmetrics: cpu, memory, disk, network, load, filesystem, paging; each 300ms' out || fail "no receiver: $(cat out)"
python3 "$tool" before http
start told env OTEL_RESOURCE_ATTRIBUTES=team=a bash -c "$(declare -f as_nobody); as_nobody \"\$@\"" - "$HEARTH" --config http.yaml
until_true 30 came http 3 || fail "nothing comes: $(cat told.err)"
python3 "$tool" judge http || fail "the metrics differ from /proc: $(cat told.err)"
grep -q 'nothing is sampled here: metrics of the host go to ' told.err || fail "the start: $(cat told.err)"
grep -q 'metrics: a request of [0-9]* bytes' told.err || fail "debug says nothing: $(cat told.err)"
[ "$(find http -name '*.refused' | wc -l)" = 2 ] || fail "not refused twice: $(ls http)"
cmp http/1.refused http/2.refused && cmp http/1.refused http/3.metrics || fail "what was refused for now did not come again: $(ls http)"
python3 "$tool" print http/3.metrics >points
grep -q '^resource env=staging,.*host.name=.*,team=a$' points || fail "the resource: $(head -n 1 points)"
url=$(sed -n 's/.*listening on \(http:[^ ]*\) for .metrics.*/\1/p' told.err)
curl -s "$url/metrics" >counters
grep -q '^hearth_host_metrics_points_total [1-9]' counters || fail "$(grep hearth_host counters)"
grep -q '^hearth_host_metrics_dropped_points_total 0' counters || fail "$(grep hearth_host counters)"
! grep '^hearth_host_metrics_\(unread\|bad_lines\)_total' counters | grep -v ' 0$' || fail "something is not read"
grep -q '^hearth_forwarded_requests_total{.*signal="metrics"} [1-9]' counters || fail "$(grep forwarded counters)"
stop "$started"

# --- over gRPC, to another hearth; a metric that is off, a device that is left out, of a root that is made up ---
cat >gateway.yaml <<'END'
receivers: { otlp: { protocols: { grpc: { endpoint: 127.0.0.1:0 } } } }
exporters: { file: { path: got.jsonl } }
service: { pipelines: { profiles: { receivers: [otlp], exporters: [file] } } }
END
start gateway "$HEARTH" --config gateway.yaml
until_true 20 grep -q 'for OTLP/gRPC' gateway.err || fail "no gateway: $(cat gateway.err)"
gateway=$started grpc=$(sed -n 's/.*grpc:..\([0-9.:]*\) .*/\1/p' gateway.err | head -n 1)
mkdir -p root/proc/1/net
printf 'cpu 1 1 1 1\ncpu0 150 0 0 0 0 0 0 0 0 0\nbtime 1600000000\n' >root/proc/stat
printf 'MemTotal: 4 kB\nMemFree: 1 kB\nBuffers: 1 kB\nCached: 1 kB\nSReclaimable: 0 kB\nSUnreclaim: 0 kB\n' >root/proc/meminfo
printf '8 0 sda 1 2 3 4 5 6 7 8 9 10 11\n7 0 loop0 1 2 3 4 5 6 7 8 9 10 11\n' >root/proc/diskstats
printf ' | |\n | |\n  eth0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n' >root/proc/1/net/dev
cat >grpc.yaml <<END
receivers:
  hostmetrics:
    collection_interval: 200ms
    root_path: $PWD/root
    scrapers:
      cpu: { metrics: { system.cpu.time: { enabled: true }, system.cpu.utilization: { enabled: false } } }
      memory: { metrics: { system.memory.usage: { enabled: false } } }
      disk: { exclude: { devices: ['^loop'], match_type: regexp } }
      network:
exporters: { otlp: { endpoint: "$grpc", tls: { insecure: true } } }
service: { pipelines: { metrics: { receivers: [hostmetrics], exporters: [otlp] } } }
END
start sender "$HEARTH" --config grpc.yaml
until_true 20 test -s got.metrics.jsonl || fail "nothing comes: $(cat sender.err gateway.err)"
stop "$started"
kill -INT "$gateway"
wait "$gateway" || fail "the gateway ends with $?: $(cat gateway.err)"
python3 - <<'END' || fail "the made-up host is not what came: $(cat got.metrics.jsonl)"
import json
told = {}
for line in open("got.metrics.jsonl"):
    for m in json.loads(line)["resourceMetrics"][0]["scopeMetrics"][0]["metrics"]:
        for p in (m.get("sum") or m["gauge"])["dataPoints"]:
            labels = {a["key"]: a["value"]["stringValue"] for a in p.get("attributes", [])}
            assert p["startTimeUnixNano"] == "1600000000000000000", p
            told[m["name"], *sorted(labels.values())] = p["asDouble"] if "asDouble" in p else int(p["asInt"])
assert told["system.cpu.time", "cpu0", "user"] == 1.5, told
assert told["system.disk.io", "read", "sda"] == 3 * 512 and told["system.disk.io", "sda", "write"] == 7 * 512, told
assert told["system.network.io", "eth0", "receive"] == 1 and told["system.network.dropped", "eth0", "transmit"] == 12, told
assert not [k for k in told if "loop0" in k or k[0] == "system.memory.usage"], told
END

# --- what there is not is refused by name ---
# refused SCRAPERS PIPELINES WHY
refused() {
	local status=0
	"$HEARTH" check --config "yaml:{receivers: {hostmetrics: {scrapers: {$1}}}, exporters: {nop: , store: {folder: /x}}, service: {pipelines: {$2}}}" \
		>out 2>err || status=$?
	[ $status = 1 ] && grep -qF -- "$3" err || fail "status $status: $(cat out err)"
}
refused 'process: ' 'metrics: {receivers: [hostmetrics], exporters: [nop]}' "hearth has no scraper 'process'; there are cpu, memory, disk, network, load, filesystem, paging"
refused 'cpu: ' 'metrics: {receivers: [hostmetrics], exporters: [store]}' "'store' takes no metrics"
refused 'cpu: ' 'profiles: {receivers: [hostmetrics], exporters: [nop]}' "'hostmetrics' tells metrics, which are no profiles"

# --- beside an agent: one exporter for both, and the half without privileges reads and sends ---
need_bpf
collect both 0
cat >both.yaml <<END
receivers:
  profiling: { samples_per_second: 99, report_interval: 300ms }
  hostmetrics: { collection_interval: 300ms, scrapers: { cpu: , memory: , disk: , network: , load: , filesystem: , paging: } }
  hostmetrics/slow: { collection_interval: 1h, initial_delay: 1h, scrapers: { load: } }
exporters: { otlphttp: { endpoint: "http://127.0.0.1:$port" } }
service:
  pipelines:
    profiles: { receivers: [profiling], exporters: [otlphttp] }
    metrics: { receivers: [hostmetrics, hostmetrics/slow], exporters: [otlphttp] }
END
python3 "$tool" before both
start agent "$HEARTH" --config both.yaml
until_true 60 came both 2 || fail "no metrics: $(cat agent.err)"
until_true 60 test -s both/profiles || fail "no profiles: $(cat agent.err)"
python3 "$tool" judge both || fail "the metrics differ from /proc: $(cat agent.err)"
! grep -q 'tells nothing' agent.err || fail "the half without privileges cannot read: $(cat agent.err)"
stop "$started"
accounted agent.err

# --- the same half, of a host that is mounted elsewhere ---
collect mounted 0
sed -e "s/:[0-9]*\"/:$port\"/" -e "s|hostmetrics: {|& root_path: $PWD/root,|; s|hostmetrics/slow: {|& root_path: $PWD/root,|" \
	-e 's/, load: , filesystem: , paging: //' both.yaml >mounted.yaml
start agent "$HEARTH" --config mounted.yaml
until_true 60 came mounted 1 || fail "no metrics: $(cat agent.err)"
stop "$started"
python3 "$tool" print mounted/1.metrics >points
grep -q '^system.disk.io By monotonic device=sda,direction=read 1536 1600000000000000000$' points || fail "the made-up host: $(cat points)"
