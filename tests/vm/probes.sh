#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Each type of probes that there is, in a test machine: as many samples as tests/probes/calls.cc says that it made calls, in both forms of
# the walk.   probes.sh BUILD RECORD_OPTION...
set -eu
build=$1
options=("${@:2}")
failed=0

# probe FORM WORD NAME PATTERN: the calls of NAME, in stacks with PATTERN
probe() {
	local wanted got
	# shellcheck disable=SC2086 # no form is no word
	"$build/hearth" record "${options[@]}" $1 -e "$2" -o probe.otlp -- "$build/probes/calls" 2 100 >own 2>err || {
		cat err
		echo "hearth record -e $2 $1: fails"
		failed=1
		return
	}
	wanted=$(awk -v name="$3" '$1 == name { print $2 }' own)
	"$build/hearth" report probe.otlp --format folded >folded
	got=$(grep -E -- "$4" folded | awk '{ n += $NF } END { print n + 0 }')
	[ "$got" = "$wanted" ] || {
		head folded
		cat err
		echo "hearth record -e $2 $1: $got samples of $wanted calls"
		failed=1
	}
	echo "$2 $1: $got of $wanted"
}

forms=('' --no-bpf-loop)
[[ $(uname -r) != 5.10.* ]] || forms=('') # it has but the one
for form in "${forms[@]}"; do
	probe "$form" kprobe:__x64_sys_getppid getppid 'outer;.*;__x64_sys_getppid '
	probe "$form" kretprobe:__x64_sys_getppid getppid 'outer;(__)?getppid'
	probe "$form" fentry:__task_pid_nr_ns getppid 'outer;(__)?getppid;.*;__task_pid_nr_ns '
	probe "$form" fexit:__task_pid_nr_ns getppid 'outer;(__)?getppid'
done
probe '' 'kprobe:__x64_sys_getpp*' getppid 'outer;.*;__x64_sys_getppid '
calls=$build/probes/calls
probe '' "uprobe:$calls:one" one '(again;){5}one |outer;one '
probe '' "uprobe:$calls:ours::Thing::method" method 'outer;ours::Thing::method '
probe '' "uprobe:$build/probes/libcalls.so:from_library" from_library 'outer;from_library '
probe '' "usdt:$calls:ours:passed" passed 'outer '
probe '' "uretprobe:$calls:again" again .
probe '' "uprobe:$calls:*" one ';one '

# Where return addresses are a probe's, stacks of time are whole.
"$build/hearth" record "${options[@]}" -F 999 -e cpu-clock -e "uretprobe:$build/probes/spin:deep" -o spin.otlp -- "$build/probes/spin" 2000 >own 2>err || {
	cat err
	exit 1
}
"$build/hearth" report spin.otlp --kind samples --focus '^work$' --format folded >work
# What the program is made of has to be read first, so that some may be cut.
grep -q 'main;deep;deep;deep;between;work[ ;]' work &&
	! grep -vE '^spin;(((.*main;deep;)?deep;)?deep;)?(between;)?work[ ;]' work || {
	cat err work
	echo "stacks are cut or wrong where return addresses are a probe's"
	failed=1
}
echo "below uretprobes: $(awk '{ n += $NF } END { print n + 0 }' work) stacks whole"
exit $failed
