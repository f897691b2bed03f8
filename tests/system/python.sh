#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The functions of Python scripts in stacks: each sample of a program that calls in every way there is, judged by what the program says
# of itself; scripts that are gone when their samples are read; both forms of the walk. Debian's own Python here, others by
# `make runtimes`.
. "$TOP/tests/system/lib.sh"
need_bpf
python=$(readlink -e /usr/bin/python3) || skip "no /usr/bin/python3 here"
name=$(basename "$python")

# judged LEAST WITHOUT ARGUMENT...: the verdict on x.otlp
judged() {
	judge_scripts --min 99.5 --least "$1" --without "$2" "${@:3}"
}

# The interpreter is read when a process that runs it is met first, which takes its time on a busy machine: one runs before.
"$python" -c 'import time; time.sleep(300)' &
pids+=($!)
for form in "" --no-bpf-loop; do
	# shellcheck disable=SC2086 # there may be none
	start_record x.otlp $form -F 333 --report-interval 500ms -p $$ # and its children
	"$python" -W ignore "$TOP/tests/script/calls.py" 3 >truth
	stop "$recorder"
	accounted record.out.err
	judged 100 60 x.otlp "$name" cpython truth
	missing=$(python3 "$TOP/tests/script/judge.py" --min 0 x.otlp "$name" cpython truth | sed -n 's/.*never seen: //p' | tr ' ' '\n' | grep -vxE 'tell|name_of|called_by.*|Turn.*|Key.__init__' || :)
	[ -z "$missing" ] || fail "never seen: $missing"
done

# The first one may be met only while it runs; from then on its program is known before it is.
"$python" "$TOP/tests/script/short.py" tell >truth
start_record x.otlp -F 199 --report-interval 500ms -p $$
for _ in $(seq 30); do
	"$python" "$TOP/tests/script/short.py"
done
stop "$recorder"
"$HEARTH" report x.otlp --format folded >folded
judged 100 100000 --file short.py x.otlp "$name" cpython truth
# In spin(), which takes 50 ms of each, no sample lacks it: of what the loop calls, none has another caller.
bare=$(grep "^$name;" folded | grep "clock_gettime" | grep -vc "work;spin" || :)
[ "$bare" -le 3 ] || { grep clock_gettime folded; fail "$bare stacks of short scripts lack the script's functions"; }

# Workers that were forked have functions of their own at equal addresses.
start_record x.otlp -F 999 -p $$
"$python" "$TOP/tests/script/workers.py" 32 2 >truth
stop "$recorder"
verdict "a worker has another's functions" python3 "$TOP/tests/script/judge_workers.py" x.otlp truth cpython 50

# Interpreters' own functions are hidden, and stay on request.
start_record x.otlp -F 199 --interpreter-frames -p $$
"$python" -W ignore "$TOP/tests/script/calls.py" 1 deep >truth
stop "$recorder"
"$HEARTH" report x.otlp --format folded | grep -q ";<module>;.*;main;.*PyEval_EvalFrame" ||
	"$HEARTH" report x.otlp --format folded | grep -q "Py_RunMain;.*<module>" || fail "--interpreter-frames keeps none"
