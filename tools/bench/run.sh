#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds what the benchmarks need beside hearth into BUILD/bench and runs them (bench.py says what they are). Root.
#   run.sh BUILD [FIGURE...]      BENCH_QUICK=1: fewer and shorter rounds; BENCH_LONG=1: memory over an hour
set -eu
[ $# -ge 1 ] || {
	echo "usage: $0 BUILD [FIGURE...]" >&2
	exit 2
}
build=$(readlink -f "$1")
cd "$(dirname "$0")/../.."
[ "$(id -u)" = 0 ] || {
	echo "bench: needs root" >&2
	exit 1
}
shift
out=$build/bench
export PATH=$PATH:/usr/sbin
mkdir -p "$out"
tests/truth/build.sh "$build/truth"

# stale NAME SOURCE...: is BUILD/bench/NAME missing or older than a source or this script?
stale() {
	local name=$1 source
	shift
	for source in "$@" tools/bench/run.sh; do
		[ "$source" -nt "$out/$name" ] && return
	done
	return 1
}

cxx="g++ -std=c++17 -I. -O2 -g0 -fno-pie"
many=tools/bench/load/many.cc
for kind in "" _fp; do
	stale many$kind $many || continue
	frame=-fomit-frame-pointer
	[ -z "$kind" ] || frame=-fno-omit-frame-pointer
	seq 0 39 | xargs -P 2 -I{} sh -c "$cxx $frame -DLINK={} -DNEXT=\$(({} + 1)) -c -o $out/many${kind}_{}.o $many"
	g++ -no-pie -o "$out/many$kind" "$out/many${kind}"_*.o
	rm -f "$out/many${kind}"_*.o
done
! stale depth tools/bench/load/depth.c ||
	gcc -O1 -fno-omit-frame-pointer -fno-optimize-sibling-calls -o "$out/depth" tools/bench/load/depth.c
! stale faults tools/bench/load/faults.c || gcc -O2 -o "$out/faults" tools/bench/load/faults.c
! stale hits tools/bench/load/hits.c || gcc -O1 -fno-omit-frame-pointer -o "$out/hits" tools/bench/load/hits.c
! stale switches tools/bench/load/switches.c || gcc -O2 -o "$out/switches" tools/bench/load/switches.c
! stale in_span tools/bench/load/in_span.c || gcc -O1 -fno-omit-frame-pointer -o "$out/in_span" tools/bench/load/in_span.c -ldl
! stale in_span_linked tools/bench/load/in_span.c tests/context/context.c ||
	gcc -O1 -fno-omit-frame-pointer -DLINKED -Wl,--export-dynamic -o "$out/in_span_linked" tools/bench/load/in_span.c tests/context/context.c -ldl
! stale libin_span.so tests/context/context.c || gcc -O2 -fPIC -shared -o "$out/libin_span.so" tests/context/context.c
for depth in 35 264 1000; do
	! stale deep$depth tools/bench/load/deep.cc ||
		$cxx -fomit-frame-pointer -no-pie -ftemplate-depth=2000 -DDEPTH=$depth -o "$out/deep$depth" tools/bench/load/deep.cc
done

# Go: 80 functions deep, each with locals of its own size.
write_go() {
	echo 'package main'
	echo 'import ("os"; "strconv"; "time")'
	for i in $(seq 78); do
		echo '//go:noinline'
		echo "func f$i(x uint64) uint64 { var room [$((1 + i % 7))]uint64; room[x%$((1 + i % 7))] = f$((i + 1))(x + 1); return room[0] + x }"
	done
	cat <<-'END'
		//go:noinline
		func f79(x uint64) uint64 {
			for i := 0; i < 4000000; i++ {
				x = x*6364136223846793005 + 1442695040888963407
			}
			return x
		}
		func main() {
			seconds, _ := strconv.Atoi(os.Args[1])
			for end := time.Now().Add(time.Duration(seconds) * time.Second); time.Now().Before(end); {
				f1(uint64(seconds))
			}
		}
	END
}
if command -v go >/dev/null; then
	go_build="env -u GOROOT GO111MODULE=off GOFLAGS= GOPROXY=off HOME=${HOME:-$out} go build"
	if stale many_go; then
		write_go >"$out/many.go"
		$go_build -o "$out/many_go" "$out/many.go"
	fi
	! stale heap_go tests/memory/heap.go || $go_build -o "$out/heap_go" tests/memory/heap.go || : # an old Go
	! stale in_span_go tools/bench/load/in_span.go || $go_build -o "$out/in_span_go" tools/bench/load/in_span.go
	! stale server_go tools/bench/load/server.go || $go_build -o "$out/server_go" tools/bench/load/server.go
fi

# For `symbols`: a Rust program with all of its debug information, and the counterpart. Only when asked for: it takes minutes.
if [[ " $* " == *" symbols "* ]] && command -v cargo >/dev/null && [ ! -x "$out/symbols/bin/rg" ]; then
	crate() {
		nice cargo install -q -j1 --root "$out/symbols" --target-dir "$out/symbols/target" "$@"
	}
	crate --features bin addr2line || :
	CARGO_PROFILE_RELEASE_DEBUG=2 CARGO_PROFILE_RELEASE_STRIP=false crate ripgrep || :
	rm -rf "$out/symbols/target"
fi
exec python3 tools/bench/bench.py "$build" "$@"
