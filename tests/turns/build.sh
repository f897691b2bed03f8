#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds the programs of tests/turns into OUTDIR, as many at a time as there are CPUs; what is newer than its sources stays. A program
# whose compiler is missing is left out with a line that says so.   build.sh OUTDIR
set -eu
[ $# = 1 ] || {
	echo "usage: $0 OUTDIR" >&2
	exit 2
}
mkdir -p "$1"
out=$(cd "$1" && pwd)
cd "$(dirname "$0")"
cc=${CC:-gcc}
warn="-Wall -Wextra"
nofp="-O2 -g0 -fomit-frame-pointer $warn"
stubs="-L$out -lstubs -Wl,-rpath,\$ORIGIN"

rm -f "$out/.broken"

# built: until all that was begun is built; ends with status 1 when something was not
built() {
	wait
	[ ! -e "$out/.broken" ] || exit 1
}

# build NAME SOURCE COMMAND...: begins COMMAND -o OUTDIR/NAME SOURCE when a source or this script is newer. With behind=LIST those words
# stand behind the source.
build() {
	local name=$1 source=$2
	shift 2
	for f in "$source" *.h build.sh; do
		[ "$f" -nt "$out/$name" ] || continue
		while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do
			wait -n || :
		done
		# shellcheck disable=SC2086 # a list
		"$@" -o "$out/$name" "$source" ${behind:-} || {
			rm -f "$out/$name"
			touch "$out/.broken"
		} &
		return
	done
}

# shellcheck disable=SC2086 # the flags are lists
{
	build signals signals.c $cc $nofp -pthread
	build starts starts.c $cc $nofp -pthread
	build stacks stacks.c $cc $nofp -Wno-infinite-recursion
	build entry entry.c $cc $nofp
	build libstubs.so stubs.c $cc $nofp -shared -fPIC
	built
	behind="$stubs -ldl"
	build libbinder.so binder.c $cc $nofp -shared -fPIC -Wl,-z,lazy
	build calls_lazy calls.c $cc $nofp -Wl,-z,lazy
	build calls_now calls.c $cc $nofp -Wl,-z,now
	build calls_ibt calls.c $cc $nofp -fcf-protection=full -Wl,-z,ibtplt -Wl,-z,lazy
	behind=
	build bare bare.c $cc -O2 -g0 $warn -nostdlib -static -fno-pie -no-pie -fno-stack-protector
	build compat compat.c $cc -O2 -g0 $warn -m32 -nostdlib -static -fno-pie -no-pie -fno-stack-protector
	frames="-g0 $warn"
	build frames_O0 frames.c $cc $frames -O0
	build frames_O1 frames.c $cc $frames -O1
	build frames_O2 frames.c $cc $frames -O2
	build frames_O3 frames.c $cc $frames -O3
	build frames_Os frames.c $cc $frames -Os
	build frames_fp frames.c $cc $frames -O2 -fno-omit-frame-pointer
	build frames_hard frames.c $cc $frames -O2 -fstack-clash-protection -fstack-protector-all -fcf-protection=full
	build frames_nored frames.c $cc $frames -O2 -mno-red-zone -maccumulate-outgoing-args
	build frames_bare frames.c $cc $frames -O2 -fno-asynchronous-unwind-tables
	build frames_bareO0 frames.c $cc $frames -O0 -fno-asynchronous-unwind-tables
	if command -v clang >/dev/null; then
		build frames_clang frames.c clang $frames -O2
		build frames_clangO0 frames.c clang $frames -O0
	else
		echo "left out: frames_clang no clang"
	fi
	if command -v g++ >/dev/null; then
		build except except.cc g++ -std=c++17 $nofp
	else
		echo "left out: except no g++"
	fi
	if command -v musl-gcc >/dev/null; then # no table covers any of it
		build signals_musl signals.c musl-gcc $nofp -fno-asynchronous-unwind-tables -static
		build starts_musl starts.c musl-gcc $nofp -fno-asynchronous-unwind-tables -static
	else
		echo "left out: musl no musl-gcc"
	fi
}

# Go: the toolchain in the path, and Debian 12's own, which has another prologue and another table.
go_build="env -u GOROOT GO111MODULE=off GOFLAGS= GOPROXY=off HOME=${HOME:-$out}"
old_go=/usr/lib/go-1.19/bin/go
for program in goturns cgoturns; do
	# shellcheck disable=SC2086
	if command -v go >/dev/null; then
		build $program $program.go $go_build go build
	else
		echo "left out: $program no go"
	fi
	# shellcheck disable=SC2086
	if [ -x $old_go ]; then
		build ${program}_1.19 $program.go $go_build $old_go build
	else
		echo "left out: ${program}_1.19 no $old_go"
	fi
done
built
