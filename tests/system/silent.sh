#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Programs that let nobody look into them (tests/hostile/silent.c), all at once beside an honest one: that has its samples in each
# second, the silent ones are counted and have theirs too, hearth ends at SIGTERM at once, and who hung is gone with the silent ones.
# Alone: ps and pgrep hang as long as these programs run.
. "$TOP/tests/system/lib.sh"
need_bpf
command -v gcc >/dev/null || skip "no gcc here"
[ -c /dev/fuse ] && unshare -m true 2>/dev/null || skip "no FUSE file systems here"

seconds=12
gcc -std=gnu17 -O1 -D_GNU_SOURCE -Wall -fno-omit-frame-pointer -pthread -Wl,--build-id -o silent "$TOP/tests/hostile/silent.c"
gcc -std=gnu17 -O1 -D_GNU_SOURCE -Wall -fno-omit-frame-pointer -pthread -Wl,--build-id=0xfeedc0de0000000000000001 -o silent_alone "$TOP/tests/hostile/silent.c"
start honest "$TRUTH/c_chain" $((seconds + 25))
honest=$started
kinds=(stack maps exec code debug)
[ "$(cat /proc/sys/vm/unprivileged_userfaultfd 2>/dev/null)" = "" ] || kinds+=(fault)
declare -A pid_of
for kind in "${kinds[@]}"; do
	start "$kind" nice -n 19 "./$([ "$kind" = debug ] && echo silent_alone || echo silent)" "$kind" $((seconds + 25))
	pid_of[$kind]=$started
done
ready() { grep -q ready "$kind"; }
for kind in "${kinds[@]}"; do
	until_true 20 ready || fail "$kind does not begin: $(cat "$kind.err")"
done

# child_of PID: the child that executes; not the server of the file system
child_of() {
	local child
	for child in $(cat "/proc/$1/task/"*/children); do
		[ "$(cat "/proc/$child/comm")" = server ] || echo "$child"
	done
}
# Truth without hearth: who looks into such a process hangs.
hangs() {
	local status=0
	timeout -s KILL 1 head -c 1 "/proc/$1/$2" >/dev/null 2>&1 || status=$?
	[ $status = 137 ]
}
hangs "${pid_of[maps]}" environ || fail "the environment of 'maps' can be read"
! timeout -s KILL 1 ls "/proc/${pid_of[debug]}/root/usr/lib/debug/.build-id" >/dev/null 2>&1 || fail "the debug files of 'debug' can be looked for"
hangs "$(child_of "${pid_of[exec]}")" maps || fail "the mappings of 'exec' can be read"

start out "$HEARTH" run -F 99 --off-cpu -p "$honest,$(IFS=,; echo "${pid_of[*]}")" --http-address 127.0.0.1:0 --report-interval 1s \
	--store store
hearth=$started
until_true 60 grep -q "profiles go to" out.err || fail "no profiler: $(cat out.err)"
page=$(sed -n 's/.*page at \(http:[^ ]*\)\/$/\1/p' out.err)
sleep $seconds

# of PID: the weights of its samples in each second, a line each
of() {
	curl -sfG "$page/api/v1/timeline?from=first&to=now&step=1&kind=samples" --data-urlencode "query={process.pid=\"$1\"}" |
		python3 -c 'import json, sys
for one in json.load(sys.stdin)["series"]: print(*one["weights"], sep="\n")'
}
of "$honest" | sed '1d;$d' >seconds_of # the first and the last are no whole ones
xargs echo "the honest one's samples in each second:" <seconds_of
[ "$(wc -l <seconds_of)" -ge $((seconds - 3)) ] || fail "it has samples in $(wc -l <seconds_of) seconds of $seconds"
! grep -qx 0 seconds_of || fail "it has none in a second"
for kind in "${kinds[@]}"; do
	n=$(of "${pid_of[$kind]}" | awk '{ n += $1 } END { print n + 0 }')
	echo "$kind: $n samples"
	[ "$n" -gt 0 ] || fail "'$kind' has no samples"
done

curl -sf "$page/metrics" >metrics
metric() { awk -v name="$1" '$1 == name { print $2 }' metrics; }
silent=$(metric hearth_processes_silent_total)
left_out=$(metric hearth_process_reads_left_out_total)
echo "silent $silent times; $left_out looks were left out"
[ "$silent" -ge 3 ] && [ "$silent" -le 40 ] && [ "$left_out" -gt 0 ] || fail "three programs are silent, seldom asked and left alone meanwhile"
for kind in stack maps; do
	grep -q "process ${pid_of[$kind]} lets nobody look" out.err || fail "nothing is said of '$kind': $(cat out.err)"
done

for keeper in $(cat "/proc/$hearth/task/$hearth/children"); do
	[ "$(cat "/proc/$keeper/comm")" != hearth-proc ] || break
done
[ "$(cat "/proc/$keeper/comm")" = hearth-proc ] || fail "no hearth-proc"
workers=$(cat "/proc/$keeper/task/$keeper/children")
began=$SECONDS
kill -TERM "$hearth"
wait "$hearth" || fail "exit status $? after SIGTERM: $(cat out.err)"
[ $((SECONDS - began)) -le 5 ] || fail "hearth took $((SECONDS - began)) s to end"
accounted out.err

for kind in "${kinds[@]}"; do
	kill -KILL "${pid_of[$kind]}"
	wait "${pid_of[$kind]}" 2>/dev/null || :
done
# gone: of these processes nobody runs any more
gone() {
	local pid state
	for pid in "$@"; do
		state=$(cut -d' ' -f3 "/proc/$pid/stat" 2>/dev/null || :)
		[ -z "$state" ] || [ "$state" = Z ] || return 1
	done
}
# shellcheck disable=SC2086 # several words
until_true 10 gone "$keeper" $workers || fail "of hearth-proc ($keeper) and its workers ($workers) somebody is left"
