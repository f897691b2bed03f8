#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds truth programs for arm64 into OUTDIR, by cross compilers over the libraries in SYSROOT (tests/vm/sysroot.sh). A language
# whose compiler is missing is left out with a notice on stderr. Each has a second name, warm_NAME, for the same file.
#   build-arm64.sh OUTDIR SYSROOT
set -eu
[ $# = 2 ] || {
	echo "usage: $0 OUTDIR SYSROOT" >&2
	exit 2
}
mkdir -p "$1"
out=$(cd "$1" && pwd)
sysroot=$(readlink -f "$2")
cd "$(dirname "$0")"
. ./build-lib.sh
cc="aarch64-linux-gnu-gcc --sysroot=$sysroot"
cxx="aarch64-linux-gnu-g++ --sysroot=$sysroot"
nofp="-O2 -g0 -fomit-frame-pointer"
pac="-mbranch-protection=standard"
go_build="env -u GOROOT GOARCH=arm64 CGO_ENABLED=0 GO111MODULE=off GOFLAGS= GOPROXY=off HOME=${HOME:-$out}"
old_go=/usr/lib/go-1.19/bin/go
rustc=/usr/bin/rustc # the distribution's, whose library for arm64 is in SYSROOT
rust_libs=$sysroot/usr/lib/rustlib/aarch64-unknown-linux-gnu/lib
rust="-O -C debuginfo=0 --edition 2021 --crate-name rust_chain --target aarch64-unknown-linux-gnu -L $rust_libs
	-C linker=aarch64-linux-gnu-gcc -C link-arg=--sysroot=$sysroot"

# shellcheck disable=SC2086 # the flags are lists
{
	build c_chain c_chain.c $cc $nofp -fno-pie -no-pie
	build c_chain_fp c_chain.c $cc -O2 -g0 -fno-omit-frame-pointer -fno-pie -no-pie
	build c_chain_pie c_chain.c $cc $nofp -fPIE -pie
	build c_chain_static c_chain.c $cc $nofp -fno-pie -no-pie -static
	build c_chain_O0 c_chain.c $cc -O0 -g0
	build c_chain_pac c_chain.c $cc $nofp $pac
	build c_chain_bare c_chain.c $cc $nofp -fno-asynchronous-unwind-tables # no table covers it
	build recurse400 recurse.c $cc $nofp -I../.. -DDEPTH=400
	build recurse950_pac recurse.c $cc $nofp -I../.. $pac -DDEPTH=950
	build deepstack deepstack.c $cc $nofp
	build asm_chain asm_chain_arm64.c $cc $nofp
	build signal_chain signal_chain_arm64.c $cc $nofp
	build signal_chain_pac signal_chain_arm64.c $cc $nofp $pac
	build threads threads.c $cc $nofp -pthread
	build libplugin.so plugin.c $cc $nofp -shared -fPIC
	build plugin_host plugin_host.c $cc $nofp -ldl
	if have aarch64-linux-gnu-g++; then
		build cpp_chain cpp_chain.cc $cxx -std=c++17 $nofp
	else
		missing aarch64-linux-gnu-g++ cpp_chain
	fi
	if have go; then
		build go_chain go_chain.go $go_build go build
		strip=0 build go_chain_pie go_chain.go $go_build go build -buildmode=pie
	else
		missing go go_chain
	fi
	if have $old_go; then
		build go_chain_1.19 go_chain.go $go_build $old_go build
	fi
	if [ -x $rustc ] && [ -d "$rust_libs" ]; then
		build rust_chain rust_chain.rs $rustc $rust
	else
		missing "$rustc and $rust_libs" rust_chain
	fi
}
built
for program in "$out"/[a-z]*; do
	case ${program##*/} in
	warm_* | lib*) ;;
	*) ln -f "$program" "$out/warm_${program##*/}" ;;
	esac
done
