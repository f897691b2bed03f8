#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds the truth programs into OUTDIR; what is newer than its sources stays. A language whose compiler is missing is left out
# with a notice on stderr.   build.sh OUTDIR
set -eu
[ $# = 1 ] || {
	echo "usage: $0 OUTDIR" >&2
	exit 2
}
mkdir -p "$1"
out=$(cd "$1" && pwd)
cd "$(dirname "$0")"
cc=${CC:-gcc}
nofp="-O2 -g0 -fomit-frame-pointer"

# build NAME SOURCE COMMAND...: runs COMMAND -o OUTDIR/NAME SOURCE when a source or this script is newer
build() {
	local name=$1 source=$2
	shift 2
	for f in "$source" truth.h plugin.h build.sh; do
		if [ "$f" -nt "$out/$name" ]; then
			"$@" -o "$out/$name" "$source"
			return
		fi
	done
}

# shellcheck disable=SC2086 # the flags are lists
{
	build c_chain c_chain.c $cc $nofp -fno-pie -no-pie
	build c_chain_fp c_chain.c $cc -O2 -g0 -fno-omit-frame-pointer -fno-pie -no-pie
	build c_chain_pie c_chain.c $cc $nofp -fPIE -pie
	build c_chain_static c_chain.c $cc $nofp -fno-pie -no-pie -static
	build c_chain_O0 c_chain.c $cc -O0 -g0
	for cold in '' COLD; do # what tools/bench compares
		for shallow in '' SHALLOW; do
			name=bench${cold:+_cold}${shallow:+_5}
			options="-fno-pie -no-pie ${cold:+-DCOLD} ${shallow:+-DSHALLOW}"
			build $name c_chain.c $cc $nofp $options
			build ${name}_fp c_chain.c $cc -O2 -g0 -fno-omit-frame-pointer $options
		done
	done
	build recurse400 recurse.c $cc $nofp -DDEPTH=400
	build recurse1000 recurse.c $cc $nofp -DDEPTH=1000
	build recurse1500 recurse.c $cc $nofp -DDEPTH=1500 # deeper than hearth walks
	build short short.c $cc $nofp
	build deepstack deepstack.c $cc $nofp
	build sparsestack deepstack.c $cc $nofp -DSPARSE
	build asm_chain asm_chain.c $cc $nofp
	build threads threads.c $cc $nofp -pthread
	build libplugin.so plugin.c $cc $nofp -shared -fPIC
	build plugin_host plugin_host.c $cc $nofp -ldl
	if command -v musl-gcc >/dev/null; then # no table covers any of it
		build musl_chain c_chain.c musl-gcc $nofp -fno-asynchronous-unwind-tables -static
	else
		echo "truth: no musl-gcc, musl_chain left out" >&2
	fi
	if command -v clang >/dev/null; then
		build c_chain_clang c_chain.c clang $nofp
	fi
	if command -v g++ >/dev/null; then
		build cpp_chain cpp_chain.cc g++ -std=c++17 $nofp
	else
		echo "truth: no g++, cpp_chain left out" >&2
	fi
}

# The distribution's rustc and, where another one comes first in the path, that one too, with both of its name manglings.
rust="-O -C debuginfo=0 --edition 2021 --crate-name rust_chain"
system_rustc=/usr/bin/rustc
path_rustc=$(command -v rustc || :)
# shellcheck disable=SC2086
{
	if [ -x $system_rustc ]; then
		build rust_chain rust_chain.rs $system_rustc $rust
		build rust_chain_v0 rust_chain.rs $system_rustc $rust -C symbol-mangling-version=v0
		build rust_abort rust_chain.rs $system_rustc $rust -C panic=abort -C force-unwind-tables=no
	fi
	if [ -n "$path_rustc" ] && [ "$path_rustc" != $system_rustc ]; then
		build rust_chain_new rust_chain.rs "$path_rustc" $rust
	fi
}
[ -x $system_rustc ] || [ -n "$path_rustc" ] || echo "truth: no rustc, rust_chain left out" >&2

# Go: the toolchain in the path, as it builds by default, stripped and position-independent; and Debian 12's own, which has
# another prologue and another table.
go_build="env -u GOROOT GO111MODULE=off GOFLAGS= GOPROXY=off HOME=${HOME:-$out}"
old_go=/usr/lib/go-1.19/bin/go
# shellcheck disable=SC2086
if command -v go >/dev/null; then
	build go_chain go_chain.go $go_build go build
	build go_chain_s go_chain.go $go_build go build "-ldflags=-s -w"
	build go_chain_pie go_chain.go $go_build go build -buildmode=pie "-ldflags=-s -w"
else
	echo "truth: no go, go_chain left out" >&2
fi
# shellcheck disable=SC2086
if [ -x $old_go ]; then
	build go_chain_1.19 go_chain.go $go_build $old_go build "-ldflags=-s -w"
fi
