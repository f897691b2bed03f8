#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Links and labels, by hand, as root: of a C program in each model of TLS, with glibc and musl; over Go's versions, 1.18 to the newest, each
# plain, stripped, as PIE and with cgo; of ddtrace, where PYTHON (such as the one of a venv) has it. Each Go is fetched by the one in the
# path, with Go's own checksums, into FOLDER.
#   matrix.sh BUILD FOLDER [VERSION...]        such as: matrix.sh build /tmp/go 1.18.10 1.27.4
set -u
top=$(realpath "$(dirname "$0")/../..")
hearth=$(realpath "${1:?usage: matrix.sh BUILD FOLDER [VERSION...]}/hearth")
folder=$(mkdir -p "$2" && realpath "$2")
shift 2
[ $# != 0 ] || set -- 1.18.10 1.19.13 1.20.14 1.21.13 1.22.12 1.23.12 1.24.13 1.25.14 1.26.11 1.27.4
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cp "$top/tests/context/spans.go" "$work/"
printf 'module spans\ngo 1.18\n' >"$work/go.mod"
cat >"$work/cgo.go" <<'GO'
//go:build cgo

package main

// static __thread int of_c[3];
// int touch(void) { return ++of_c[1]; }
import "C"

func init() { C.touch() }
GO
status=0
src=$top/tests/context

# try NAME PROGRAM OPTION... -- COMMAND...: judges a part of the command's life
try() {
	local name=$1 program=$2 options=() said word=ok
	shift 2
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	shift
	rm -f "$work/x.otlp" # of the one before
	"$@" >/dev/null 2>"$work/said" &
	sleep 0.4
	if ! kill -0 $! 2>/dev/null; then
		echo "$name: left out, it does not run: $(head -n 1 "$work/said")"
		return
	fi
	"$hearth" record -q -F 997 -d 1.2 -p $! -o "$work/x.otlp" --off-cpu 2>"$work/log" || cat "$work/log"
	case $name in
	ddtrace*) wait $! ;; # which says its spans at the end
	*) kill $! 2>/dev/null ;;
	esac
	wait $! 2>/dev/null
	said=$(python3 "$src/judge.py" --least 100 "${options[@]}" "$work/x.otlp" "$program") || { word=FAILED status=1; }
	echo "$name: $word: $said"
}

for libc in gcc musl-gcc; do
	command -v $libc >/dev/null || continue
	$libc -O2 -g -o "$work/linked" "$src/spans.c" "$src/context.c" -pthread -Wl,--export-dynamic
	$libc -O2 -g -DOPENED -o "$work/opened" "$src/spans.c" -pthread -ldl
	try "$libc, in the program" linked --kind kind --resource service.name=spans-service -- "$work/linked" 60 2
	for model in -mtls-dialect=gnu -mtls-dialect=gnu2 -ftls-model=initial-exec; do
		$libc -O2 -g -fPIC -shared $model -o "$work/lib.so" "$src/context.c" || continue
		try "$libc $model" opened --kind kind --resource service.version=2 -- "$work/opened" 60 2 "$work/lib.so"
	done
done
if [ -n "${PYTHON:-}" ]; then
	try "ddtrace" "$(basename "$(realpath "$PYTHON")")" --spans "$work/spans" --resource service.name=spans-service -- "$PYTHON" "$src/spans_dd.py" 3 2 "$work/spans"
fi
for version; do
	module=golang.org/toolchain@v0.0.1-go$version.linux-$(go env GOARCH)
	if [ ! -d "$folder/$module" ]; then
		(cd / && GOFLAGS=-modcacherw GOMODCACHE=$folder go mod download "$module" && chmod -R a+x "$folder/$module/bin" "$folder/$module/pkg/tool") >"$work/log" 2>&1 || {
			echo "go $version: cannot be fetched"
			continue
		}
	fi
	for form in "CGO_ENABLED=0" "CGO_ENABLED=0 -ldflags=-s" "CGO_ENABLED=0 -buildmode=pie" "CGO_ENABLED=1"; do
		# shellcheck disable=SC2086 # words
		if ! (cd "$work" && env "${form%% *}" GOTOOLCHAIN=local GOROOT="$folder/$module" GOCACHE="$folder/cache" "$folder/$module/bin/go" build \
			$([ "$form" = "${form#* }" ] || echo ${form#* }) -o gospans . >log 2>&1); then
			echo "go $version $form: cannot be built: $(head -n 1 "$work/log")"
			continue
		fi
		try "go $version $form" gospans -- "$work/gospans" 60 4
	done
done
exit $status
