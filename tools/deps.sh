#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Installs the packages of vendor/packages.txt that are missing or too old (Debian and Ubuntu): those to build and run hearth, with
# --test also those that tests need, with --arm64 also those to build and to boot for that CPU. --check [CPU]: only says what is
# missing of the build part, or of that to build for another CPU, exit status 1.
set -u
cd "$(dirname "$0")/.." || exit 1
check=0
parts=build
case ${1:-} in
--check) check=1 parts="build ${2:-}" ;;
--test) parts='build test' ;;
--arm64) parts='build test arm64' ;;
esac
command -v dpkg-query >/dev/null || {
	[ $check = 1 ] && exit 0
	echo "deps: this is not Debian or Ubuntu; install the equivalents of vendor/packages.txt by hand" >&2
	exit 1
}
missing=()
part='build'

# installed "NAME|NAME..." LEAST: one of them is there, and no older
installed() {
	local name have
	for name in ${1//|/ }; do
		have=$(dpkg-query -W -f '${db:Status-Abbrev}${Version}' "$name" 2>/dev/null)
		case $have in
		ii*) [ "$2" = - ] || dpkg --compare-versions "${have#ii }" ge "$2" && return ;;
		esac
	done
	return 1
}

# available "NAME|NAME...": the first that can be installed, or else the first
available() {
	local name
	for name in ${1//|/ }; do
		[ -n "$(apt-cache show --no-all-versions "$name" 2>/dev/null)" ] && echo "$name" && return
	done
	echo "${1%%|*}"
}

while read -r name least _; do
	case $name in
	'' | '#'*) continue ;;
	'['*)
		part=${name//[][]/}
		continue
		;;
	esac
	[[ " $parts " = *" $part "* ]] || continue
	installed "$name" "$least" || missing+=("$name")
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

install_missing() {
	local names=() name
	apt-get update -q || return
	for name in "${missing[@]}"; do
		names+=("$(available "$name")")
	done
	apt-get install -y -q --no-install-recommends "${names[@]}"
}

if ! install_missing >"$log" 2>&1; then
	tail -n 20 "$log" >&2
	echo "deps: apt-get failed; its last lines stand above" >&2
	exit 1
fi
