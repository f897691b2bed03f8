#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds what the benchmarks need beside hearth into BUILD/bench and runs them (bench.py says what they are). Root.
#   run.sh BUILD [FIGURE...]      BENCH_QUICK=1: fewer and shorter rounds
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
if [ tools/bench/fpwalk.bpf.c -nt "$out/fpwalk" ] || [ tools/bench/fpwalk.c -nt "$out/fpwalk" ]; then
	include=/usr/include/$(gcc -print-multiarch)
	"${CLANG:-clang}" -std=gnu11 -g -O2 -target bpf -I"$include" -Wall -Wextra -Wno-unused-parameter -Werror -c -o "$out/fpwalk.bpf.o" tools/bench/fpwalk.bpf.c
	bpftool gen skeleton "$out/fpwalk.bpf.o" name fpwalk_bpf >"$out/fpwalk.skel.h"
	gcc -std=gnu17 -D_GNU_SOURCE -O2 -Wall -Wextra -I"$out" -o "$out/fpwalk" tools/bench/fpwalk.c -lbpf
fi
exec python3 tools/bench/bench.py "$build" "$@"
