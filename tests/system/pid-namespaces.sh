#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# In a pid namespace of its own, as a container has one: its own processes are right, what runs outside is a hole that says so
# and never another process's; pids given and shown are those of /proc; with the host's /proc mounted elsewhere all is named.
. "$TOP/tests/system/lib.sh"
need_bpf
unshare -pf --mount-proc true 2>/dev/null || skip "no pid namespaces here"
cp "$HEARTH" hearth
# Programs that differ in name, in functions and in how deep they are: the one outside must not lend its names to one inside.
cp "$TRUTH/c_chain" inside
cp "$TRUTH/recurse400" outside
chain='main;f01;f02;.*;f33;leaf'

start outside.out ./outside 150
outside_pid=$started

cat >within.sh <<'E2'
set -eu
fail() { echo "FAILED: $*"; exit 1; }

# The pid that the program outside has there is this one's here. (Without checkpoints in the kernel nobody can ask for a pid.)
echo $((OUTSIDE - 1)) 2>/dev/null >/proc/sys/kernel/ns_last_pid || :
./inside 150 >/dev/null &
inside=$!
[ "$inside" = "$OUTSIDE" ] || echo "left out: same-pid ns_last_pid does not let it choose pids: $inside instead of $OUTSIDE"
unshare -pf ./inside 150 >/dev/null & # and one in a namespace further in
sleep 0.5

# the whole machine: its own are named, of both levels; the others are counted with their reason
./hearth record -F 99 -d 3 -o all.otlp 2>err || fail "$(cat err)"
grep -q 'a pid namespace of its own' err || fail "no warning: $(cat err)"
grep -qE 'user stacks are not complete.*: not in /proc' err || fail "no reason: $(cat err)"
./hearth report all.otlp --by process --format folded >folded
grep -qE "^inside.*;$CHAIN [0-9]+$" folded || fail "the program inside has no stack: $(cut -c 1-300 folded | head -n 20)"
grep -q '^\[not in /proc\]' folded || fail "nothing is outside: $(cut -c 1-200 folded)"
! grep -q 'outside' folded || fail "a name from outside: $(grep outside folded)"
! grep -E '^\[not in /proc\]' folded | grep -E ';(f[0-9][0-9]|leaf|down)[; ]' || fail "functions of [not in /proc]"
./hearth report all.otlp --format truth >truth
grep -q 'not in /proc' truth || fail "report --format truth: $(cat truth)"

# a pid as it is here, and a command
./hearth record -F 99 -d 2 -p "$inside" -o one.otlp 2>err || fail "$(cat err)"
! grep -q 'a pid namespace of its own' err || fail "warns who chose: $(cat err)"
grep -qE '^hearth: .*100.0 % of user stacks complete' err || fail "--pid: $(cat err)"
./hearth report one.otlp --format folded >folded
grep -qE "$CHAIN" folded || fail "--pid: $(cut -c 1-300 folded | head -n 20)"
! grep -vE "$CHAIN|^inside" folded || fail "--pid: others too: $(cut -c 1-300 folded | head -n 20)"
./hearth report one.otlp --by process >table
grep -q "inside ($inside)" table || fail "its pid is not the one it has here: $(cat table)"
./hearth record -F 99 -o cmd.otlp -- sh -c './inside 1; :' >/dev/null 2>err || fail "$(cat err)"
./hearth report cmd.otlp --format folded >folded
grep -qE "$CHAIN" folded || fail "a command's child: $(cat err; cut -c 1-300 folded | head -n 20)"
./hearth record -F 99 -d 1 -t "$inside" -o thread.otlp 2>err || fail "$(cat err)"
grep -qE '^hearth: [1-9][0-9]* samples taken' err || fail "--tid: $(cat err)"

# the end of a process is seen
./inside 2 >/dev/null &
SECONDS=0
./hearth record -F 99 -p $! -o end.otlp 2>err || fail "$(cat err)"
grep -q 'have ended' err && [ $SECONDS -lt 10 ] || fail "the end of the process: $(cat err)"

# what is outside is no process here
none=$((OUTSIDE + 1000))
! ./hearth record -d 1 -p "$none" -o no.otlp 2>err || fail "took a pid that is none here"
grep -q 'among those of this pid namespace' err || fail "no hint: $(cat err)"

# hearth check says the same before
./hearth check >check 2>&1 || fail "check: $(cat check)"
grep -qE "^partly +the host's processes: /proc shows a pid namespace of its own" check || fail "check: $(cat check)"
E2
export CHAIN=$chain OUTSIDE=$outside_pid
unshare -pf --mount-proc bash within.sh || fail "in a namespace of its own (above)"

# --- the host's /proc at another place ---
mkdir host
cat >mounted.sh <<'E2'
set -eu
fail() { echo "FAILED: $*"; exit 1; }
place=$1 # where all pids are; /proc or the other
./inside 150 >/dev/null &
sleep 0.5
./hearth record -F 99 -d 3 -o all.otlp 2>err || fail "$(cat err)"
! grep -q 'a pid namespace of its own' err || fail "warns: $(cat err)"
./hearth report all.otlp --by process --format folded >folded
grep -qE "^inside.*;$CHAIN [0-9]+$" folded || fail "the program inside has no stack: $(cut -c 1-300 folded | head -n 20)"
grep -qE "^outside.*;main;.*down;down;down.*;leaf" folded || fail "the one outside has none: $(cut -c 1-300 folded | head -n 20)"
! grep -q 'not in /proc' folded || fail "still a hole: $(grep 'not in /proc' folded)"
./hearth report all.otlp --by process >table
grep -q "outside ($OUTSIDE)" table || fail "pid of the one outside: $(cat table)"

./hearth record -F 99 -d 2 -p "$OUTSIDE" -o one.otlp 2>err || fail "$(cat err)"
./hearth report one.otlp --format folded >folded
grep -q "main;.*down;down;down" folded || fail "--pid of the host: $(cat err; cut -c 1-300 folded | head -n 20)"
./hearth record -F 99 -o cmd.otlp -- sh -c './inside 1; :' >/dev/null 2>err || fail "$(cat err)"
./hearth report cmd.otlp --format folded >folded
grep -qE "$CHAIN" folded || fail "a command's child: $(cat err; cut -c 1-300 folded | head -n 20)"

# the end of a process of the host is seen
for status in "$place"/[0-9]*/status; do
	grep -q '^Name:.inside$' "$status" 2>/dev/null && grep -qE "^NSpid:.[0-9]+.$!\$" "$status" && mine=$status
done
[ -n "${mine:-}" ] || fail "no such process"
mine=$(basename "$(dirname "$mine")")
(sleep 2; kill $!) &
SECONDS=0
./hearth record -F 99 -p "$mine" -o end.otlp 2>err || fail "$(cat err)"
grep -q 'have ended' err && [ $SECONDS -lt 12 ] || fail "the end of the process $mine: $(cat err)"
./hearth check >check 2>&1 || fail "check: $(cat check)"
grep -qE "^yes +the host's processes: $place has them" check || fail "check: $(cat check)"
E2
mount_and() { unshare -m sh -c 'mount --make-rprivate / && mount --bind /proc host && exec "$@"' sh "$@"; }
HEARTH_PROC=$PWD/host mount_and unshare -pf --mount-proc bash mounted.sh "$PWD/host" || fail "with --proc (above)"
HOST_PROC=$PWD/host mount_and unshare -pf --mount-proc ./hearth check >check || fail "HOST_PROC: $(cat check)"
grep -q "^yes  *the host's processes: $PWD/host has them" check || fail "HOST_PROC: $(cat check)"
# and where a new namespace still has the old /proc
unshare -pf bash mounted.sh /proc || fail "with the /proc of the namespace around (above)"

# --- what is no such place ---
for place in /tmp /nowhere; do
	! ./hearth record -d 1 --proc "$place" -o no.otlp 2>err || fail "--proc $place was taken"
	grep -qE "$place is (no proc file system|not there)" err || fail "--proc $place: $(cat err)"
	[ ! -e no.otlp ] && [ ! -e no.otlp.part ] || fail "a file for --proc $place"
done
echo "all as it should be"
