#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Storms: 5,000 threads that run when the recording begins and 5,000 that start below it, processes started as fast as they go,
# and a host where every sample misses: 300 programs, each with a file and a build id of its own. Samples are accounted for
# exactly, and each has its whole stack.
# Alone: it puts every CPU under load.
. "$TOP/tests/system/lib.sh"
need_bpf
"$TOP/tests/comings/build.sh" .

running=()

go() {
	local name=$1
	shift
	start "$name.truth" "$@"
	running+=("$started")
}

finish() {
	for pid in "${running[@]}"; do
		wait "$pid" || fail "a program ended with status $?: $(cat ./*.err)"
	done
	running=()
}

go crowd1 ./crowd 9 5000
sleep 2
start_record all.otlp -F 199 --report-interval 1s --ring-bytes 16M -p "$$,$started"
[ "$(ls "/proc/${running[0]}/task" | wc -l)" -gt 4000 ] || fail "the 5,000 threads are not there"
finish
go crowd2 ./crowd 3 5000
finish
for i in 1 2 3 4; do
	go "swarm$i" ./swarm 3 ./mote mote 1
done
finish
python3 - <<'EOF'
import os
with open("many", "rb") as f:
    program = f.read()
build_id = bytes.fromhex("00112233445566778899aabbccddeeff")
assert program.count(build_id) == 1
for i in range(300):
    os.makedirs(f"copies/{i}")
    with open(f"copies/{i}/app", "wb", opener=lambda path, flags: os.open(path, flags, 0o755)) as f:
        f.write(program.replace(build_id, build_id[:-2] + i.to_bytes(2, "big")))
EOF
echo "chain many app main many_outer many_inner many_leaf" >many.truth
for i in {0..299}; do
	"copies/$i/app" 15 || fail "copy $i ended with status $?"
done
stop "$recorder"
cat record.out.err
accounted record.out.err
[ "$(count lost record.out.err)" = 0 ] || fail "samples were lost"
"$HEARTH" report all.otlp --format print >printed
"$TOP/tests/comings/judge.py" --least 20 printed ./*.truth
ids=$(grep -c "" <(grep -o "copies/[0-9]*/app" printed | sort -u))
echo "$ids of 300 files were met"
[ "$ids" -ge 50 ] || fail "only $ids of 300 files were met"
