#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Heaps of Go programs read from outside, beside the program's own profile by `go tool pprof` and what it says it keeps; what it
# allocates meanwhile; a stripped program; one that takes no samples.
. "$TOP/tests/system/lib.sh"
need_bpf
command -v go >/dev/null || skip "no go here"
go_env="env -u GOROOT GO111MODULE=off GOFLAGS= GOPROXY=off CGO_ENABLED=0 HOME=$PWD"
$go_env go build -o heap "$TOP/tests/memory/heap.go" 2>go.err || skip "this Go is too old for the program: $(head -3 go.err)"
$go_env go build -ldflags='-s -w' -o heap_s "$TOP/tests/memory/heap.go"
cat >silent.go <<'END'
package main

import "time"

var kept [][]byte

func main() {
	for i := 0; i < 16; i++ {
		kept = append(kept, make([]byte, 1<<20))
	}
	time.Sleep(time.Minute)
}
END
$go_env go build -o silent silent.go

# told FILE FUNCTION: the sum of stacks with it
told() {
	awk -v f="main.$2" '{ n = $NF; sub(/ [0-9]+$/, "") } index(";" $0 ";", ";" f ";") { sum += n } END { printf "%.0f\n", sum }' "$1"
}

# near A B PERCENT
near() {
	awk -v a="$1" -v b="$2" -v part="$3" 'BEGIN { exit !(b > 0 && a <= b * (1 + part / 100) && a >= b * (1 - part / 100)) }'
}

has_written() {
	[ "$(grep -c written own.txt)" = "$1" ]
}

# own FILE TYPE: "FUNCTION BYTES" of the program's own profile, callees included
own() {
	go tool pprof -top -cum -nodecount=1000 -nodefraction=0 -sample_index="$2" -unit=B "$1" 2>/dev/null |
		awk '$NF ~ /^main\./ { sub(/B$/, "", $4); printf "%s %.0f\n", substr($NF, 6), $4 }'
}

for program in heap heap_s; do
	rm -f orders
	mkfifo orders
	start own.txt sh -c "exec ./$program 64 64 <orders"
	pid=$started
	exec 3>orders
	until_true 20 grep -q ready own.txt
	start record.out "$HEARTH" record --heap -p "$pid" -d 4 -o x.otlp 3>&-
	recorder=$started
	until_true 60 grep -q 'profiles go to' record.out.err
	echo before.pb.gz >&3
	until_true 20 has_written 1
	wait "$recorder" || fail "record: $(cat record.out.err)"
	cp record.out.err err
	echo after.pb.gz >&3
	until_true 20 has_written 2
	exec 3>&-
	accounted err
	grep -Eq '^.*inuse_space: [1-9][0-9]* samples taken = [1-9][0-9]* delivered \+ 0 lost' err || fail "no inuse_space: $(cat err)"
	"$HEARTH" report x.otlp --kind inuse_space --format folded >used
	own after.pb.gz inuse_space >own.used
	for name in keepLarge keepSmall keepMiddle keepDeep; do
		got=$(told used $name) by_itself=$(awk -v n=$name '$1 == n { print $2 }' own.used) kept=$(awk -v n=$name '$1 == n { print $2 }' own.txt)
		known "--heap $program $name, in use by its own profile" bytes "$by_itself" "$got"
		near "$got" "$by_itself" 5 || fail "$program $name: in use $got, its own profile has $by_itself: $(cat own.used)"
		near "$got" "$kept" 60 || fail "$program $name: in use $got of $kept"
	done
	# What churned in the 4 seconds, and a moment more or less between the program's two profiles.
	"$HEARTH" report x.otlp --kind alloc_space --format folded >allocated
	awk '/^churnSmall|^churnLarge/ { n[$1]++; v[$1, n[$1]] = $2 } END { for (k in n) print k, v[k, 2] - v[k, 1] }' own.txt >churned
	for name in churnSmall churnLarge; do
		got=$(told allocated $name) really=$(awk -v n=$name '$1 == n { print $2 }' churned)
		known "--heap $program $name, allocated about" bytes "$really" "$got"
		near "$got" "$really" 40 || fail "$program $name: $got of about $really bytes allocated: $(cat err)"
	done
	kill "$pid" 2>/dev/null || :
	wait "$pid" 2>/dev/null || :
done

start silent.txt ./silent
"$HEARTH" record --heap -p "$started" -d 1 -o silent.otlp 2>err || fail "record: $(cat err)"
grep -q "process $started (.*/silent) takes no samples of its heap" err || fail "does not say that silent takes no samples: $(cat err)"
