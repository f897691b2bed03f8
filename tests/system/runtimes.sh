#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The choice of runtimes (--runtimes, its variable, its key of the configuration file): one that is off leaves the native stack as it
# is, complete; names that do not exist, and those that do nothing, are told.
. "$TOP/tests/system/lib.sh"
need_bpf
python=$(readlink -e /usr/bin/python3) || skip "no /usr/bin/python3 here"
cat >spin.py <<'EOF2'
import time
def inner(end):
    while time.process_time() < end:
        pass
def outer():
    inner(time.process_time() + 0.7)
outer()
EOF2
printf 'runtimes: [perl, php]\n' >off.yaml

# The interpreter is read when a process that runs it is met first, which takes its time on a busy machine: one runs before.
"$python" -c 'import time; time.sleep(300)' &
pids+=($!)

# recorded OPTION...: a recording of spin.py, as stacks; all of them are complete
recorded() {
	local taken
	"$HEARTH" record -F 199 "$@" -o x.otlp -- "$python" spin.py 2>record.err || fail "$*: $(cat record.err)"
	accounted record.err
	taken=$(sed -nE 's/.* ([0-9.]+) % of user stacks complete/\1/p' record.err)
	[ "${taken%.*}" -ge 98 ] || fail "$*: $(tail -n 1 record.err)"
	"$HEARTH" report x.otlp --format folded >folded
}

shows() {
	grep -q "<module>;outer;inner" folded || fail "$1: no function of the script: $(head -n 3 folded)"
}

hides() {
	! grep -q "outer;inner" folded || fail "$1: $(grep "outer;inner" folded | head -n 3)"
	grep -q "Py_RunMain\|PyEval" folded || fail "$1: no function of the interpreter: $(head -n 3 folded)"
}

recorded --runtimes python
shows python
"$HEARTH" report x.otlp --format truth >truth
awk '/^stacks of scripts, by runtime/ { on = 1 } on && $4 == "python" { found = $1 > 30 && $2 + 0 >= 90 && $3 + 0 <= 5 } END { exit !found }' truth ||
	fail "the truth of the script's stacks: $(cat truth)"
recorded --runtimes all,-php
shows all,-php
recorded --runtimes none
hides none
"$HEARTH" report x.otlp --format truth >truth
! grep -q "stacks of scripts" truth || fail "none has stacks of scripts: $(cat truth)"
recorded --runtimes=-python
hides -python
HEARTH_RUNTIMES=php,hotspot recorded
hides HEARTH_RUNTIMES
recorded --config off.yaml
hides "runtimes: [perl, php]"

"$HEARTH" record --runtimes pyhton -d 1 -o y.otlp 2>err && fail "pyhton is a runtime"
grep -q "did you mean python" err || fail "$(cat err)"
"$HEARTH" record -F 999 --idle --runtimes labels,dotnet -d 0.2 -o y.otlp 2>err || fail "$(cat err)"
! grep -q warning err || fail "$(cat err)"
