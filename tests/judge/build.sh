#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds the programs that are judged into OUTDIR; what is newer than its source stays. A program without a compiler
# here is left out.
#   build.sh OUTDIR
set -eu
[ $# = 1 ] || {
	echo "usage: $0 OUTDIR" >&2
	exit 2
}
mkdir -p "$1"
out=$(cd "$1" && pwd)
cd "$(dirname "$0")/programs"
cc=${CC:-gcc}

# build NAME SOURCE COMMAND...: runs COMMAND -o OUTDIR/NAME SOURCE LIBRARY... when the source or this script is newer
build() {
	local name=$1 source=$2
	shift 2
	[ "$source" -nt "$out/$name" ] || [ ../build.sh -nt "$out/$name" ] || return 0
	command -v "$1" >/dev/null || { echo "left out: $name no $1" && return 0; }
	"$@" -o "$out/$name" "$source" $libraries
}

# shellcheck disable=SC2086 # the flags are lists
{
	nofp="-O2 -g0 -fomit-frame-pointer"
	libraries="-lm -lpthread"
	build c_lazy calls.c $cc $nofp -DHAS_DLOPEN -Wl,-z,lazy
	build c_now calls.c $cc -O1 -g0 -DHAS_DLOPEN -fcf-protection -Wl,-z,now
	build c_static calls.c $cc $nofp -static
	build c_musl calls.c musl-gcc $nofp -DNO_THREADS -fno-asynchronous-unwind-tables -static
	build c_musl_threads calls.c musl-gcc $nofp -fno-asynchronous-unwind-tables -static
	build c_clang calls.c clang $nofp -DHAS_DLOPEN
	libraries=
	build cpp calls.cc g++ -std=c++17 $nofp
	build cpp_O0 calls.cc g++ -std=c++17 -O0 -g0
	go_build="env -u GOROOT GO111MODULE=off GOFLAGS= GOPROXY=off HOME=${HOME:-$out}"
	old_go=/usr/lib/go-1.19/bin/go
	if command -v go >/dev/null; then
		build go calls.go $go_build go build
	else
		echo "left out: go no go"
	fi
	if [ -x $old_go ]; then
		build go_1.19 calls.go $go_build $old_go build
	else
		echo "left out: go_1.19 no $old_go"
	fi
}
