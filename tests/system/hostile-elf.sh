#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Programs whose files hurt those who read them, and a library cut short while it is mapped, run beside honest ones. hearth
# keeps sampling, every hostile program's samples arrive, and the stacks of an honest one stay whole.
# Alone: the whole machine is sampled, and the honest program is to have its share.
. "$TOP/tests/system/lib.sh"
need_bpf
make_hostile() { python3 "$TOP/tests/system/hostile_elf.py" "$@"; }

seconds=12
mapfile -t kinds < <(make_hostile --list)
mkdir bad
for kind in "${kinds[@]}"; do
	make_hostile "$kind" "$TRUTH/c_chain_fp" "bad/$kind"
done
cp "$TRUTH/libplugin.so" bad/cut.so

# children_of PID: its children's pids
children_of() { cat "/proc/$1/task/$1/children" 2>/dev/null; }

start_record all.otlp -F 499 --report-interval 1s
template=$(children_of "$recorder")
[ -n "$template" ] || fail "hearth has no helper process"
start c_chain "$TRUTH/c_chain" $((seconds + 1))
sleep 1
for kind in "${kinds[@]}"; do
	start "$kind" "bad/$kind" $seconds
done
start cut_under make_hostile --cut-under bad/cut.so plugin_pure $seconds
sleep $((seconds + 2))

kill -0 "$recorder" || fail "hearth has ended: $(cat record.out.err)"
[ "$(children_of "$recorder" | xargs)" = "$(echo "$template" | xargs)" ] || fail "the helper process did not survive"
stop "$recorder"
cat record.out.err
for pid in $template; do
	[ ! -d "/proc/$pid" ] || fail "a helper process outlived hearth"
done
accounted record.out.err
grep -q "registers_slow: reading its tables took too" record.out.err || fail "registers_slow was not found hostile"

"$HEARTH" report all.otlp --format folded >folded
least=100 # on an idle machine with two CPUs each gets about 450
for program in "${kinds[@]}" cut_under; do
	n=$(awk -v comm="$program" -F';' '$1 == comm { sub(/.* /, ""); sum += $0 } END { print sum + 0 }' folded)
	echo "$program: $n samples"
	[ "$n" -ge $least ] || fail "$program ran for $seconds s and has $n samples, less than $least"
done
judge --min 99 --least $least all.otlp c_chain
# The hostile one is left to frame pointers: from the root on, only the caller of a leaf without a frame is missing.
n=$(awk '/^registers_slow;_start;.*;main;f01;f02;.*;f31;f32;/ { sum += $NF } END { print sum + 0 }' folded)
echo "registers_slow: $n samples by frame pointers"
[ "$n" -ge $((least / 2)) ] || fail "the hostile program has only $n frame-pointer stacks"

# Killed, hearth leaves nobody behind.
start killed "$HEARTH" record -F 49 -o killed.otlp
killed=$started
until_true 60 grep -q "profiles go to" killed.err || fail "no recording after 60 s: $(cat killed.err)"
template=$(children_of "$killed" | cut -d " " -f 1) # the first is at work, the others wait for its end
worker=$(children_of "$template" | xargs)
[ -n "$worker" ] || fail "the helper process has no worker"
kill -KILL "$killed"
has_ended() { ! grep -qs "^State:.[^ZX]" "/proc/$1/status"; }
until_true 5 has_ended "$template" || fail "the helper process lives on"
until_true 5 has_ended "$worker" || fail "its worker lives on"
