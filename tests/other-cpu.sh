#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Whether the layers that know a CPU's registers and code are valid C for arm64, too: syntax and types, by clang, with what was generated for
# this CPU. Some seconds, where `make ARCH=arm64` and `make test-arm64` take minutes. Needs libc6-dev-arm64-cross.
#   usage: tests/other-cpu.sh BUILD
set -u
build=${1:?usage: tests/other-cpu.sh BUILD}
cd "$(dirname "$0")/.." || exit 1
headers=/usr/aarch64-linux-gnu/include
flags=(--target=aarch64-linux-gnu -nostdlibinc -fsyntax-only -std=gnu11 -D_GNU_SOURCE '-DHEARTH_VERSION="0"' -Wall -Wextra -Werror -I. "-I$build"
	-idirafter $headers -idirafter /usr/include -idirafter "/usr/include/$(gcc -print-multiarch)")
# Sources of other CPUs are not built.
find agent symbols -name '*.c' ! -name '*_x86_64.c' -print0 |
	xargs -0 -n 8 -P "$(nproc)" clang "${flags[@]}"
