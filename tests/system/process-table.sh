#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Who each process of hearth's is, as the kernel has it (tools/process-table), wherever hearth is started: `hearth` alone on a
# terminal; a store below a folder that is closed to others, and below an open one; without user namespaces; with seven capabilities, and
# with four; `hearth serve` as root. docs/halves.md shows these tables. In containers of docker
# and podman: docker.sh.
. "$TOP/tests/system/lib.sh"
. "$TOP/tests/halves/table.sh"
need_bpf
unset HEARTH_ONE_PROCESS
mkdir -m 700 closed
mkdir -m 755 open
chmod 755 .
cp "$HEARTH" hearth
chmod 755 hearth
gcc -D_GNU_SOURCE -o no_user_namespaces "$TOP/tests/halves/no_user_namespaces.c" -lseccomp
start busy "$TRUTH/c_chain" 170

# run NAME COMMAND...: hearth, until it samples; sets hearth
run() {
	echo
	echo "--- $1"
	start out "${@:2}" run -F 99 --http-address 127.0.0.1:0 --report-interval 200ms --store "$store"
	hearth=$started
	until_true 30 grep -q 'profiles go to' out.err || fail "$1: no profiler: $(cat out.err)"
	table "$hearth"
}

# owned FOLDER: by the backend's user altogether
owned() {
	[ "$(stat -c %u "$1" "$1"/* | sort -u)" = "$(awk '$1 == "hearth-backend" { print $2 }' processes)" ] || fail "whose store? $(ls -ln "$1")"
}

few=+sys_admin,+sys_ptrace,+syslog,+dac_read_search

for folder in closed open; do
	store=$folder/store
	run "hearth run, its store below a folder that is $folder to others" ./hearth
	of_all
	owned "$store"
	stop "$hearth"
done

store=open/spaces
run "without user namespaces" ./no_user_namespaces ./hearth
! ./no_user_namespaces unshare -U true 2>/dev/null || fail "there are user namespaces"
for name in hearth hearth-open hearth-proc hearth-keeper hearth-elf; do # the filter that refuses them is one more
	awk -v name=$name '$1 == name && $4 < 2 { exit 1 }' processes || fail "$name has no filter of its own"
done
of_all
owned "$store"
stop "$hearth"

store=open/seven
run "with seven capabilities" setpriv --bounding-set="-all,$few,+setuid,+setgid,+chown" --inh-caps=-all ./hearth
of_seven
owned "$store"
stop "$hearth"

store=open/four
run "with four capabilities: the backend keeps its user" setpriv --bounding-set="-all,$few" --inh-caps=-all ./hearth
of_four
stop "$hearth"

echo
echo "--- hearth alone, on a terminal"
if command -v script >/dev/null; then
	port=$(python3 -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])')
	STATE_DIRECTORY=$PWD/open/state TERM=xterm start screen script -qefc "exec ./hearth -F 99 --http-address 127.0.0.1:$port" /dev/null
	until_true 30 curl -sf "http://127.0.0.1:$port/healthz" || fail "no page: $(cat -v screen screen.err | tail -n 5)"
	hearth=$(pgrep -P "$started") || fail "no hearth below script"
	table "$hearth"
	of_all
	kill -INT "$hearth"
	wait "$started" || fail "hearth on a terminal ended with $?"
else
	left_out alone "no script here"
fi

echo
echo "--- hearth serve as root"
echo word >closed/token
chmod 600 closed/token
start served ./hearth serve --store closed/store --http-address 127.0.0.1:0 --grpc-address off --token-file closed/token
until_true 20 grep -q 'page at http' served.err || fail "no page: $(cat served.err)"
until_true 10 pgrep -P "$started" -x hearth-keeper
"$TOP/tools/process-table" "$started" | tee processes
is hearth own 1 1 -
is hearth-keeper 0 1 0 DAC_READ_SEARCH,SYS_PTRACE,CHECKPOINT_RESTORE
[ "$(awk '$1 == "hearth" { print $2 }' processes)" = "$(stat -c %u closed/store)" ] || fail "serve is not the store's owner"
stop "$started"
echo "all as it should be"
