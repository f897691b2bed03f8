#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The reader of V8 alone over random stops of each node that is here, in each of its tiers; a row of a table each. By hand: `make runtimes`.
#   matrix.sh BUILD [NODE...]   NODES: further ones, separated by blanks   STOPS: of each, default 1000
# Stacks are walked by frame pointers, so that in 1 of 100 stops, in a prologue or epilogue, a caller may be missing. Exit status 1 when
# more is wrong.
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
	for flags in "" "--no-opt --no-maglev --no-sparkplug" "--no-opt --no-maglev --always-sparkplug" "--no-opt" "--jitless"; do
		# shellcheck disable=SC2086 # there may be none
		version=$("$node" $flags -p process.versions.node 2>"$work/err") && [ ! -s "$work/err" ] || continue # has no such flags
		"$node" "$here/../script/calls.js" 0.01 >"$work/truth"
		# shellcheck disable=SC2086
		timeout 300 "$build/v8/stops" -n "${STOPS:-1000}" "$node" $flags "$here/../script/calls.js" 300 >"$work/stops" 2>"$work/err"
		verdict=$(python3 "$here/judge_stops.py" --min 99 "$work/truth" "$work/stops") || bad=1
		printf '%-10s %-42s %s\n' "$version" "$flags" "$(echo "$verdict" | tail -n 1 | sed 's/; never seen.*//')"
		printf '%53s %s\n' "" "$(tail -n 1 "$work/err")"
		echo "$verdict" | sed '$d'
	done
done
exit $bad
