#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Who each process of hearth's is, as the kernel has it (tools/process-table), wherever hearth is started: `hearth` alone on a
# terminal; a store below a folder that is closed to others, and below an open one; without user namespaces; with seven capabilities, and
# with four; `hearth serve` as root. docs/halves.md shows these tables. In Docker's containers: docker.sh.
. "$TOP/tests/system/lib.sh"
need_bpf
unset HEARTH_ONE_PROCESS
mkdir -m 700 closed
mkdir -m 755 open
chmod 755 .
cp "$HEARTH" hearth
chmod 755 hearth
gcc -D_GNU_SOURCE -o no_user_namespaces "$TOP/tests/halves/no_user_namespaces.c" -lseccomp
start busy "$TRUTH/c_chain" 170

# table PID: into the file processes, once hearth has all that it will have
table() {
	complete() { pgrep -P "$1" -x hearth-open && [ -z "$(pgrep -P "$1" -x hearth)" ]; }
	until_true 20 complete "$1" || fail "no hearth-open: $("$TOP/tools/process-table" "$1")"
	"$TOP/tools/process-table" "$1" | tee processes
}

# is NAME UID FILTERS NETWORKS CAPABILITIES: the first of that name; UID "own" is neither root nor nobody. No process of hearth's may
# get new privileges.
is() {
	local name uid nnp filters fds networks capabilities
	read -r name uid nnp filters fds networks capabilities < <(awk -v name="$1" '$1 == name { print; exit }' processes)
	[ "$2" != own ] || case "${uid:-0}" in 0 | 65534) fail "$1 runs as ${uid:-nobody}" ;; esac
	[ "$2" = own ] || [ "$uid" = "$2" ] || fail "$1 runs as $uid, not as $2"
	[ "$nnp" = 1 ] && [ "$filters" -ge "$3" ] && [ "$capabilities" = "$5" ] || fail "$1 is: $uid $nnp $filters $fds $networks $capabilities"
	[ "$4" = 0 ] && [ "$networks" != 0 ] && fail "$1 has a socket of a network"
	[ "$4" = 0 ] || [ "$networks" -gt 0 ] || fail "$1 has no socket of a network"
}

# halves UID CAPABILITIES OF-OPEN OF-KEEPER HELPERS: of the two halves; each helper's user is HELPERS, and none has a capability
halves() {
	is hearth 0 1 0 "$2"
	is hearth-open 0 1 0 "$3"
	is hearth-keeper 0 1 0 "$4"
	is hearth-backend "$1" 2 1 -
	! awk -v uid="$5" '$1 ~ /^hearth-(elf|code|names|dwarf)$/ && ($2 != uid || $3 != 1 || $4 < 1 || $6 != 0 || $7 != "-")' processes | grep . ||
		fail "this is a helper"
}

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

all=DAC_READ_SEARCH,KILL,IPC_LOCK,SYS_PTRACE,SYS_NICE,SYSLOG,PERFMON,BPF,CHECKPOINT_RESTORE
all_open=DAC_READ_SEARCH,SYS_PTRACE,CHECKPOINT_RESTORE
all_keeper=DAC_READ_SEARCH,KILL,SETGID,SETUID,NET_BIND_SERVICE
few=+sys_admin,+sys_ptrace,+syslog,+dac_read_search

for folder in closed open; do
	store=$folder/store
	run "hearth run, its store below a folder that is $folder to others" ./hearth
	halves own "$all" "$all_open" "$all_keeper" 65534
	owned "$store"
	stop "$hearth"
done

store=open/spaces
run "without user namespaces" ./no_user_namespaces ./hearth
! ./no_user_namespaces unshare -U true 2>/dev/null || fail "there are user namespaces"
for name in hearth hearth-open hearth-keeper hearth-elf; do # the filter that refuses them is one more
	awk -v name=$name '$1 == name && $4 < 2 { exit 1 }' processes || fail "$name has no filter of its own"
done
halves own "$all" "$all_open" "$all_keeper" 65534
owned "$store"
stop "$hearth"

store=open/seven
run "with seven capabilities" setpriv --bounding-set="-all,$few,+setuid,+setgid,+chown" --inh-caps=-all ./hearth
halves own DAC_READ_SEARCH,SYS_PTRACE,SYS_ADMIN,SYSLOG DAC_READ_SEARCH,SYS_PTRACE,SYS_ADMIN DAC_READ_SEARCH,SETGID,SETUID 65534
owned "$store"
stop "$hearth"

store=open/four
run "with four capabilities: the backend keeps its user" setpriv --bounding-set="-all,$few" --inh-caps=-all ./hearth
halves 0 DAC_READ_SEARCH,SYS_PTRACE,SYS_ADMIN,SYSLOG DAC_READ_SEARCH,SYS_PTRACE,SYS_ADMIN DAC_READ_SEARCH 0
stop "$hearth"

echo
echo "--- hearth alone, on a terminal"
if command -v script >/dev/null; then
	port=$(python3 -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])')
	STATE_DIRECTORY=$PWD/open/state TERM=xterm start screen script -qefc "exec ./hearth -F 99 --http-address 127.0.0.1:$port" /dev/null
	until_true 30 curl -sf "http://127.0.0.1:$port/healthz" || fail "no page: $(cat -v screen screen.err | tail -n 5)"
	hearth=$(pgrep -P "$started") || fail "no hearth below script"
	table "$hearth"
	halves own "$all" "$all_open" "$all_keeper" 65534
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
