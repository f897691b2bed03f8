#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# When is recorded and how often: --delay, --probabilistic, --until-signal, -c, -F max, events, and the end of what -p names.
# Alone: it judges times.
. "$TOP/tests/system/lib.sh"
need_bpf

start busy sh -c 'while :; do :; done'
busy=$started
# of FILE OPTION...: how many samples a recording has of the busy process
of() {
	local file=$1
	shift
	"$HEARTH" record -o "$file" --symbols off -p "$busy" "$@" 2>err || fail "record $*: $(cat err)"
	samples=$(count taken err)
}

# --- as often as asked; a busy process is on some CPU at most all the time ---
of a.otlp -d 1 -c 10000000
[ "$samples" -ge 10 ] && [ "$samples" -le 101 ] || fail "-c 10 ms for 1 s: $samples samples"
grep -q "a sample each 10000000 events" err || fail "-c is not told: $(cat err)"
of b.otlp -d 0.5 -F max
[ "$samples" -gt 200 ] || fail "-F max: $samples samples in 0.5 s"
of user.otlp -d 0.5 -F 999 -e cpu-clock:u
"$HEARTH" convert user.otlp user.perf.txt 2>/dev/null
[ "$samples" -gt 0 ] && ! grep -q vmlinux user.perf.txt || fail "-e cpu-clock:u has $samples samples, or kernel frames"

# --- other events: what this machine cannot count is said ---
# what the kernel says that a program faulted, one sample each 10
"$HEARTH" record -o faults.otlp -e page-faults -c 10 -- python3 -c '
import mmap, resource
m = mmap.mmap(-1, 4096 * 4000)
for i in range(4000): m[i * 4096] = 1
both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
print(sum(r.ru_minflt + r.ru_majflt for r in both))' >faults 2>err || fail "page faults: $(cat err)"
samples=$(count taken err)
[ $((samples * 10)) -ge $(($(cat faults) * 9 / 10)) ] && [ $((samples * 10)) -le $(($(cat faults) * 11 / 10)) ] ||
	fail "$(cat faults) page faults, one sample each 10: $samples samples"
"$HEARTH" report faults.otlp >top || fail "report of faults"
if command -v perf >/dev/null && ! perf stat -e cycles true 2>&1 | grep -qE '[0-9] +cycles'; then
	! "$HEARTH" record -e cycles -d 1 -o no.otlp 2>err || fail "cycles are sampled where perf counts none"
	grep -q "this machine cannot sample on 'cycles'" err || fail "no cycles, unclear: $(cat err)"
fi

# --- --delay: nothing before it, and -d counts from there ---
before=$EPOCHREALTIME
of delayed.otlp --delay 1s -d 0.5 -F 999
took=$(awk "BEGIN { printf \"%d\", ($EPOCHREALTIME - $before) * 1000 }")
[ "$took" -ge 1500 ] && [ "$samples" -gt 0 ] && [ "$samples" -le 501 ] || fail "--delay 1s -d 0.5: $samples samples, $took ms"
"$HEARTH" convert delayed.otlp delayed.perf.txt 2>/dev/null
first=$(perl -ne 'print "$1\n" if /\] (\d+\.\d+):/' delayed.perf.txt | sort -n | head -n 1)
awk "BEGIN { exit !($first - $before >= 1) }" || fail "--delay 1s: a sample $first - $before s after the start"

# --- --probabilistic: never, always, and of many short intervals about the part ---
of never.otlp --probabilistic 0 -d 0.5 -F 999
[ "$samples" = 0 ] || fail "--probabilistic 0: $samples samples"
of always.otlp --probabilistic 100/10ms -d 0.5 -F 999
[ "$samples" -gt 50 ] || fail "--probabilistic 100: $samples samples"
of some.otlp --probabilistic 25/10ms -d 2 -F 999 -v
in=$(grep -c "this interval is sampled" err) out=$(grep -c "this interval is left out" err)
# 200 draws at 25 %: 50, standard deviation 6
[ $((in + out)) -gt 100 ] && [ $((in * 100)) -gt $(((in + out) * 10)) ] && [ $((in * 100)) -lt $(((in + out) * 40)) ] ||
	fail "--probabilistic 25/10ms: $in intervals of $((in + out))"
[ "$samples" -lt 1200 ] || fail "--probabilistic 25/10ms: $samples samples of 2000"

# --- the end of what is recorded is the end of the recording ---
start short sh -c 'sleep 1.5'
before=$EPOCHREALTIME
timeout 20 "$HEARTH" record -p "$started" -d 60 -o ended.otlp 2>err || fail "the process ended: status $?, $(cat err)"
grep -q "the processes of --pid and the threads of --tid have ended" err || fail "says not why it ended: $(cat err)"

# --- --until-signal: the command's children outlive it ---
start until "$HEARTH" record --until-signal -F 499 -o until.otlp -- sh -c '(exec sh -c "while :; do :; done") & echo $!; exit 5'
until_true 15 grep -q "the command has ended; recording goes on" until.err || fail "--until-signal: $(cat until.err)"
pids+=("$(cat until)")
sleep 1
kill -0 "$started" || fail "--until-signal: it has ended: $(cat until.err)"
kill -INT "$started"
status=0
wait "$started" || status=$?
[ $status = 5 ] || fail "--until-signal: status $status, not the command's: $(cat until.err)"
"$HEARTH" convert until.otlp until.perf.txt 2>/dev/null
late=$(grep -c " $(cat until)/$(cat until) " until.perf.txt)
[ "$late" -gt 20 ] || fail "--until-signal: $late samples of the child"
echo "all as it should be"
