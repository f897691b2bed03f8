#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds the programs whose names are compared into OUTDIR, each in several ways; what is newer than its source stays. A language
# whose compiler is missing is left out with a notice.   build.sh OUTDIR [NAME...]      (only those; go: of the newest Go)
set -eu
[ $# -ge 1 ] || {
	echo "usage: $0 OUTDIR [NAME...]" >&2
	exit 2
}
mkdir -p "$1"
out=$(readlink -f "$1")
cd "$(dirname "$0")/programs"
here=$PWD
shift
wanted=" $* "

# one NAME SOURCE COMMAND...: OUTDIR/NAME, made by COMMAND with '-o OUTDIR/NAME SOURCE' behind it. It runs in OUTDIR: split DWARF
# lands there.
one() {
	local name=$1 source=$here/$2
	shift 2
	[ "$wanted" = "  " ] || [[ $wanted == *" $name "* ]] || return 0
	! command -v "$1" >/dev/null && echo "left out: $name no $1" && return 0
	[ "$out/$name" -nt "$source" ] && [ "$out/$name" -nt "$here/../build.sh" ] && return 0
	(cd "$out" && "$@" -o "$out/$name" "$source") || echo "symbols: $1 cannot build $name" >&2
}

one cpp work.cc g++ -std=c++17 -O2 -g
one cpp_dwarf4 work.cc g++ -std=c++17 -O2 -gdwarf-4
one cpp_dwarf2 work.cc g++ -std=c++17 -O1 -gdwarf-2 -gstrict-dwarf
one cpp_types work.cc g++ -std=c++17 -O2 -g -fdebug-types-section
one cpp_zlib work.cc g++ -std=c++17 -O3 -g -gz=zlib
one cpp_split work.cc g++ -std=c++17 -O2 -g -gsplit-dwarf
one cpp_split4 work.cc g++ -std=c++17 -O2 -gdwarf-4 -gsplit-dwarf
one cpp_clang work.cc clang++ -std=c++17 -O2 -g
one cpp_clang_split work.cc clang++ -std=c++17 -O2 -gdwarf-5 -gsplit-dwarf
one cpp_sections work.cc g++ -std=c++17 -O2 -g -ffunction-sections -Wl,--gc-sections
one c work.c gcc -O2 -g
one c_O0 work.c gcc -O0 -g
one c_static work.c gcc -O2 -g -static
one c_musl work.c musl-gcc -O2 -g -static
one rust work.rs rustc -C opt-level=2 -C debuginfo=2
one rust_v0 work.rs rustc -C opt-level=3 -C debuginfo=2 -C symbol-mangling-version=v0

# go_programs NAME GO
go_programs() {
	local name=$1 command=(env -u GOROOT GO111MODULE=off GOFLAGS= GOPROXY=off GOCACHE="${GOCACHE:-$out/.go}" "$2" build)
	[ -x "$2" ] || { echo "left out: $name not here" && return 0; }
	one "$name" work.go "${command[@]}"
	one "${name}_stripped" work.go "${command[@]}" "-ldflags=-s -w"
	one "${name}_pie" work.go "${command[@]}" -buildmode=pie
}
go_programs go "$(command -v go)"
go_programs go1.19 /usr/lib/go-1.19/bin/go
