#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# /metrics beside a profiler without a page, on an address of its own that has nothing else; and what it says of memory: each part that
# docs/agent.md names, no more in all than the allocator gave, not much less, and what is resident as the kernel has it.
. "$TOP/tests/system/lib.sh"
need_bpf

# hearth NAME ARG...: in the background, until it says where its metrics are; sets metrics, and pid
hearth() {
	start_metrics "$1" --report-interval 500ms "${@:2}"
	pid=$started
}

# get STATUS CURL-OPTION... URL
get() {
	local got
	got=$(curl -s -o answer -w '%{http_code}' "${@:2}") || :
	[ "$got" = "$1" ] || fail "${*:2}: status $got, not $1: $(head -c 300 answer)"
}

# names_are_usual: what was got is as Prometheus' own checker wants names, units and texts
names_are_usual() {
	local series
	for series in hearth_process_cpu_seconds_total process_{cpu_seconds_total,resident_memory_bytes,virtual_memory_bytes,open_fds,max_fds,start_time_seconds}; do
		grep -qE "^$series [0-9.]*[1-9][0-9.]*$" answer || fail "no $series: $(grep "$series" answer)"
	done
	if command -v promtool >/dev/null; then
		promtool check metrics <answer >complaints 2>&1 && [ ! -s complaints ] || fail "promtool check metrics: $(cat complaints)"
	else
		left_out promtool "not here"
	fi
}

# parts WORD...: the series of these parts, in what was got, are said
parts() {
	local part
	for part; do
		grep -q "^hearth_memory_bytes{part=\"$part\"} [1-9]" answer || fail "no part '$part': $(grep hearth_memory answer)"
		grep -q "\`$part\`" "$TOP/docs/agent.md" || fail "docs/agent.md does not know '$part'"
	done
}
agent=(processes files 'unwind rows' 'samples to walk' stacks names 'kernel symbols' 'profile builder' truth metrics)
named() {
	get 200 "$metrics/metrics"
	# read, or kept by an earlier start
	grep -qE '^hearth_(memory_bytes\{part|mapped_bytes\{what)="kernel symbols"\} [0-9]{7}' answer
}

# --- a collector alone: no other port, and nothing but metrics on this one ---
hearth shipped --collector http://127.0.0.1:1 --spool spool --metrics-address 127.0.0.1:0
until_true 20 named || fail "no kernel frame was named: $(cat answer)"
get 200 "$metrics/healthz"
for path in / /api/v1/status /debug/pprof/profile /workloads; do
	get 404 "$metrics$path"
done
get 404 -H 'Content-Type: application/json' -d '{}' "$metrics/v1development/profiles"
get 200 "$metrics/metrics"
parts "${agent[@]}"
names_are_usual
grep -q '^hearth_export_queue_bytes [0-9]' answer || fail "no size of the queue"
# of both halves, where there are two
backend=$(pgrep -x hearth-backend -P "$(pgrep -x hearth-keeper -P "$pid")") || backend=
for half in $pid $backend; do
	cat "/proc/$half/status"
done | awk '/^(VmRSS|RssAnon):/ { kb[$1] += $2 } END { for (name in kb) print name, kb[name], "kB" }' >status
# The kernel maps a ring behind a page, twice, for reading.
awk '$2 == "r--s" && /anon_inode:bpf-map/ { print $1 }' "/proc/$pid/maps" >rings
python3 - <<'PYTHON' || fail "memory does not add up"
import re
said = {(name, label): int(value) for name, label, value in
        re.findall(r'^hearth_(\w+)_bytes\{\w+="([^"]*)"\} (\d+)$', open("answer").read(), re.M)}
kernel = {key: int(value) << 10 for key, value in re.findall(r"(\w+):\s*(\d+) kB", open("status").read())}
parts = sum(value for (name, _), value in said.items() if name == "memory")
heap = said["heap", "used"] + said["heap", "mapped"]
resident = sum(value for (name, _), value in said.items() if name == "resident")
sizes = [end - start - 4096 for start, end in ((int(x, 16) for x in line.split("-")) for line in open("rings"))]
rings = sum(size // 2 for size in sizes if size >= 1 << 18)
cpus = int(re.split("[-,]", open("/sys/devices/system/cpu/possible").read().strip())[-1]) + 1
assert rings and said["mapped", "rings"] == rings, (said, sizes)
assert min(cpus, 256) <= 4 * sum(size >= 1 << 18 for size in sizes) < max(8, 2 * cpus + 6), sizes # one for 4 CPUs, a power of 2
print(f"{parts / 1e6:.1f} MB in parts of {heap / 1e6:.1f}; {resident / 1e6:.1f} MB resident, {kernel['VmRSS'] / 1e6:.1f} says the kernel")
assert heap - max(heap / 2, 3e6) < parts < heap * 1.1, said # libbpf's objects are no part: 2 MB
assert abs(resident - kernel["VmRSS"]) < 4 << 20 and abs(said["resident", "anonymous"] - kernel["RssAnon"]) < 4 << 20, said
PYTHON

# --- the port is taken: who asked for it hears that ---
status=0
timeout 20 "$HEARTH" run --collector http://127.0.0.1:1 --metrics-address "${metrics#http://}" >second.out 2>&1 || status=$?
[ $status = 1 ] && grep -q "cannot listen on '${metrics#http://}'" second.out || fail "status $status: $(cat second.out)"
stop "$pid"

# --- beside a page ---
hearth kept --store store --http-address 127.0.0.1:0 --metrics-address 127.0.0.1:0
until_true 20 grep -q 'page at http' kept.err || fail "no page: $(cat kept.err)"
page=$(sed -n 's/.*page at \(http:[^ ]*\)\/$/\1/p' kept.err)
[ -n "$page" ] && [ "$page" != "$metrics" ] || fail "no page: $(cat kept.err)"
until_true 20 named || fail "no kernel frame was named"
get 200 "$page/api/v1/top"
# The store's parts are told each ten seconds.
kept() {
	get 200 "$metrics/metrics"
	grep -q '^hearth_memory_bytes{part="store numbers"} [1-9]' answer
}
until_true 20 kept || fail "nothing is kept: $(cat answer)"
parts "${agent[@]}" 'store numbers' 'store writer' 'store names' 'store readers' SQLite 'query functions'
names_are_usual
get 200 "$page/api/v1/status"
stop "$pid"

# --- a receiver ---
start serve "$HEARTH" serve --http-address 127.0.0.1:0 --grpc-address off --store :memory:
until_true 20 grep -q 'page at http' serve.err || fail "no page: $(cat serve.err)"
page=$(sed -n 's/.*page at \(http:[^ ]*\)\/$/\1/p' serve.err)
get 400 -H 'Content-Type: application/json' -d '{' "$page/v1development/profiles"
get 200 "$page/metrics"
names_are_usual
stop "$started"
