#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `hearth bench` measures what it says: every figure is there, with its counterpart or why there is none, and nothing is left behind.
# Alone: it measures.
. "$TOP/tests/system/lib.sh"

# check NAME WANTED...: figures whose names begin so are measured; the rest of the table is sound
check() {
	python3 - "$@" <<-'PYTHON'
		import json, shutil, sys
		figures = json.load(open(sys.argv[1]))
		for wanted in sys.argv[2:]:
		    found = [f for f in figures if f["name"].startswith(wanted)]
		    if not found or any(not f["hearth"] or f["hearth"] <= 0 for f in found):
		        sys.exit(f"{wanted!r} is not measured: {found}")
		for f in figures:
		    if f["hearth"] is None and not f["why_not"]:
		        sys.exit(f"nothing says why {f} is not there")
		    program = f["beside"].split()[0] if f["beside"] else ""
		    if program in ("perf", "llvm-symbolizer", "addr2line") and f["hearth"] and (f["other"] is None) == (shutil.which(program) is not None):
		        sys.exit(f"{program} is {shutil.which(program)}: {f}")
		    if program and f["other"] is None and not f["why_not"]:
		        sys.exit(f"nothing says why there is nothing beside {f}")
		by_name = {f["name"].split(",")[0]: f for f in figures}
		sample = by_name.get("BPF time of a sample")
		if sample and sample["hearth"] and not 0.2 < sample["hearth"] < 200:
		    sys.exit(f"no price of a sample: {sample}")
	PYTHON
}
mkdir scratch
export TMPDIR=$PWD/scratch
names=('1000 addresses named' 'the index of that file made' 'the same addresses out of the index')
if [ "$(id -u)" = 0 ]; then
	chmod 777 scratch
	cp "$HEARTH" hearth && chmod 755 . hearth && setpriv --reuid 65534 --regid 65534 --clear-groups ./hearth bench --json >user.json 2>user.err || fail "without root: $(cat user.err)"
	check user.json "${names[@]}" || fail "without root: $(cat user.json)"
	[ "$(grep -c '"needs root' user.json)" = 4 ] || fail "what needs root does not say so: $(cat user.json)"
	need_bpf
	names+=('BPF time of a sample, 3' 'its CPU' 'the same, with what BPF takes' 'CPU of 6 s' 'memory' 'the file' "recording of 'true'" 'a CPU second of a receiver'
		'a sample stored' 'the flame graph')
fi
"$HEARTH" bench --json >bench.json 2>bench.err || fail "$(cat bench.err)"
[ "$(grep -c 'measuring ' bench.err)" = 5 ] || fail "does not say what it does: $(cat bench.err)"
check bench.json "${names[@]}" || fail "$(cat bench.json)"
[ -z "$(ls scratch)" ] || fail "left behind: $(ls -R scratch)"
