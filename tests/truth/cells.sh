#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds the cells of the truth matrix into OUTDIR: languages x compilers x what one can ask of them. Not every combination: each
# option in a cell of each compiler, and the pairs known to be interesting. A cell whose compiler or library is missing
# is left out with a notice on stderr.   cells.sh OUTDIR [--all]
#   --all: more cells, and other Go toolchains, fetched through the module proxy
set -eu
[ $# -ge 1 ] || {
	echo "usage: $0 OUTDIR [--all]" >&2
	exit 2
}
mkdir -p "$1/symbols"
out=$(cd "$1" && pwd)
all=${2:-}
cd "$(dirname "$0")"
. ./build-lib.sh

# more FUNCTION ARG...: a cell that is built with --all only
more() {
	[ "$all" != --all ] || "$@"
}

# --- C: mix.c, a chain of frames of all kinds ---
# No tables at all: what is left are the instructions, and where it is kept the frame pointer.
notab="-fno-asynchronous-unwind-tables -fno-unwind-tables"

gcc_cells() {
	c() { build "c_$1" mix.c gcc -g0 "${@:2}"; }
	c O0 -O0
	more c O1 -O1
	c O2 -O2
	c O3 -O3
	c Os -Os
	more c O0_nofp -O0 -fomit-frame-pointer
	c O2_fp -O2 -fno-omit-frame-pointer
	more c O3_fp -O3 -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer
	c nopie -O2 -fno-pie -no-pie
	c static -O2 -static
	c spie -O2 -static-pie
	c lto -O2 -flto
	c spie_lto -O3 -flto -static-pie
	c cet -O2 -fcf-protection=full
	c cet_now -O3 -fcf-protection=full -Wl,-z,now
	more c nocet -O2 -fcf-protection=none
	more c noplt -O2 -fno-plt
	c sections -O2 -ffunction-sections -Wl,--gc-sections
	c nored -O2 -mno-red-zone
	c hard -O2 -fstack-protector-all -fstack-clash-protection -D_FORTIFY_SOURCE=2
	more c native -O3 -march=x86-64-v3
	more c onemap -O2 -Wl,-z,noseparate-code
	more c nohdr -O2 -Wl,--no-eh-frame-hdr
	c notab_O0 -O0 $notab
	more c notab_O1 -O1 $notab
	c notab_O2 -O2 $notab
	more c notab_O3 -O3 $notab
	c notab_fp -O2 $notab -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer
	build c_debug mix.c gcc -O2 -g $notab
	build c_debug_z mix.c gcc -O2 -g -gz $notab -static
	strip=1
	c O2_s -O2
	c static_s -O2 -static
	c lto_s -O3 -flto
	c notab_s -O2 $notab
	c notab_st_s -O3 $notab -static
	strip=0
}

clang_cells() {
	c() { build "cl_$1" mix.c clang -g0 "${@:2}"; }
	c O0 -O0
	more c O1 -O1
	c O2 -O2
	c O3 -O3
	c O2_fp -O2 -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer
	more c nopie -O2 -fno-pie -no-pie
	c static -O2 -static
	c spie -O2 -static-pie
	c cet -O2 -fcf-protection=full
	c sections -O2 -ffunction-sections -Wl,--gc-sections
	c nored -O2 -mno-red-zone
	c notab -O2 $notab
	c notab_O3 -O3 $notab -static
	strip=1 c O3_s -O3
	strip=1 c notab_s -O2 $notab
	if clang -flto -o "$out/.lto" -x c - <<<'int main(void) { return 0; }' 2>/dev/null; then
		c O3_lto -O3 -flto
		strip=1 c spie_lto_s -O3 -flto -static-pie
	else
		missing "linker plug-in for clang" "its LTO cells"
	fi
	rm -f "$out/.lto"
}

musl_cells() {
	c() { build "mu_$1" mix.c musl-gcc -g0 "${@:2}"; }
	c O0 -O0 -static
	c dynamic -O2
	c lto -O2 -flto -static
	c notab -O2 $notab -static
	c notab_fp -O2 $notab -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer -static
	strip=1 c O3_s -O3 -static
	strip=1 c notab_O3_s -O3 $notab -static
}

# --- C++: templates, virtual and indirect calls, a frame that goes on in its catch block ---
cpp_cells() { # PREFIX COMPILER
	local prefix=$1 compiler=$2
	c() { build "${prefix}_$1" cpp_chain.cc "$compiler" -std=c++17 -g0 "${@:2}"; }
	c O0 -O0
	more c O1 -O1
	c O2 -O2
	c O3 -O3
	more c O3_fp -O3 -fno-omit-frame-pointer
	more c nopie -O2 -fno-pie -no-pie
	more c cet -O2 -fcf-protection=full
	more c sections -O2 -ffunction-sections -Wl,--gc-sections
	more c nored -O2 -mno-red-zone
	c spie -O3 -static-pie
	strip=1 c static_s -O2 -static
}

rust_cells() { # PREFIX COMPILER
	local prefix=$1 compiler=$2
	c() { build "${prefix}_$1" rust_chain.rs "$compiler" -C debuginfo=0 --edition 2021 --crate-name rust_chain "${@:2}"; }
	c O0 -C opt-level=0
	more c O1 -C opt-level=1
	c O2 -C opt-level=2
	more c O3 -C opt-level=3
	more c fp -C opt-level=3 -C force-frame-pointers=yes
	c lto -C opt-level=3 -C lto=fat -C codegen-units=1
	c abort -C opt-level=2 -C panic=abort -C force-unwind-tables=no
	more c crt_static -C opt-level=2 -C target-feature=+crt-static
	more c nopie -C opt-level=2 -C relocation-model=static
	more c v0 -C opt-level=2 -C symbol-mangling-version=v0
	strip=1 more c thin_s -C opt-level=3 -C lto=thin
	strip=1 more c abort_s -C opt-level=3 -C panic=abort -C force-unwind-tables=no -C lto=fat
	strip=1 c spie_s -C opt-level=3 -C target-feature=+crt-static -C panic=abort
}

# --- Go: all of a toolchain's cells share its build cache ---
go_env="env -u GOROOT GO111MODULE=off GOFLAGS= GOPROXY=off"
go_cells() { # PREFIX GO
	local prefix=$1 go=$2
	build "${prefix}" go_chain.go $go_env CGO_ENABLED=0 "$go" build
	symbols="$go_env CGO_ENABLED=0 $go build" build "${prefix}_s" go_chain.go $go_env CGO_ENABLED=0 "$go" build "-ldflags=-s -w"
	build "${prefix}_pie" go_chain.go $go_env CGO_ENABLED=0 "$go" build -buildmode=pie
}

more_go_cells() { # GO
	build go_N go_chain.go $go_env CGO_ENABLED=0 "$1" build "-gcflags=all=-N -l"
	symbols="$go_env CGO_ENABLED=0 $1 build -buildmode=pie" more build go_pie_s go_chain.go $go_env CGO_ENABLED=0 "$1" build -buildmode=pie "-ldflags=-s -w"
	build cgo go_cgo.go $go_env CGO_ENABLED=1 "$1" build
	more build cgo_static go_cgo.go $go_env CGO_ENABLED=1 "$1" build "-ldflags=-linkmode=external -extldflags=-static"
	strip=1 more build cgo_pie_s go_cgo.go $go_env CGO_ENABLED=1 "$1" build -buildmode=pie
}

# shellcheck disable=SC2086 # the flags are lists
{
	if have gcc; then gcc_cells; else missing gcc "its cells"; fi
	if have clang; then clang_cells; else missing clang "its cells"; fi
	if have musl-gcc; then musl_cells; else missing musl-gcc "its cells"; fi
	if have g++; then cpp_cells cpp g++; else missing g++ "its cells"; fi
	if have clang++ && have g++; then cpp_cells cppl clang++; else missing clang++ "its cells"; fi
	if have rustc; then rust_cells rust rustc; else missing rustc "its cells"; fi
	if [ -x /usr/bin/rustc ] && [ "$(command -v rustc)" != /usr/bin/rustc ]; then more rust_cells rust_os /usr/bin/rustc; fi
	if have go; then
		go_cells go go
		more_go_cells go
	else
		missing go "its cells"
	fi
	for old in /usr/lib/go-1.*/bin/go; do
		[ ! -x "$old" ] || go_cells "$(sed 's,.*/go-\([0-9.]*\)/.*,go\1,' <<<"$old")" "$old"
	done
	if [ "$all" = --all ] && have go; then
		for version in 1.21.13 1.22.12 1.23.12 1.24.12 1.25.6; do
			if GOTOOLCHAIN=go$version go version >/dev/null; then
				go_cells "go${version%.*}" "$(GOTOOLCHAIN=go$version go env GOROOT)/bin/go"
			else
				missing "Go $version" "its cells"
			fi
		done
	fi
}
built
