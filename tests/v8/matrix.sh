#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Random stops of each node that is here, in each of its tiers: the reader and rows of V8 alone walk each stack, prologues and epilogues
# included, and what the program says of itself judges the functions, callers, lines and depths they find. By hand: `make runtimes`.
#   matrix.sh BUILD [NODE...]   NODES: further ones, separated by blanks   STOPS: of each tier, default 2500
# The tiers: as it is, bytecode, baseline code, without TurboFan, without any code that is made; 20 and later have Maglev, too. Exit status
# 1 when more than one of 1,000 stops is wrong, or a walk does not reach the thread's start.
set -u
build=$(readlink -f "${1:?usage: $0 BUILD [NODE...]}")
here=$(cd "$(dirname "$0")" && pwd)
shift
[ $# -gt 0 ] || eval "set -- /usr/bin/node ${NODES:-}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0
printf '%-10s %-42s %s\n' node flags verdict
for node; do
	[ -x "$node" ] || continue
	"$node" "$here/../script/calls.js" 0.01 >"$work/truth"
	bytecode="--no-opt --no-sparkplug" baseline="--no-opt --always-sparkplug"
	if "$node" --no-maglev -p 1 >/dev/null 2>&1; then
		bytecode="$bytecode --no-maglev" baseline="$baseline --no-maglev"
		tiers=("" "$bytecode" "$baseline" "--no-opt" "--no-opt --maglev" "--jitless")
	else
		tiers=("" "$bytecode" "$baseline" "--no-opt" "--jitless")
	fi
	for flags in "${tiers[@]}"; do
		# shellcheck disable=SC2086 # there may be none
		version=$("$node" $flags -p process.versions.node 2>/dev/null) || continue # has no such flags
		# shellcheck disable=SC2086
		timeout 600 "$build/code/stops" -n "${STOPS:-2500}" -v "$node" $flags "$here/../script/calls.js" 590 >"$work/stops" 2>"$work/err"
		verdict=$(python3 "$here/../code/judge_stops.py" --min 99.9 "$work/truth" "$work/stops") || bad=1
		tail -n 1 "$work/err" | grep -q '(100.00 %) walked to the root' || bad=1
		printf '%-10s %-42s %s\n' "$version" "$flags" "$(echo "$verdict" | tail -n 1 | sed 's/; never seen.*//')"
		printf '%53s %s\n' "" "$(tail -n 1 "$work/err")"
		grep ': ended at' "$work/err" | head -n 8
		echo "$verdict" | sed '$d'
	done
done
exit $bad
