#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Samples on tracepoints: as many as a program makes of them by its own account, and as the kernel's own counter has; with true stacks, with
# filters and periods; and what is said of names that are none.
# Alone: no mount may come or go meanwhile.
. "$TOP/tests/system/lib.sh"
need_bpf
mounts=$(grep tracefs /proc/mounts || true)

cat >opens.c <<'C'
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
__attribute__((noinline)) void open_one(void)
{
	close(open("/dev/null", O_RDONLY));
}
int main(int argc, char **argv)
{
	while (argc > 2 && access(argv[2], F_OK))
		usleep(1000);
	for (int i = 0; i < atoi(argv[1]); i++)
		open_one();
	return 0;
}
C
gcc -O2 -o opens opens.c

# samples FILE [FUNCTION]: how many stacks there are, with that function in them
samples() {
	"$HEARTH" report "$1" --format folded | grep -F -- "${2:-}" | awk '{ n += $NF } END { print n + 0 }'
}

for form in '' --no-bpf-loop; do
	"$HEARTH" record -q -e syscalls:sys_enter_openat $form -o x.otlp -- ./opens 500 2>err || fail "record $form: $(cat err)"
	[ "$(samples x.otlp 'main;open_one')" = 500 ] || fail "$form: $(samples x.otlp open_one) of 500 opens: $("$HEARTH" report x.otlp --format folded)"
done

# Nobody else loses events by it: a program counts its own opens by an event of its own, meanwhile.
cat >counts.c <<'C'
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_TRACEPOINT, .size = sizeof(attr), .config = strtoull(argv[1], NULL, 10), .sample_period = 1 };
	int event = syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
	long long count = -1;
	(void)argc;
	for (int i = 0; i < 700; i++)
		close(open("/dev/null", O_RDONLY));
	if (read(event, &count, sizeof(count)) != sizeof(count))
		perror("read");
	printf("%lld\n", count);
	return 0;
}
C
gcc -O2 -D_GNU_SOURCE -o counts counts.c
mkdir tracing
id=$(unshare -m sh -c 'mount -t tracefs events tracing && cat tracing/events/syscalls/sys_enter_openat/id')
for form in '' --no-bpf-loop; do
	"$HEARTH" record -q -e syscalls:sys_enter_openat $form -o x.otlp -- ./counts "$id" >counted 2>err || fail "record $form: $(cat err)"
	[ "$(cat counted)" = 700 ] || fail "$form: another one's event counts $(cat counted) of 700 opens"
done

"$HEARTH" record -q -e syscalls:sys_enter_openat -c 25 -o x.otlp -- ./opens 1000 2>err || fail "-c: $(cat err)"
n=$(samples x.otlp)
[ "$n" -ge 39 ] && [ "$n" -le 42 ] || fail "each 25th of 1000 and a few: $n"
"$HEARTH" convert x.otlp x.otlp.json 2>/dev/null
python3 - x.otlp.json <<'PY' || fail "the profile does not say what it counts"
import json, sys
data = json.load(open(sys.argv[1]))
strings = data["dictionary"]["stringTable"]
p = data["resourceProfiles"][0]["scopeProfiles"][0]["profiles"][0]
kind, period = p["sampleType"], p["periodType"]
assert strings[kind["typeStrindex"]] == "syscalls:sys_enter_openat" and strings[kind["unitStrindex"]] == "count", kind
assert strings[period["typeStrindex"]] == "syscalls:sys_enter_openat" and int(p["period"]) == 25, p["period"]
PY

# Of one process, on a CPU it does not run on, and on the one it does.
last=$(($(nproc) - 1))
start opens.out taskset -c 0 ./opens 300 go
"$HEARTH" record -e syscalls:sys_enter_openat -p "$started" -C 0 -o on.otlp 2>err &
on=$!
"$HEARTH" record -e syscalls:sys_enter_openat -p "$started" -C "$last" -o off.otlp 2>err2 &
off=$!
until_true 20 grep -q 'profiles go to' err && until_true 20 grep -q 'profiles go to' err2 || fail "no recording: $(cat err err2)"
touch go
wait "$on" || fail "-C 0: $(cat err)"
wait "$off" || fail "-C $last: $(cat err2)"
[ "$(samples on.otlp open_one)" = 300 ] || fail "-p -C 0: $(samples on.otlp)"
[ "$last" = 0 ] || [ "$(samples off.otlp 2>/dev/null)" = 0 ] || fail "-C $last: $(samples off.otlp)"

# The kernel counts a thread's switches itself: the few before the program was executed it alone, those of its end we alone.
cat >naps.c <<'C'
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>
int main(void)
{
	struct rusage own;
	for (int i = 0; i < 200; i++)
		usleep(1000);
	getrusage(RUSAGE_SELF, &own);
	printf("%ld\n", own.ru_nvcsw + own.ru_nivcsw);
	return 0;
}
C
gcc -O2 -o naps naps.c
"$HEARTH" record -q -e sched:sched_switch -o switch.otlp -- ./naps >own 2>err || fail "sched_switch: $(cat err)"
got=$(samples switch.otlp) own=$(cat own)
[ "$own" -ge 200 ] && [ "$got" -ge $((own - 10)) ] && [ "$got" -le $((own + 20)) ] || fail "the kernel counted $own switches, we $got"
[ "$(samples switch.otlp 'clock_nanosleep')" -ge 200 ] || fail "no sleeps: $("$HEARTH" report switch.otlp --format folded)"
! "$HEARTH" report switch.otlp --format folded | grep -qv ';__schedule' || fail "a switch that is not in the scheduler: $("$HEARTH" report switch.otlp --format folded | grep -v ';__schedule')"

[ "$(grep tracefs /proc/mounts || true)" = "$mounts" ] || fail "it leaves tracefs mounted"

refused() {
	local status=0
	"$HEARTH" record -q -e "$1" -d 0.1 -o no.otlp 2>err || status=$?
	[ $status = 2 ] && grep -qF -- "$2" err && [ ! -e no.otlp ] || fail "-e $1: status $status: $(cat err)"
}
refused sched:sched_swich 'did you mean sched:sched_switch?'
refused syscall:sys_enter_openat 'did you mean syscalls:sys_enter_openat?'
refused scheduler:nothing "there is no tracepoint 'scheduler:nothing'"
refused sched_switch 'did you mean sched:sched_switch?'
refused cycels:u 'did you mean cycles?'
refused 'sched:*' "there is no event 'sched:*'"
if [ "$(id -u)" = 0 ] && setpriv --reuid 65534 --clear-groups true 2>/dev/null; then
	setpriv --reuid 65534 --regid 65534 --clear-groups "$HEARTH" record -q -e sched:sched_switch -d 0.1 -o /tmp/no.otlp 2>err && fail "not root, and no complaint"
	grep -q 'tracepoints need root: run it with sudo' err || fail "not root: $(cat err)"
fi
