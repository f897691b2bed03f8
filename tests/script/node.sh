#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The matrix of node: each one that is here, each of its tiers, both forms of the walk; a row of a table each. By hand: `make runtimes`.
#   node.sh BUILD [NODE...]   NODES: further ones, separated by blanks
# Exit status 1 when a stack is wrong.
set -u
build=$(readlink -f "${1:?usage: $0 BUILD [NODE...]}")
here=$(cd "$(dirname "$0")" && pwd)
shift
[ $# -gt 0 ] || eval "set -- /usr/bin/node ${NODES:-}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
bad=0
printf '%-10s %-9s %-42s %s\n' node form flags verdict
for node; do
	[ -x "$node" ] || continue
	for form in "" --no-bpf-loop; do
		for flags in "" "--no-opt --no-maglev --no-sparkplug" "--no-opt --no-maglev --always-sparkplug" "--no-opt" "--jitless"; do
			# shellcheck disable=SC2086 # there may be none
			version=$("$node" $flags -p process.versions.node 2>err) && [ ! -s err ] || continue # has no such flags
			# shellcheck disable=SC2086
			"$node" $flags "$here/calls.js" "${SECONDS_EACH:-6}" >truth &
			pid=$!
			sleep 0.5
			# shellcheck disable=SC2086
			"$build/hearth" record $form -F "${HZ:-499}" -d "${SECONDS_EACH:-6}" -p $pid -o x.otlp >out 2>&1
			wait $pid
			verdict=$(python3 "$here/judge.py" --min 99 --least 50 --without 100000 --whole-names --loop 'Builtins_InterpreterEntry*' --complete 99 --file calls.js \
				x.otlp node v8js truth) || bad=1
			printf '%-10s %-9s %-42s %s\n' "$version" "${form:+tail}" "$flags" \
				"$(echo "$verdict" | tail -n 1 | sed 's/; never seen.*//')"
			echo "$verdict" | sed '$d'
		done
	done
done
exit $bad
