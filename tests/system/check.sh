#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `hearth check` where something is missing: each 'no' by its name, with what to do, and an exit status; as JSON; without privileges.
# Alone: the interpreters that run here are listed twice and compared.
. "$TOP/tests/system/lib.sh"
need_bpf
cp "$HEARTH" hearth
chmod 755 . hearth

# check STATUS COMMAND...: what hearth check says inside of COMMAND, into out
check() {
	local want=$1 status=0
	shift
	"$@" ./hearth check >out 2>err || status=$?
	[ $status = "$want" ] || fail "$*: status $status, not $want: $(cat out err)"
	grep -vqE '^(yes|partly|no|unknown)  |^ {9}[^ ]' out && fail "lines of another form: $(cat out)"
	[ "$(grep -cE '^(no|partly|unknown) ' out)" = "$(grep -c '^ *=> ' out)" ] || fail "not each 'no' says what to do: $(cat out)"
	return 0
}
# says RESULT NAME
says() {
	grep -qE "^$1 +$2" out || fail "does not say '$1 $2': $(cat out)"
}

check 0
says yes "kernel BTF"
says yes "BPF programs on perf events"
says yes "the host's processes"
! grep -q '^no ' out || fail "a 'no' here: $(cat out)"

# interpreters that run: one that is read, one that nobody knows, whose processes are counted together
cat >unknown.c <<'END'
#include <unistd.h>
char _PyRuntime[4096], PyCode_Type[400];
unsigned long Py_Version = 0x03630000;
int main(void)
{
	return pause();
}
END
"${CC:-gcc}" -rdynamic -o unknown unknown.c
start unknown.out ./unknown
start unknown2.out ./unknown
check 0
says partly "python 3\.99 \($PWD/unknown\): 2 processes, recognised by .dynsym; this version is not known"
if python=$(readlink -f /usr/bin/python3) && nm -D "$python" 2>/dev/null | grep -q PyCode_Type; then
	start python.out "$python" -c 'import time; time.sleep(300)'
	until_true 60 grep -q "$python" "/proc/$started/maps"
	check 0
	says yes "python 3\.[0-9.]+ \($python\): [0-9]+ process(es)?, recognised by .dynsym$"
else
	left_out "an interpreter that is read: no /usr/bin/python3 with symbols here"
fi

# programs that make code which nobody reads: by their name, or at all; a little of it is no compiler's
cat >jit.c <<'END'
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	mmap(0, strtoul(argv[1], 0, 0), PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	write(1, "mapped\n", 7);
	return pause();
}
END
"${CC:-gcc}" -o deno jit.c 2>/dev/null
cp deno compiler
cp deno stubs
start deno.out ./deno 0x40000
start compiler.out ./compiler 0x40000
start compiler2.out ./compiler 0x40000
start stubs.out ./stubs 0x4000
until_true 20 grep -q mapped deno.out compiler.out compiler2.out stubs.out
check 0
says partly "code that $PWD/deno makes: 1 process; V8, built without the constants"
says partly "code that $PWD/compiler makes: 2 processes; no reader knows it"
! grep -q "$PWD/stubs" out || fail "stubs are no compiler's: $(cat out)"

# without privileges
check 1 setpriv --reuid 65534 --regid 65534 --clear-groups
says no "capabilities: CAP_BPF, CAP_PERFMON"
says no "BPF programs on perf events: permission denied"
says yes "kernel BTF"
says unknown "interpreters: permission denied"
grep -q 'needed things are missing' err || fail "stderr: $(cat err)"

# less than root
check 0 setpriv --bounding-set=-syslog
says partly "capabilities: CAP_SYSLOG missing"
check 0 setpriv --bounding-set=-setuid
says partly "capabilities: CAP_SETUID missing"

# namespaces of its own, no BTF, as a container would have it
check 0 unshare -pf --mount-proc
says partly "the host's processes: /proc shows a pid namespace of its own"
check 1 unshare -m sh -c 'mount -t tmpfs none /sys/kernel/btf && exec "$@"' sh
says no "kernel BTF: /sys/kernel/btf/vmlinux is not there"
if unshare -Ur true 2>/dev/null; then
	check 1 unshare -Ur
	says no "the host's users: another user namespace"
fi

# on a terminal, broken at blanks: put together again it is what a pipe gets. The interpreters that run may be others by then, so
# the two are listed until nothing came between.
for _ in 1 2 3 4 5 6 7 8; do
	./hearth check --verbose >whole 2>/dev/null || :
	script -qec "stty cols 60; ./hearth check --verbose" /dev/null 2>/dev/null </dev/null | tr -d '\r' >broken || :
	[ "$(tr -d ' \n' <broken)" != "$(tr -d ' \n' <whole)" ] || break
done
awk 'length > 60' broken >wide
[ ! -s wide ] || fail "wider than the terminal: $(cat wide)"
[ "$(wc -l <broken)" -gt "$(wc -l <whole)" ] || fail "nothing was broken: $(cat broken)"
[ "$(tr -d ' \n' <broken)" = "$(tr -d ' \n' <whole)" ] || fail "words lost: $(diff broken whole)"

# the same as JSON
status=0
setpriv --reuid 65534 --regid 65534 --clear-groups ./hearth check --json >json 2>err || status=$?
[ $status = 1 ] || fail "--json: status $status: $(cat err)"
python3 - <<'END' || fail "--json: $(cat json)"
import json
d = json.load(open("json"))
no = [c for c in d["checks"] if c["result"] == "no"]
assert d["missing"] == len(no) > 0
assert all(c["do"] and c["means"] for c in no)
assert len(d["checks"]) >= 20 and len({c["name"] for c in d["checks"]}) == len(d["checks"])
assert all(set(c) == {"name", "result", "found", "means", "do"} for c in d["checks"])
END
echo "all as it should be"
