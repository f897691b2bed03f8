#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Recording a build: make's exit status comes back, and the compilers, which live for some ten milliseconds, are there by name.
# Alone: it takes every CPU, for processes that live for milliseconds.
. "$TOP/tests/system/lib.sh"
need_bpf

for i in $(seq 12); do
	{
		echo '#include <stdio.h>'
		for f in $(seq 150); do
			echo "int f${i}_$f(int x) { int s = x; for (int j = 0; j < x; j++) s = s * $f + (j ^ x) % ($f + 1); return s; }"
		done
	} >part$i.c
done
cat >Makefile <<'END'
OBJECTS := $(patsubst %.c,%.o,$(wildcard part*.c))
libparts.so: $(OBJECTS)
	gcc -shared -o $@ $^
%.o: %.c
	gcc -O2 -fPIC -c -o $@ $<
END
"$HEARTH" record -F 999 -o make.otlp -- make -j2 >out 2>err || fail "status $? of a build that works: $(cat out err)"
[ -e libparts.so ] || fail "nothing was built: $(cat out err)"
[ -e make.otlp ] && [ ! -e make.otlp.part ] || fail "make.otlp is not there under its name alone: $(ls)"
accounted err
"$HEARTH" report make.otlp --format folded >folded
python3 - <<'END'
import collections, re, sys
seen, named = collections.Counter(), collections.Counter()
unnamed = re.compile(r"(\S+\+)?0x[0-9a-f]+$")
kernel = {line.split()[2] for line in open("/proc/kallsyms")}
for line in open("folded"):
    stack, _, count = line.rpartition(" ")
    comm, *frames = stack.split(";")
    seen[comm] += int(count)
    if any(not unnamed.match(f) and f not in kernel for f in frames):
        named[comm] += int(count)
for comm in "cc1", "as", "ld":
    print(f"{comm}: {seen[comm]} samples, {named[comm]} with names outside the kernel")
    if not named[comm]:
        sys.exit(f"FAILED: {comm} is not in the profile by name; there are: {dict(seen)}")
END

status=0
"$HEARTH" record -F 99 -o fails.otlp -- make -j2 no-such-target >out 2>err || status=$?
[ $status = 2 ] || fail "status $status instead of make's 2: $(cat out err)"
[ -e fails.otlp ] || fail "no capture of a command that fails: $(cat out err)"
