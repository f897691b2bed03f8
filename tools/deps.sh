#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Installs the packages of vendor/packages.txt that are missing or too old (Debian and Ubuntu): those to build and to test,
# with --vm also those to boot other kernels and to build for other CPUs. --check [CPU]: only says what is missing of the build
# part, or of that to build for another CPU, exit status 1.
set -u
cd "$(dirname "$0")/.." || exit 1
check=0
parts='build test'
[ "${1:-}" = --check ] && check=1 parts="build ${2:-}"
[ "${1:-}" = --vm ] && parts='build test vm arm64'
command -v dpkg-query >/dev/null || {
	[ $check = 1 ] && exit 0
	echo "deps: this is not Debian or Ubuntu; install the equivalents of vendor/packages.txt by hand" >&2
	exit 1
}
missing=()
part='build'
while read -r name least _; do
	case $name in
	'' | '#'*) continue ;;
	'['*)
		part=${name//[][]/}
		continue
		;;
	esac
	[[ " $parts " = *" $part "* ]] || continue
	have=$(dpkg-query -W -f '${db:Status-Abbrev}${Version}' "$name" 2>/dev/null)
	case $have in
	ii*) [ "$least" = - ] || dpkg --compare-versions "${have#ii }" ge "$least" && continue ;;
	esac
	missing+=("$name")
done <vendor/packages.txt
[ ${#missing[@]} = 0 ] && exit 0
if [ $check = 1 ]; then
	echo "hearth cannot be built yet, these packages are missing: ${missing[*]}" >&2
	[ -n "${2:-}" ] || echo "Run 'sudo make deps' (or 'sudo make run', which does it too)." >&2
	exit 1
fi
[ "$(id -u)" = 0 ] || {
	echo "deps: installing ${missing[*]} needs root: run 'sudo make deps'" >&2
	exit 1
}
echo "deps: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { apt-get update -q && apt-get install -y -q --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
	tail -n 20 "$log" >&2
	echo "deps: apt-get failed; its last lines stand above" >&2
	exit 1
fi
