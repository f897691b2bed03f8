# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Shared by the tests that hold hearth's processes, as the kernel has them (tools/process-table), against what docs/halves.md says.

# table PID: into the file processes, once hearth has all that it will have
table() {
	complete() { pgrep -P "$1" -x hearth-open && pgrep -P "$(pgrep -P "$1" -x hearth-proc)" -x hearth-proc && [ -z "$(pgrep -P "$1" -x hearth)" ]; }
	until_true 20 complete "$1" || fail "no hearth-open or hearth-proc: $("$TOP/tools/process-table" "$1")"
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

# halves UID CAPABILITIES OF-OPEN-AND-PROC OF-KEEPER HELPERS: of the two halves; each helper's user is HELPERS, and none has a capability
halves() {
	is hearth 0 1 0 "$2"
	is hearth-open 0 1 0 "$3"
	is hearth-proc 0 1 0 "$3"
	is hearth-keeper 0 1 0 "$4"
	is hearth-backend "$1" 2 1 -
	! awk -v uid="$5" '$1 ~ /^hearth-(elf|code|names|dwarf)$/ && ($2 != uid || $3 != 1 || $4 < 1 || $6 != 0 || $7 != "-")' processes | grep . ||
		fail "this is a helper"
}

all=DAC_READ_SEARCH,KILL,IPC_LOCK,SYS_PTRACE,SYS_NICE,SYSLOG,PERFMON,BPF,CHECKPOINT_RESTORE
all_open=DAC_READ_SEARCH,SYS_PTRACE,CHECKPOINT_RESTORE
all_keeper=DAC_READ_SEARCH,KILL,SETGID,SETUID,NET_BIND_SERVICE

# of_all, of_seven, of_four: the halves where hearth has all capabilities, the seven of docs/containers.md, or four of them
of_all() { halves own "$all" "$all_open" "$all_keeper" 65534; }
of_seven() { halves own DAC_READ_SEARCH,SYS_PTRACE,SYS_ADMIN,SYSLOG DAC_READ_SEARCH,SYS_PTRACE,SYS_ADMIN DAC_READ_SEARCH,SETGID,SETUID 65534; }
of_four() { halves 0 DAC_READ_SEARCH,SYS_PTRACE,SYS_ADMIN,SYSLOG DAC_READ_SEARCH,SYS_PTRACE,SYS_ADMIN DAC_READ_SEARCH 0; }
