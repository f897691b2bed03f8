#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs inside a test machine (see run-vm.sh): the checks pass, a recording loads every BPF object, the chain of a truth program
# comes out whole. The last line tells the result.   inside.sh BUILD
#   inside.sh BUILD OUTDIR TRUTH...: many programs, by two recordings that go to OUTDIR, with what they printed; run-vm.sh judges them.
# $HEARTH: the binary to try, BUILD's by itself.
set -eu
build=$1
export HEARTH=${HEARTH:-$build/hearth}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
cd "$work"

# Each kind and each type of probes alone (HEARTH_VM_KINDS=1): a line each.
if [ -n "${HEARTH_VM_KINDS:-}" ]; then
	status=0
	"$here/kinds.sh" "$build" | tee kinds || status=$?
	echo "$(grep -c '^ok' kinds) of $(grep -cE '^(ok|FAIL)' kinds) kinds and probes as the programs say"
	exit $((status || $(grep -c '^FAIL' kinds)))
fi

# A kernel that can lock up is refused, and taken when the user insists. Nothing else may be missing.
insist=
if ! "$HEARTH" check >check 2>&1; then
	cat check
	[ "$(sed -n 's/^no *//p' check | cut -d : -f 1)" = "safe reads of user memory" ] || {
		echo "hearth check: something is missing"
		exit 1
	}
	! "$HEARTH" record -d 1 -o refused.otlp 2>err || {
		echo "hearth record started on a kernel that hearth check calls unsafe"
		exit 1
	}
	insist=--unsafe-kernel
fi

# run_programs: what is recorded. The emulated machine is so slow that a file's first seconds, while its tables are read, are a
# visible part of the whole, so each program runs as warm_NAME first, another name of the same file; and before the first one
# hearth gets time to read what the kernel and libc are made of.
run_programs() {
	"$build/truth/warm_c_chain" 10 >/dev/null
	for program; do
		"$build/truth/warm_$program" 3 >/dev/null
		"$build/truth/$program" 5 >"$out/$program"
		printf 'outside 100\nfull 40\n' >>"$out/$program" # its start and its libraries' functions take their time, too
	done
}

if [ $# -gt 1 ]; then
	out=$2
	export build out
	export -f run_programs
	shift 2
	# Only what is below the command: hearth itself is busy enough here to want most of what it may copy of stacks. How long
	# reading tables may take is not the matter here, but for the first of them. Nor is making names: without the helper it would
	# keep an emulated CPU for so long that stacks are cut.
	"$HEARTH" record $insist -F 99 --symbols tables -o "$out/helper.otlp" -- bash -c 'run_programs c_chain'
	"$HEARTH" record $insist -F 99 --symbols tables --no-helper -o "$out/all.otlp" -- bash -c 'run_programs "$@"' bash "$@"
	exit
fi

# The programs that read frames of scripts (HEARTH_VM_CHAINS=1 HEARTH_VM_SECONDS=1200): an emulated CPU verifies
# them for minutes.
if [ -n "${HEARTH_VM_CHAINS:-}" ] && [ -x "$build/vm-chains" ]; then
	"$build/vm-chains" "$build"/bpf/runtime/*.bpf.o "$build"/bpf/context/*.bpf.o >chains || {
		cat chains
		exit 1
	}
fi

# both CHECK: runs CHECK '' and CHECK --no-bpf-loop at once, in a folder each: most of their time is the verifier's, which one CPU works at.
both() {
	local form pids=() status=0
	mkdir "$1" "$1/with" "$1/without"
	for form in '' --no-bpf-loop; do
		(
			cd "$1/with${form:+out}"
			"$1" "$form"
		) >"$1/with${form:+out}.said" 2>&1 &
		pids+=("$!")
	done
	for form in "${pids[@]}"; do
		wait "$form" || status=1
	done
	cat "$1"/*.said
	[ $status = 0 ] || exit 1
}

# With every filter on the programs are others: the verifier must take these as well, in both forms.
mount -t cgroup2 none /sys/fs/cgroup 2>/dev/null || :
filters() {
	"$HEARTH" record $insist $1 -F 99 -o filters.otlp -t 1 --comm 'dd,h*' --uid root --min-process-age 1ms -G / --idle \
		--no-kernel -- dd if=/dev/zero of=/dev/null bs=64k count=4000 2>err || {
		cat err
		echo "hearth record with filters $1: does not start"
		exit 1
	}
	grep -q '^hearth: [1-9][0-9]* samples taken' err || {
		cat err
		echo "hearth record with filters $1: no samples"
		exit 1
	}
}
both filters

# In a pid namespace of its own they translate pids, of samples and of who starts children.
pid_namespace() {
	unshare -pf --mount-proc "$HEARTH" record $insist $1 -F 99 -o own.otlp -- sh -c "'$build/truth/c_chain' 3; :" >/dev/null 2>err || {
		cat err
		echo "hearth record in a pid namespace $1: fails"
		exit 1
	}
	"$HEARTH" report own.otlp --format folded >own.folded
	grep -q 'main;f01;f02;.*;f33;leaf' own.folded || {
		cat err own.folded
		echo "hearth record in a pid namespace $1: no stack of a command's child"
		exit 1
	}
}
both pid_namespace

# Where a command sleeps: for as long as it does, in the system call that it does it by, until the timer wakes it; and what reads from
# a pipe waits for that.
waits() {
	"$HEARTH" record $insist --wakers $1 -F 99 -o waits.otlp -- sh -c 'sleep 2 | cat' 2>err || {
		cat err
		echo "hearth record --wakers $1: fails"
		exit 1
	}
	"$HEARTH" report waits.otlp --kind off_cpu --focus nanosleep >waits
	grep -q '^[0-9]* samples\?, [12]\.[0-9] s of off_cpu' waits && grep -q _start waits || {
		cat err waits
		echo "hearth record --wakers $1: not the 2 seconds that a command sleeps"
		exit 1
	}
	"$HEARTH" report waits.otlp --kind waker --format folded >wakers
	grep -q 'nanosleep;.*\[woken by an interrupt\];.*hrtimer_wakeup' wakers && grep -q 'pipe_read.*;\[woken by sleep\];' wakers || {
		cat err wakers
		echo "hearth record --wakers $1: not the timer, or not who closes the pipe"
		exit 1
	}
	"$HEARTH" report waits.otlp --kind off_cpu --by label=wait.target | grep -q 'pipe:\[' || {
		"$HEARTH" report waits.otlp --kind off_cpu --by label=wait.target
		echo "hearth record --wakers $1: nobody waits for the pipe"
		exit 1
	}
}
both waits

# Memory that is first touched: dd's buffer, which the kernel fills.
memory() {
	"$HEARTH" record $insist --memory --memory-every 64K $1 -o memory.otlp -- dd if=/dev/zero of=/dev/null bs=32M count=1 2>err || {
		cat err
		echo "hearth record --memory $1: fails"
		exit 1
	}
	"$HEARTH" report memory.otlp --kind memory >memory
	awk 'NR == 1 { gsub(",", ""); exit !($3 > 31e6 && $3 < 60e6) }' memory && ! grep -q 'not sampled:' err || {
		cat err memory
		echo "hearth record --memory $1: not the 32 MB that dd's buffer has"
		exit 1
	}
}
both memory

# A CPU that goes and comes back: the only one that is sampled, so what the programs do there comes from its second life.
cpu=/sys/devices/system/cpu/cpu1/online
if [ -w $cpu ]; then
	# shellcheck disable=SC2016 # the inner shell's
	"$HEARTH" record $insist -F 99 -C 1 -o cpu.otlp -- \
		sh -c 'echo 0 >"$1"; sleep 1; echo 1 >"$1"; "$2" 4 & "$2" 4 & "$2" 4 & wait' sh $cpu "$build/truth/c_chain" >/dev/null 2>err || {
		cat err
		echo "hearth record while a CPU goes and comes back: fails"
		exit 1
	}
	"$HEARTH" report cpu.otlp --by cpu --format folded >cpu.folded
	awk '/^CPU 1;.*main;f01;f02;/ { n += $NF } END { exit n < 30 }' cpu.folded && ! grep -q '^CPU 0;' cpu.folded || {
		cat err
		sed 's/;.* / /' cpu.folded | sort | uniq -c
		echo "hearth record while a CPU goes and comes back: it is not sampled afterwards"
		exit 1
	}
fi

# Calls of functions, in the kernel and in programs: as many as a program says (HEARTH_VM_PROBES=1 HEARTH_VM_SECONDS=1200: each loads
# programs, which an emulated CPU verifies for seconds).
# shellcheck disable=SC2086 # nothing is no word
[ -z "${HEARTH_VM_PROBES:-}" ] || "$here/probes.sh" "$build" -q $insist >probes || {
	cat probes
	exit 1
}

"$HEARTH" record $insist -F 99 -d 7 -o vm.otlp 2>err &
recorder=$!
for _ in $(seq 600); do
	! grep -q "profiles go to" err || break
	sleep 0.1
done
"$build/truth/c_chain" 4 >c_chain
wait $recorder || {
	status=$?
	cat err
	echo "hearth record: exit status $status"
	exit 1
}
cat err
status=0
"$here/../truth/check.py" --min 99 --least 30 vm.otlp c_chain >verdict || status=$?
cat verdict
sed -n 's/^ok *//p' verdict
exit $status
