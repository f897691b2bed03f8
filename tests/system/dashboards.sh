#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The files under docs/compose and docs/grafana: YAML and JSON that others' parsers read, files that are there, command lines
# that hearth takes, and panels whose metrics a running hearth has. Prometheus itself, where it is installed, scrapes it.
. "$TOP/tests/system/lib.sh"

start serve "$HEARTH" serve --grpc-address off --http-address 127.0.0.1:0 -receiver prometheus -prometheus.metrics 127.0.0.1:0 \
	--sink dir=samples
server=$started
until_true 10 grep -q '/metrics alone' serve.err || fail "does not listen: $(cat serve.err)"
grep -q "these are the lazy backend's flags" serve.err || fail "no warning: $(cat serve.err)"
url=$(sed -n 's/.*listening on \(http:[^ ]*\) for OTLP.*/\1/p' serve.err)
metrics=$(sed -n 's/.*listening on \(http:[^ ]*\) for .metrics alone/\1/p' serve.err)
port=${metrics##*:}

python3 - "$url" <<'PY'
import json, sys, urllib.request
request = {"resourceProfiles": [{"resource": {"attributes": [{"key": "container.id", "value": {"stringValue": "box"}}]},
           "scopeProfiles": [{"profiles": [{"sampleType": {"typeStrindex": 1}, "samples": [
               {"stackIndex": 1, "attributeIndices": [1], "timestampsUnixNano": ["1"]}]}]}]}],
           "dictionary": {"stringTable": ["", "samples", "main", "process.executable.name"],
                          "attributeTable": [{}, {"keyStrindex": 3, "value": {"stringValue": "sh"}}],
                          "functionTable": [{}, {"nameStrindex": 2}], "locationTable": [{}, {"lines": [{"functionIndex": 1}]}],
                          "stackTable": [{}, {"locationIndices": [1]}]}}
r = urllib.request.Request(sys.argv[1] + "/v1development/profiles", json.dumps(request).encode(), {"Content-Type": "application/json"})
assert urllib.request.urlopen(r).status == 200
PY
curl -sf "$metrics/metrics" >metrics.txt || fail "no $metrics/metrics"
grep -q 'lazybackend_received_samples_total{container_id="box",process_executable_name="sh"} 1' metrics.txt || fail "not counted"
[ "$(curl -s -o reply -w '%{http_code}' "$metrics/v1development/profiles")" = 404 ] || fail "$metrics has more than /metrics"

PATH=/usr/bin:$PATH python3 - "$TOP/docs" "$HEARTH" metrics.txt <<'PY' || fail "see above"
import glob, json, os, re, subprocess, sys, yaml
docs, hearth, metrics = sys.argv[1:]
known = set(re.findall(r"^# TYPE (\S+)", open(metrics).read(), re.M))
for name in glob.glob(docs + "/grafana/*.json"):
    panels = json.load(open(name))["panels"]
    assert len({p["id"] for p in panels}) == len(panels) >= 2, name
    expressions = [t["expr"] for p in panels for t in p["targets"]]
    for e in expressions:
        used = set(re.findall(r"\b(?:lazybackend|hearth|process)_\w+", re.sub(r"by \([^)]*\)", "", e)))
        assert used and used <= known, "%s: %s is not in /metrics" % (e, used - known)
    assert 'sum (lazybackend_received_samples_total{container_id!="unknown"}) by (process_executable_name)' in expressions
    assert 'sum (lazybackend_received_locations_total{container_id!="unknown"}) by (language)' in expressions
    uids = {p["datasource"]["uid"] for p in panels}
files = glob.glob(docs + "/compose/**/*.y*ml", recursive=True)
assert len(files) >= 6
for name in files:
    value = yaml.safe_load(open(name))
    for source in value.get("datasources", []):
        if source["type"] == "prometheus":
            assert uids == {source["uid"]}, name
    for service, s in value.get("services", {}).items():
        assert set(s.get("depends_on", [])) <= set(value["services"]), name
        for volume in s.get("volumes", []):
            host = volume.split(":")[0]
            if host[0] == ".":
                assert os.path.exists(os.path.join(os.path.dirname(name), host)), "%s: %s" % (name, volume)
            else:
                assert host[0] == "/" or host in value["volumes"], "%s: %s" % (name, volume)
        if s["image"] == "hearth":  # --help comes last: what stands before it is parsed
            done = subprocess.run([hearth, *s["command"], "--help"], capture_output=True, text=True)
            assert done.returncode == 0, "%s: %s" % (name, done.stderr)
PY

if command -v prometheus >/dev/null; then
	promtool check config "$TOP/docs/compose/prometheus/prometheus.yml" >promtool.out 2>&1 || fail "$(cat promtool.out)"
	sed "s/hearth:2112/127.0.0.1:$port/; s/scrape_interval: .*/scrape_interval: 1s/; /- job_name: prometheus/,+2d" \
		"$TOP/docs/compose/prometheus/prometheus.yml" >prometheus.yml
	start prometheus prometheus --config.file=prometheus.yml --web.listen-address=127.0.0.1:0 --storage.tsdb.path=data
	until_true 20 grep -q 'Listening on' prometheus.err || fail "prometheus does not listen: $(cat prometheus.err)"
	address=$(sed -n 's/.*Listening on.*address=\([0-9.:]*\).*/\1/p' prometheus.err | head -1)
	scraped() {
		curl -sfG "http://$address/api/v1/query" --data-urlencode "query=$1" | grep -q '"value":\[[^]]*,"1"\]'
	}
	for series in lazybackend_received_profiles_total lazybackend_received_samples_total lazybackend_received_locations_total; do
		until_true 20 scraped "$series{container_id=\"box\"}" || fail "prometheus does not have $series"
	done
else
	left_out prometheus "not here"
fi
stop "$server"
