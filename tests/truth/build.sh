#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds the truth programs into OUTDIR; what is newer than its sources stays. A language whose compiler is missing is left out
# with a line that says so. The many flavours of the same few programs are in cells.sh.   build.sh OUTDIR
set -eu
[ $# = 1 ] || {
	echo "usage: $0 OUTDIR" >&2
	exit 2
}
mkdir -p "$1"
out=$(cd "$1" && pwd)
cd "$(dirname "$0")"
. ./build-lib.sh
cc=${CC:-gcc}
nofp="-O2 -g0 -fomit-frame-pointer"

# shellcheck disable=SC2086 # the flags are lists
{
	build c_chain c_chain.c $cc $nofp -fno-pie -no-pie
	build c_chain_fp c_chain.c $cc -O2 -g0 -fno-omit-frame-pointer -fno-pie -no-pie
	for cold in '' COLD; do # what tools/bench compares
		for shallow in '' SHALLOW; do
			name=bench${cold:+_cold}${shallow:+_5}
			options="-fno-pie -no-pie ${cold:+-DCOLD} ${shallow:+-DSHALLOW}"
			build $name c_chain.c $cc $nofp $options
			build ${name}_fp c_chain.c $cc -O2 -g0 -fno-omit-frame-pointer $options
		done
	done
	build recurse400 recurse.c $cc $nofp -I../.. -DDEPTH=400
	build recurse950 recurse.c $cc $nofp -I../.. -DDEPTH=950
	build recurse1500 recurse.c $cc $nofp -I../.. -DDEPTH=1500
	build turns1500 recurse.c $cc $nofp -I../.. -DDEPTH=1500 -DIN_TURNS # deeper than hearth walks
	build short short.c $cc $nofp
	build deepstack deepstack.c $cc $nofp
	build sparsestack deepstack.c $cc $nofp -DSPARSE
	build hugeframe deepstack.c $cc $nofp -DHUGE
	build hugethread deepstack.c $cc $nofp -DHUGE -DTHREAD
	build asm_chain asm_chain.c $cc $nofp
	build twin_small twins.c $cc $nofp -fno-pie -no-pie -DROOM=24
	build twin_large twins.c $cc $nofp -fno-pie -no-pie -DROOM=104
	build threads threads.c $cc $nofp -pthread
	build libplugin.so plugin.c $cc $nofp -shared -fPIC
	build plugin_host plugin_host.c $cc $nofp -ldl
	if have musl-gcc; then # no table covers any of it
		build musl_chain c_chain.c musl-gcc $nofp -fno-asynchronous-unwind-tables -static
	else
		missing musl-gcc musl_chain
	fi
	if have g++; then
		build cpp_chain cpp_chain.cc g++ -std=c++17 $nofp
	else
		missing g++ cpp_chain
	fi
	if have rustc; then
		build rust_chain rust_chain.rs rustc -O -C debuginfo=0 --edition 2021 --crate-name rust_chain
	else
		missing rustc rust_chain
	fi
	if have go; then
		build go_chain go_chain.go env -u GOROOT GO111MODULE=off GOFLAGS= GOPROXY=off HOME="${HOME:-$out}" go build
	else
		missing go go_chain
	fi
}
built
