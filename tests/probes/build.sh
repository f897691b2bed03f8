#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds the programs whose calls are probed into OUTDIR; "fixed" is one that is not moved.   build.sh OUTDIR
set -eu
[ $# = 1 ] || {
	echo "usage: $0 OUTDIR" >&2
	exit 2
}
mkdir -p "$1"
out=$(cd "$1" && pwd)
cd "$(dirname "$0")"
cc=${CC:-gcc} cxx=${CXX:-g++}
"$cc" -O2 -fPIC -shared -s -o "$out/libcalls.so" library.c
"$cxx" -O2 -o "$out/calls" calls.cc "$out/libcalls.so" -Wl,-rpath,"$out" -lpthread
"$cxx" -O2 -no-pie -fomit-frame-pointer -o "$out/fixed" calls.cc "$out/libcalls.so" -Wl,-rpath,"$out" -lpthread
"$cc" -O2 -fomit-frame-pointer -o "$out/spin" spin.c
