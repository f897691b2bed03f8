#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A small shop of three services (Python, Go, Java) with OpenTelemetry's SDKs, one request in five slow, all of it sent to `hearth
# run`, by hand, as root: traces lead to code and back. SDKs come from the languages' registries into BUILD/shop; a part whose
# tools are not here is said and left out of the judgement. Leaves the store in BUILD/shop/kept: `hearth view` shows it again.
#   usage: shop.sh BUILD [SECONDS]
set -eu
build=$(realpath "${1:?usage: shop.sh BUILD [SECONDS]}")
seconds=${2:-20}
here=$(realpath "$(dirname "$0")")
agent_version=2.20.1
mkdir -p "$build/shop/price"
cd "$build/shop"
started=()
trap 'for pid in "${started[@]}"; do kill "$pid" 2>/dev/null || :; done' EXIT

[ -x venv/bin/python ] || python3 -m venv venv
venv/bin/pip -q install opentelemetry-sdk opentelemetry-exporter-otlp-proto-http
cp "$here/price.go" price/main.go
[ -e price/go.mod ] || (cd price && go mod init price && go mod tidy)
(cd price && go build -o ../price.bin .)
javac -d . "$here/Mail.java"
[ -e "opentelemetry-javaagent-$agent_version.jar" ] ||
	mvn -q dependency:copy "-Dartifact=io.opentelemetry.javaagent:opentelemetry-javaagent:$agent_version" -DoutputDirectory=.

rm -rf kept
"$build/hearth" run --off-cpu -F 997 --report-interval 1s --store kept --http-address 127.0.0.1:4640 >run.log 2>&1 &
hearth=$!
started+=("$hearth")
url=http://127.0.0.1:4640
export OTEL_EXPORTER_OTLP_ENDPOINT=$url OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf
# Go's collector sets goroutines aside, which then have no thread that could be sampled: one price is without it, and is held to the bar.
GOGC=off GOMEMLIMIT=2GiB OTEL_SERVICE_NAME=price ./price.bin 127.0.0.1:4641 >price.log 2>&1 &
started+=("$!")
OTEL_SERVICE_NAME=price-collected ./price.bin 127.0.0.1:4643 >collected.log 2>&1 &
started+=("$!")
OTEL_SERVICE_NAME=mail OTEL_METRICS_EXPORTER=none java "-javaagent:opentelemetry-javaagent-$agent_version.jar" -cp . Mail 4642 >mail.log 2>&1 &
started+=("$!")
for port in 4640 4641 4642 4643; do
	for _ in $(seq 300); do
		(: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null && break
		sleep 0.1
	done
done
sleep 2 # until the agent has met the services
venv/bin/python "$here/front.py" "$seconds" http://127.0.0.1:4642 http://127.0.0.1:4641 http://127.0.0.1:4643 >front.log 2>&1
sleep 6 # until spans of the others have come
python3 "$here/judge.py" "$url" || status=$?
PYTHONPATH=$here/../browser python3 "$here/pictures.py" "$url" . || echo "left out: pictures"
kill -INT "$hearth"
wait "$hearth" || :
tail -n 1 run.log
exit "${status:-0}"
