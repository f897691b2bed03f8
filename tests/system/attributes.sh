#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Attributes of every resource: containers by control groups of both versions, services by the environment of their
# processes, the machine; from the process to a request as protobuf's own tools read it, to selectors and labels of the
# store, and to --container.
. "$TOP/tests/system/lib.sh"
need_bpf

id_2=$(printf 'hearth%s' $$ | sha256sum | cut -c 1-64)
id_1=$(printf 'first%s' $$ | sha256sum | cut -c 1-64)
mount=$(awk '$0 ~ / - cgroup2 / { print $5; exit }' /proc/self/mountinfo)
group=$mount/hearth-$$.slice v1=$PWD/v1
clean_up() {
	for pid in "${pids[@]}"; do kill -KILL "$pid" 2>/dev/null || :; done
	wait
	[ ! -d "$group" ] || find "$group" -depth -type d -exec rmdir {} + 2>/dev/null || :
	[ ! -d "$v1/docker" ] || { find "$v1/docker" -depth -type d -exec rmdir {} + && umount "$v1"; } 2>/dev/null || :
}
trap clean_up EXIT
[ -n "$mount" ] && mkdir -p "$group/docker-$id_2.scope/init" 2>/dev/null || skip "no control groups of version 2 that can be written to"

# in_group FOLDER OUTPUT COMMAND...: joins it and becomes COMMAND
in_group() {
	local folder=$1 out=$2
	shift 2
	start "$out" sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$folder" "$@"
}
busy='while :; do :; done'
# Beyond the container's own group, and what one program says of itself while its container does.
in_group "$group/docker-$id_2.scope/init" two.out env OTEL_SERVICE_NAME=shop COLOR=blue SECRET=none \
	OTEL_RESOURCE_ATTRIBUTES='service.name=other,service.version=1%2C5,container.id=mine,host.name=web' dash -c "$busy"
two=$started
start plain.out env -u OTEL_SERVICE_NAME -u OTEL_RESOURCE_ATTRIBUTES dash -c "$busy"
plain=$started
one=
mkdir "$v1"
if mount -t cgroup -o "none,name=hearth$$" none "$v1" 2>/dev/null; then
	mkdir -p "$v1/docker/$id_1"
	in_group "$v1/docker/$id_1" one.out dash -c "$busy"
	one=$started
else
	echo "no control groups of version 1 here"
fi

start serve.out "$HEARTH" serve --grpc-address off --http-address 127.0.0.1:0 --store "$PWD/store" --sink file=all.framed
server=$started
until_true 10 grep -q 'page at' serve.out.err || fail "does not listen: $(cat serve.out.err)"
url=$(sed -n 's/.*listening on \(http:[^ ]*\) for OTLP.*/\1/p' serve.out.err)
OTEL_SERVICE_NAME=rest OTEL_RESOURCE_ATTRIBUTES='k8s.node.name=n%201,host.id=told' OTEL_EXPORTER_OTLP_ENDPOINT=$url \
	start run.out "$HEARTH" run -F 199 --report-interval 0.5s --env-vars COLOR,EMPTY -p "$two,$plain${one:+,$one}" --symbols off
runner=$started
# Each of them was met.
reports() {
	"$HEARTH" report --format print all.framed 2>/dev/null >print && for pid in "$two" "$plain" $one; do
		grep -qx "  process.pid: $pid" print || return 1
	done
}
until_true 20 reports || fail "not all processes are in: $(cat run.out.err)"
stop "$runner"
kill -STOP "$two" "$plain" $one # they leave the CPUs to what follows

"$HEARTH" report --format print all.framed >print
# says PID LINE...: exactly these lines of the process's resource, beside those that all have
says() {
	local pid=$1
	shift
	awk -v pid="  process.pid: $pid" '/New Resource/ { text = ""; on = 1; next } /New Profile/ { on = 0 } on { text = text $0 "\n" } $0 == pid { mine = 1 }
		!on && mine { printf "%s", text; exit }' print | grep -vE '^  (process\.(pid|executable\.(name|path))|host\.arch|os\.[a-z]+|systemd\.unit\.name): ' | sort >got
	printf '  %s\n' "$@" | sort | diff - got || fail "process $pid does not say so"
	echo "ok $test"
}
host=$(uname -n)
test='container and service of a process'
says "$two" "container.id: $id_2" 'service.name: shop' 'service.version: 1,5' 'host.name: web' 'process.environment_variable.COLOR: blue' \
	'k8s.node.name: n 1' 'host.id: told'
test='a process that says nothing'
says "$plain" 'service.name: rest' "host.name: $host" 'k8s.node.name: n 1' 'host.id: told'
if [ -n "$one" ]; then
	test='a container of version 1'
	says "$one" "container.id: $id_1" 'service.name: rest' "host.name: $host" 'k8s.node.name: n 1' 'host.id: told'
fi
test='what all say'
for line in "host.arch: $(dpkg --print-architecture)" 'os.type: linux' "os.description: $(. /etc/os-release && echo "$PRETTY_NAME")"; do
	[ "$(grep -cxF "  $line" print)" = "$(grep -c 'New Resource' print)" ] || fail "$line stands in $(grep -cxF "  $line" print) resources"
done
echo "ok $test"

# pids QUERY: of those who answer to it
pids_of() {
	curl -fsS -G "$url/api/v1/values" -d label=process.pid --data-urlencode "query=$1" |
		python3 -c 'import json, sys; print(*sorted(v["value"] for v in json.load(sys.stdin)["values"]))'
}
test='selectors'
[ "$(pids_of '{service_name="shop"}')" = "$two" ] || fail "service_name: $(pids_of '{service_name="shop"}')"
[ "$(pids_of '{container_id!=""}')" = "$(printf '%s\n' "$two" $one | sort | paste -sd' ')" ] || fail "container_id: $(pids_of '{container_id!=""}')"
[ "$(pids_of "{container=\"$id_2\"}")" = "$two" ] || fail "container: $(pids_of "{container=\"$id_2\"}")"
curl -fsS "$url/api/v1/labels" >labels
for label in container.id service.name host.name process.environment_variable.COLOR; do
	grep -q "\"$label\"" labels || fail "no label $label: $(cat labels)"
done
echo "ok $test"
stop "$server"

test='--container'
kill -CONT "$two" "$plain"
"$HEARTH" record -q -F 199 -d 1 --symbols off --container "$(echo "$id_2" | cut -c 1-12)" -o only.otlp 2>err || fail "$test: $(cat err)"
"$HEARTH" report --format print only.otlp >print
[ "$(grep 'process.pid' print | sort -u)" = "  process.pid: $two" ] || fail "$test: $(grep process.pid print)"
grep -qx "  container.id: $id_2" print || fail "$test: $(cat print)"
echo "ok $test"

test='a list that is none'
OTEL_RESOURCE_ATTRIBUTES='a=1,b' "$HEARTH" record -q -d 0.3 -p "$plain" -o no.otlp 2>err || fail "$test: $(cat err)"
grep -q "OTEL_RESOURCE_ATTRIBUTES is 'a=1,b'" err || fail "$test: $(cat err)"
! "$HEARTH" record --resource-attributes 'a=1,b' -d 0.1 -o no.otlp 2>err || fail "$test: taken"
grep -q -- '--resource-attributes' err || fail "$test: $(cat err)"
echo "ok $test"
