#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# With the capabilities that the documentation names, with one less each time, and with those that containers get most easily:
# a recording works or says what is missing, `hearth check` says the same before, and what parses other programs' files never
# has a capability.
. "$TOP/tests/system/lib.sh"
need_bpf
cp "$HEARTH" hearth
chmod 755 . hearth
base="+sys_admin,+sys_ptrace,+syslog,+dac_read_search"

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
echo "all as it should be"
