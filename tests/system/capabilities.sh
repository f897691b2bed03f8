#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# With the capabilities that the documentation names, with one less each time, and with those that containers get most easily:
# a recording works or says what is missing, `hearth check` says the same before, and what parses other programs' files never
# has a capability.
. "$TOP/tests/system/lib.sh"
need_bpf
cp "$HEARTH" hearth
chmod 755 . hearth
base="+sys_admin,+sys_ptrace,+syslog,+dac_read_search,+chown"

# All that speak of them have the same list: base/capabilities.def.
wanted=$(sed -nE 's/^CAPABILITY\(([A-Z_]+), [^,]+, (WANTED|ROOTS)\)$/\1/p' "$TOP/base/capabilities.def" | sort | tr '\n' ' ')
for file in compose/hearth/compose.yaml compose/pyroscope/compose.yaml; do
	listed=$(sed -nE 's/^ *cap_add: \[(.*)\]$/\1/p' "$TOP/docs/$file" | tr -d ',' | tr ' ' '\n' | grep -vx SYS_ADMIN | sort | tr '\n' ' ')
	[ "$listed" = "$wanted" ] || fail "docs/$file has $listed, not $wanted"
done
for name in $wanted SYS_ADMIN BPF PERFMON CHECKPOINT_RESTORE; do
	grep -q "^|.*\`$name\`" "$TOP/docs/containers.md" || fail "docs/containers.md does not know $name"
done
for name in $wanted; do
	grep -q -- "--cap-add $name" "$TOP/docs/containers.md" || fail "docs/containers.md does not add $name"
done

# with CAPABILITIES COMMAND...
with() {
	local set=$1
	shift
	setpriv --bounding-set="-all,$set" --inh-caps=-all "$@"
}

start loop "$TRUTH/c_chain" 120
loop=$started

# record CAPABILITIES: what it says into rec.out.err, the status of its helpers into helpers
record() {
	rm -f out.otlp
	start rec.out setpriv --bounding-set="-all,$1" --inh-caps=-all ./hearth record -F 99 -d 2 -p "$loop" -o out.otlp
	until_true 60 grep -q "profiles go to" rec.out.err || fail "with $1: $(cat rec.out.err)"
	pgrep -P "$started" hearth-elf >/dev/null || fail "with $1 there is no helper: $(cat rec.out.err)"
	for helper in $(pgrep -P "$started" 'hearth-(elf|names|dwarf)'); do
		grep -hE '^(Name|Uid|Cap(Prm|Eff)|NoNewPrivs):' "/proc/$helper/status"
	done >helpers
	wait "$started" || fail "with $1: $(cat rec.out.err)"
	accounted rec.out.err
	./hearth report out.otlp --format folded >out.folded
	grep -q 'main;f01;f02;.*;leaf' out.folded || fail "with $1: no function of the program: $(cat out.folded)"
	! grep -E '^Cap' helpers | grep -v '0000000000000000$' || fail "with $1 a helper has capabilities: $(cat helpers)"
	! grep -E '^NoNewPrivs' helpers | grep -v '1$' || fail "a helper may get new privileges: $(cat helpers)"
}

record "$base,+setuid,+setgid"
! grep -qE '^Uid:.0\b' helpers || fail "a helper is root: $(cat helpers)"
! grep -q 'CAP_' rec.out.err || fail "complains of nothing: $(cat rec.out.err)"
with "$base,+setuid,+setgid" ./hearth check >check 2>&1 || fail "check: $(cat check)"
grep -q '^yes  *capabilities' check || fail "check: $(cat check)"

for set in "$base" "$base,+setuid" "$base,+setgid"; do
	record "$set"
	grep -q 'CAP_SETUID or CAP_SETGID is missing' rec.out.err || fail "with $set nothing is said: $(cat rec.out.err)"
	with "$set" ./hearth check >check 2>&1 || fail "check: $(cat check)"
	grep -qE '^partly +capabilities: .*CAP_SET[UG]ID' check || fail "check with $set: $(cat check)"
done

# --- a command that is recorded runs as without hearth: set-user-id, and with capabilities of its file ---
cp "$(command -v id)" as_nobody
chown 65534 as_nobody
chmod 4755 as_nobody
cp "$(command -v grep)" capable
chmod 755 capable
./hearth record -F 99 -o id.otlp -- ./as_nobody -u >id.out 2>id.err || fail "set-user-id: $(cat id.err)"
[ "$(cat id.out)" = "$(./as_nobody -u)" ] && [ "$(cat id.out)" = 65534 ] || fail "a set-user-id command runs as: $(cat id.out)"
if python3 -c 'import os, struct; os.setxattr("capable", "security.capability", struct.pack("<5I", 0x02000001, 1 << 13, 0, 0, 0))' 2>setcap.err; then
	SUDO_UID=65533 SUDO_GID=65533 ./hearth record -F 99 -o caps.otlp -- ./capable -E '^(Uid|CapEff|NoNewPrivs|Seccomp):' /proc/self/status >caps.out 2>caps.err ||
		fail "capabilities of a file: $(cat caps.err)"
	[ "$(awk '{ print $2 }' caps.out | tr '\n' ' ')" = "65533 0000000000002000 0 0 " ] || fail "the command is: $(cat caps.out)"
else
	left_out file-capabilities "$(tail -n 1 setcap.err)"
fi
echo "all as it should be"
