#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Each filter on busy processes that differ in one thing: what is recorded is exactly the expected ones, by their pids and threads.
. "$TOP/tests/system/lib.sh"
need_bpf

# record OPTION...: into got, one "PID TID CPU COMM" a line, each once
record() {
	rm -f x.otlp
	"$HEARTH" record -q -F 499 -d 0.3 -o x.otlp --symbols off "$@" 2>err || fail "record $*: $(cat err)"
	"$HEARTH" convert x.otlp x.perf.txt 2>/dev/null || fail "convert: $(cat err)"
	perl -ne 'print "$2 $3 ", $4 + 0, " $1\n" if /^(\S.*?)\s+(\d+)\/(\d+)\s+\[(\d+)\]/' x.perf.txt | sort -u >got
}

# sees WHAT PID...: of the test's processes these, and no others; nothing else at all unless WHAT is "among"
sees() {
	local what=$1 got want
	shift
	if [ "$what" = among ]; then
		got=$(awk -v all=" $ours " 'index(all, " " $1 " ") { print $1 }' got | sort -u | tr '\n' ' ')
	else
		got=$(cut -d ' ' -f 1 got | sort -u | tr '\n' ' ')
	fi
	want=$(printf '%s\n' "$@" | sort -u | tr '\n' ' ')
	[ $# -gt 0 ] || want=
	[ "$got" = "$want" ] || fail "$test: pids $got, not $want: $(cat got)"
	echo "ok $test"
}

mkdir bin
chmod 755 . bin
busy=$(readlink -f "$(command -v dash)")
for name in filt-one filt-two filt-user; do cp "$busy" bin/$name; done
start one.out bin/filt-one -c 'while :; do :; done'
one=$started
start two.out bin/filt-two -c 'while :; do :; done'
two=$started
start user.out setpriv --reuid 65534 --regid 65534 --clear-groups "$PWD/bin/filt-user" -c 'while :; do :; done'
user=$started
# A process whose busy threads have names of their own.
start threads.out python3 -u -c '
import ctypes, threading
def spin(name):
    ctypes.CDLL(None).prctl(15, name.encode(), 0, 0, 0)
    print(name, threading.get_native_id())
    while True: pass
for name in ("filt-t-a", "filt-t-b"): threading.Thread(target=spin, args=(name,)).start()'
threads=$started
until_true 10 grep -q filt-t-b threads.out || fail "no threads: $(cat threads.out)"
thread_a=$(awk '/filt-t-a/ { print $2 }' threads.out)
ours="$one $two $user $threads"

test='no filter'
record
sees among $one $two $user $threads
test=--pid
record -p $one,$user
sees only $one $user
test=--tid
record -t "$thread_a"
sees only $threads
[ "$(cut -d ' ' -f 2 got | sort -u)" = "$thread_a" ] || fail "--tid: $(cat got)"
test='--tid and --pid'
record -t "$thread_a" -p $two
sees only $two $threads
test=--comm
record --comm filt-one,filt-t-b
sees among $one $threads
! awk '{ print $4 }' got | grep -qvE '^filt-(one|t-b)$' || fail "--comm: $(cat got)"
test='--comm with a pattern'
record --comm 'f?lt-[!t]*'
sees among $one $user
test='--comm of a process'
record --comm "$(cat /proc/$threads/comm)" --min-process-age 0
sees among $threads
test=--uid
record --uid 65534
sees among $user
test='--uid by name'
record --uid nobody,root --comm 'filt-[tu]*'
sees among $user $two $threads
test='two kinds of filters'
record --uid nobody --comm filt-one
[ ! -s got ] || fail "$test: $(cat got)"

test=--cpu
if [ "$(nproc)" -gt 1 ]; then
	taskset -cp 0 $one >/dev/null
	taskset -cp 1 $two >/dev/null
	record -C 1 -p $one,$two
	sees only $two
fi
! "$HEARTH" record -C 4095 -d 1 -o no.otlp 2>err || fail "CPU 4095 is there?"
grep -q "CPU 4095 is not online" err || fail "--cpu: $(cat err)"
echo "ok $test"

test=--min-process-age
start young.out bin/filt-one -c 'while :; do :; done'
young=$started
ours="$ours $young"
record --min-process-age 1h
! grep -qE "^($one|$young) " got || fail "$test: $(cat got)"
record --min-process-age "$(($(ps -o etimes= -p $one) * 2 / 3))s" --comm filt-one
sees among $one
kill $young

test=--no-kernel
start reader.out dd if=/dev/zero of=/dev/null bs=1M
record --no-kernel -C 0-1 -p $started,2
grep -q '(dd)' x.perf.txt && ! grep -q vmlinux x.perf.txt || fail "$test: kernel frames: $(head -n 20 x.perf.txt)"
sees only $started
test=--kernel
record --kernel -p $started,$one
perl -00 -ne 'print if !/\n\tffff/' x.perf.txt >user_only
grep -q '(dd)' x.perf.txt || fail "$test: no user frames below"
[ ! -s user_only ] || fail "$test: samples that are not in the kernel: $(head -n 20 user_only)"
kill $started
echo "ok $test"
test=--idle
for pid in $ours; do kill -STOP "$pid" 2>/dev/null || :; done
idle_ticks() {
	awk '/^cpu / { print $5 }' /proc/stat # of 10 ms
}
before=$(idle_ticks)
record --idle
if grep -q '^0 0 .*swapper' got; then
	record
	! grep -q '^0 ' got || fail "idle without $test: $(cat got)"
elif [ $(($(idle_ticks) - before)) -ge 20 ]; then
	fail "$test: $(cat got)"
fi
for pid in $ours; do kill -CONT "$pid" 2>/dev/null || :; done
echo "ok $test"

# --- pids are the host's; the one that a container gives its process stands beside it ---
start inner.out unshare -pf --mount-proc "$PWD/bin/filt-one" -c 'echo $$; while :; do :; done'
until_true 10 grep -qx 1 inner.out || fail "no pid namespace: $(cat inner.out.err)"
inner=$(pgrep -P "$started")
pids+=("$inner")
test='a pid namespace'
record -p "$inner"
sees only "$inner"
"$HEARTH" report x.otlp --format print >print
grep -q "process.vpid: 1$" print && grep -q "process.pid: $inner$" print || fail "$test: $(grep process print)"
record -p "$one"
"$HEARTH" report x.otlp --format print >print
! grep -q process.vpid print || fail "a pid of its own without a namespace: $(grep process print)"
kill -KILL "$inner"

# --- control groups ---
group=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
if [ -n "$group" ] && mkdir "$group/hearth-filters-$$" 2>/dev/null; then
	id=$(printf '%064x' $$)
	place=$group/hearth-filters-$$
	mkdir "$place/below" "$place/docker-$id.scope"
	# shellcheck disable=SC2064
	trap "for pid in \"\${pids[@]}\"; do kill -KILL \"\$pid\" 2>/dev/null || :; done; sleep 0.2
		rmdir '$place/below' '$place/docker-$id.scope' '$place' || :" EXIT
	echo $one >"$place/below/cgroup.procs"
	echo $two >"$place/docker-$id.scope/cgroup.procs"
	test=--cgroup
	record -G "hearth-filters-$$"
	sees only $one $two
	record -G "$place/below"
	sees only $one
	test=--container
	! "$HEARTH" record --container "${id%?}x" -d 1 -o no.otlp 2>err || fail "$test: a container that is not there"
	grep -q "there is no container ${id%?}x running" err || fail "$test: $(cat err)"
	record --container "$id"
	sees only $two
	echo $one >"$group/cgroup.procs"
	echo $two >"$group/cgroup.procs"
else
	echo "no control groups of version 2 that can be written to"
fi
