#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Go as most programs are built with today: code and tables of Go 1.19, which Debian 12 has, are others. Prints the folder of its `go`:
# that in the path when it is new enough, or else one that the Go in the path fetches, with Go's own checksums, into FOLDER.
#   new-go.sh FOLDER        Exit status 77: cannot be had here.
set -eu
least=25 # what the client of tests/system/pyroscope asks for
version=go1.26.8
out=$1

if ! command -v go >/dev/null; then
	echo "no go here" >&2
	exit 77
fi
have=$(cd / && GOTOOLCHAIN=local go env GOVERSION | sed -nE 's/^go1\.([0-9]+).*/\1/p')
if [ "${have:-0}" -ge $least ]; then
	dirname "$(command -v go)"
	exit
fi
out=$(mkdir -p "$out" && cd "$out" && pwd)
module=golang.org/toolchain@v0.0.1-$version.linux-$(cd / && go env GOARCH)
if [ ! -e "$out/.made-$version" ]; then
	if ! (cd / && GOFLAGS=-modcacherw GOMODCACHE="$out" timeout 300 go mod download "$module") >&2; then
		echo "$module cannot be fetched" >&2
		exit 77
	fi
	chmod -R a+x "$out/$module/bin" "$out/$module/pkg/tool" # a module has no such bits
	rm -rf "$out/cache"
	touch "$out/.made-$version"
fi
echo "$out/$module/bin"
