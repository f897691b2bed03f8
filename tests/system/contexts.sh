#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Spans and labels of threads: a C program with the contexts of OTEP 4719 and 4947 in each model of TLS, and a Go program with labels. The
# functions in a stack say in which span it must be. Waits have them too. The store finds a span's samples by its id.
. "$TOP/tests/system/lib.sh"
need_bpf
judge_spans() {
	verdict "links are wrong" python3 "$TOP/tests/context/judge.py" "$@"
}
# record_spans OPTION... -- COMMAND...: a part of the life of a program, whose files are known by then; a longer one where others have the CPUs
record_spans() {
	local options=() seconds
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	shift
	start program.out "$@"
	until_true 10 grep -q '^go$' program.out || fail "$*: $(cat program.out.err)"
	for seconds in 1.3 7; do
		"$HEARTH" record -q -F 997 -d $seconds -p "$started" "${options[@]}" -o x.otlp 2>err || fail "record: $(cat err)"
		"$HEARTH" report x.otlp --kind samples --format folded | awk '{ n += $NF } END { exit n < 600 }' && break
	done
	kill "$started"
}
src=$TOP/tests/context
cflags=(-O2 -g -Wall)
"${CC:-gcc}" "${cflags[@]}" -o linked "$src/spans.c" "$src/context.c" -pthread -Wl,--export-dynamic || skip "no C compiler here"
"${CC:-gcc}" "${cflags[@]}" -DOPENED -o opened "$src/spans.c" -pthread -ldl
"${CC:-gcc}" "${cflags[@]}" -fPIC -shared -o libgnu.so "$src/context.c"
"${CC:-gcc}" "${cflags[@]}" -fPIC -shared -mtls-dialect=gnu2 -o libdesc.so "$src/context.c" || rm -f libdesc.so # arm64 has no other

record_spans --off-cpu -- ./linked 60 2
judge_spans --kind kind --resource service.name=spans-service --resource service.version=2 x.otlp linked
record_spans -- ./opened 60 2 ./libgnu.so
judge_spans --kind kind --resource service.name=spans-service x.otlp opened
if [ -e libdesc.so ]; then
	record_spans -- ./opened 60 2 ./libdesc.so
	judge_spans --kind kind x.otlp opened
fi

# A script's functions beside its context: both are in one sample.
if command -v python3 >/dev/null; then
	record_spans -- python3 "$src/spans_lib.py" 60 2 ./libgnu.so
	judge_spans --kind kind x.otlp "$(python3 -c 'import os; print(os.path.basename(os.path.realpath("/proc/self/exe")))')"
else
	left_out "contexts of Python" "no python3 here"
fi

# What others read: links in OTLP/JSON and in pprof.
trace=00000000000000000000000000000001
"$HEARTH" convert x.otlp x.otlp.json 2>err || fail "convert: $(cat err)"
grep -q "\"traceId\": *\"$trace\"" x.otlp.json || fail "no link in OTLP/JSON"

if command -v go >/dev/null; then
	(cd "$src" && CGO_ENABLED=0 GO111MODULE=off go build -ldflags=-s -o "$OLDPWD/gospans" spans.go) 2>err || fail "go build: $(cat err)"
	record_spans --off-cpu -- ./gospans 60 4
	judge_spans x.otlp gospans
else
	left_out "labels of goroutines" "no go here"
fi
