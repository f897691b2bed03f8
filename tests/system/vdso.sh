#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Samples in the vDSO, which no file holds, are walked by its own .eh_frame, in the kernel: whole stacks, and hardly a miss.
. "$TOP/tests/system/lib.sh"
need_bpf

"${CC:-gcc}" -O2 -g0 -fomit-frame-pointer -D_GNU_SOURCE -o vdso_chain "$TOP/tests/truth/vdso_chain.c"
start program ./vdso_chain 8
program=$started
start_record all.otlp -F 499 -p "$program"
sleep 3
# What the kernel's program counted of this recording's samples.
python3 - "$recorder" "$TOP/bpf/event.h" >counted <<'END'
import glob, json, re, subprocess, sys

names = re.findall(r"X\((\w+), \"", open(sys.argv[2]).read().partition("#define BPF_COUNTERS")[2].partition("\n\n")[0])
totals = [0] * len(names)
taken = 0
fdinfo = "\n".join(open(f).read() for f in glob.glob(f"/proc/{sys.argv[1]}/fdinfo/*"))
for map_id in re.findall(r"^map_id:\s+(\d+)", fdinfo, re.M):
    bpftool = ["env", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "bpftool", "-j", "map"]
    if json.loads(subprocess.check_output([*bpftool, "show", "id", map_id]))["name"] != "cpu_states":
        continue
    for entry in json.loads(subprocess.check_output([*bpftool, "dump", "id", map_id])):
        value = entry["formatted"]["value"]
        totals = [a + b for a, b in zip(totals, value["counters"])]
        taken += sum(value["taken"]) # of each kind
print(f"TAKEN {taken}", *(f"{name} {total}" for name, total in zip(names, totals)), sep="\n")
END
wait "$program" || { [ $? = 77 ] && skip "no vDSO here"; } || fail "the program failed"
wait "$recorder" || fail "the recording of a program that has ended: exit status $?, $(cat record.out.err)"
cat record.out.err
"$HEARTH" report all.otlp --format folded >folded
of() { awk -v name="$1" '$1 == name { print $2 }' counted; }
echo "in the kernel: $(of TAKEN) samples taken, $(of MISSES) walked by user space"
in_vdso=';(__vdso_[a-z_]+|\[vdso\][^;]*)( |;)'
count_of() { awk -v vdso="$in_vdso" -v like="$1" '$0 ~ vdso && $0 ~ like { sum += $NF } END { print sum + 0 }' folded; }
all=$(count_of .)
whole=$(count_of '^vdso_chain;_start;.*;main;asked;ask;')
frameless=$(count_of ';__vdso_(time|getcpu)( |;)')
echo "$all samples in the vDSO, $whole of them whole, $frameless in functions without a frame"
[ "$frameless" -ge 100 ] || fail "too few samples in the vDSO: $(cat folded)"
[ $((whole * 100)) -ge $((all * 99)) ] || fail "not all stacks are whole: $(cat folded)"
[ "$(of TAKEN)" -ge 100 ] && [ $(($(of MISSES) * 20)) -le "$(of TAKEN)" ] || fail "the kernel did not walk them itself"
