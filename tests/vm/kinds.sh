#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Each kind of profiles and each type of probes, in a test machine: a line each with what programs say that they did and what is told of it.
# Few recordings, as an emulated CPU verifies what each loads for long.   kinds.sh BUILD RECORD_OPTION...
set -u
build=$1
options=(--unsafe-kernel "${@:2}") # not all kernels are safe, and that is not the matter here
failed=0

# kind NAME SAID TOLD LEAST MOST: TOLD is to be LEAST to MOST times what was said
kind() {
	local verdict=ok
	awk -v said="$2" -v told="$3" -v least="$4" -v most="$5" 'BEGIN { exit !(told >= said * least && told <= said * most) }' || {
		verdict=FAIL
		failed=1
	}
	printf '%-4s %-44s said %12s told %12s\n' $verdict "$1" "$2" "$3"
	[ $verdict = ok ] || grep -E 'taken|cannot|not ' err | sed 's/^/       /'
}

# record WHAT OPTION...: false where it fails, which is told
record() {
	"$build/hearth" record "${options[@]}" "${@:2}" >own 2>err && ! grep -q 'not sampled: this kernel' err && return
	echo "FAIL $1: $(tail -n 3 err)"
	failed=1
	return 1
}

# sum KIND PATTERN FILE OPTION...
sum() {
	"$build/hearth" report "$3" --kind "$1" --format folded "${@:4}" | grep -E -- "$2" | awk '{ n += $NF } END { printf "%.0f\n", n }'
}

# said NAME: of what the recorded program printed
said() {
	awk -v name="$1" '$1 == name { print $2; exit }' own
}

# In one interval: of a wait that lasts longer than its own the first part has no waker.
if record waits --wakers --memory --memory-every 64K -F 99 -e cpu-clock --report-interval 10m -o all.otlp -- \
	sh -c 'sleep 2 | cat; dd if=/dev/zero of=/dev/null bs=32M count=1; "$1" 1 200' sh "$build/probes/calls"; then
	kind "off_cpu, ns in nanosleep" 2000000000 "$(sum off_cpu '^sleep;.*nanosleep' all.otlp)" 0.9 1.3
	kind "waker, ns of a pipe that sleep closes" 2000000000 "$(sum waker 'pipe_read.*;\[woken by sleep\];' all.otlp)" 0.8 1.5
	kind "runnable, some ns" 1 "$(sum runnable . all.otlp)" 1 1e18
	kind "memory, bytes of dd's buffer" 33554432 "$(sum memory '^dd;' all.otlp)" 0.9 1.5
	kind "cpu, some samples" 1 "$(sum samples . all.otlp)" 1 1e18
fi

# All types of probes at once; where that fails, each alone tells which.
calls=$build/probes/calls
probes=("uprobe:$calls:one" "uretprobe:$calls:again" "usdt:$calls:ours:passed" kprobe:__x64_sys_getppid kretprobe:__x64_sys_getppid
	fentry:__task_pid_nr_ns fexit:__task_pid_nr_ns)
names=(one again passed getppid getppid getppid getppid)
# __task_pid_nr_ns has other callers: those of getppid alone count
within=(. . . . . getppid getppid)
# missing: of all calls of that recording, those that it names as lost or not sampled: a machine this slow has more of them at once than levels
missing() {
	sed -n 's/.* \([0-9]*\) lost.*; \([0-9]*\) not sampled.*/\1 \2/p' err | awk '{ print $1 + $2; exit }'
}
# passes FILE NUMBER
passes() {
	local got
	got=$(sum events "${within[$2]}" "$1" --by label=probe.name | head -n 1)
	[ "${3:-}" != all ] || got=$("$build/hearth" report "$1" --kind events --by label=probe.name --format folded |
		awk -v root="${probes[$2]}" -v within="${within[$2]}" 'index($0, root ";") == 1 || index($0, root " ") == 1 { if ($0 ~ within) n += $NF } END { print n + 0 }')
	kind "${probes[$2]/$build\//}" "$(said "${names[$2]}")" "$got" "$(awk -v said="$(said "${names[$2]}")" -v missing="$(missing)" 'BEGIN { print 1 - missing / said }')" 1
}
events=()
for probe in "${probes[@]}"; do
	events+=(-e "$probe")
done
if "$build/hearth" record "${options[@]}" "${events[@]}" -o probes.otlp -- "$calls" 2 100 >own 2>err; then
	for i in "${!probes[@]}"; do
		passes probes.otlp "$i" all
	done
else
	echo "not all probes at once: $(tail -n 2 err)"
	for i in "${!probes[@]}"; do
		! record "${probes[$i]}" -e "${probes[$i]}" -o probes.otlp -- "$calls" 2 100 || passes probes.otlp "$i"
	done
fi
mount -t tracefs none /sys/kernel/tracing 2>/dev/null
! record tracepoint -e syscalls:sys_enter_getppid -c 1 -o tracepoint.otlp -- "$calls" 2 100 ||
	kind "syscalls:sys_enter_getppid" "$(said getppid)" "$("$build/hearth" report tracepoint.otlp --format folded | awk '{ n += $NF } END { print n + 0 }')" 1 1
if [ -d /sys/kernel/tracing/events/lock ] && [ -e /sys/kernel/tracing/events/lock/contention_begin ]; then
	! record lock:contention_begin -e lock:contention_begin -c 1 -d 1 -o lock.otlp || echo "ok   lock:contention_begin"
else
	echo "-    lock:contention_begin: this kernel has none"
fi

# of COMMAND OPTION...: records a process that waits for an order while it runs
of() {
	local pid recorder
	rm -f orders
	mkfifo orders
	sh -c "exec $1 <orders" >own 2>&1 &
	pid=$!
	exec 3>orders
	for _ in $(seq 300); do ! grep -q ready own || break; sleep 0.1; done
	"$build/hearth" record "${options[@]}" "${@:2}" -p $pid 2>err 3>&- &
	recorder=$!
	for _ in $(seq 1200); do ! grep -Eq 'profiles go to|needs Linux|cannot' err || break; sleep 0.1; done
	echo go >&3 || :
	for _ in $(seq 300); do ! grep -Eq 'done|written' own || break; sleep 0.1; done
	exec 3>&-
	wait $recorder
}

if grep -q . "$build/vm-heap" 2>/dev/null; then
	of "$build/vm-heap 32 32" --heap -d 3 -o heap.otlp || :
	kind "heap, inuse bytes of keepLarge" "$(awk '$1 == "keepLarge" { print $2; exit }' own)" "$(sum inuse_space 'main\.keepLarge' heap.otlp)" 0.8 1.25
else
	echo "-    heap: no go where this was built"
fi
if of "$build/vm-allocs 16" -e malloc --memory-every 64K -o malloc.otlp; then
	while read -r name bytes; do
		case $name in alloc_*) kind "malloc, bytes of $name" "$bytes" "$(sum malloc "[; ]$name[; ]" malloc.otlp)" 0.9 1.1 ;; esac
	done <own
elif grep -q 'needs Linux' err; then
	echo "-    malloc: $(grep -o 'needs Linux.*' err)"
else
	echo "FAIL malloc: $(tail -n 2 err)"
	failed=1
fi
exit $failed
