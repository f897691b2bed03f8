#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The matrix of scripts: each interpreter that is here, each way of calling, both forms of the walk; a row of a table each. By hand:
# `make runtimes`.   matrix.sh BUILD [INTERPRETER...]   PYTHONS: further interpreters' paths, separated by blanks
# Exit status 1 when a stack is wrong.
set -u
build=$(readlink -f "${1:?usage: $0 BUILD [INTERPRETER...]}")
here=$(cd "$(dirname "$0")" && pwd)
shift
[ $# -gt 0 ] || eval "set -- /usr/bin/python3 ${PYTHONS:-} $(echo ~/.pyenv/versions/3*/bin/python3)"
cases="deep sort substitute reduce use_map use_qsort use_generator use_next use_coroutine use_exception use_closure use_method use_made
use_threads use_fork"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
bad=0
printf '%-34s %-9s %-14s %s\n' interpreter form case verdict
for python; do
	[ -x "$python" ] || continue
	python=$(readlink -f "$python")
	"$python" -c 'import sys; sys.exit(sys.version_info < (3, 7))' || continue
	for form in "" --no-bpf-loop; do
		for case in $cases; do
			"$python" -W ignore "$here/calls.py" 2.5 "$case" >truth &
			pid=$!
			# shellcheck disable=SC2086 # there may be none
			"$build/hearth" record $form -F 199 -d 2 -p $pid -o x.otlp >out 2>&1
			wait $pid
			verdict=$(python3 "$here/judge.py" --min 99.9 --least 50 --without 1000 x.otlp "$(basename "$python")" cpython truth) || bad=1
			printf '%-34s %-9s %-14s %s\n' "${python#"$HOME/.pyenv/versions/"}" "${form:+tail}" "$case" \
				"$(echo "$verdict" | tail -n 1 | sed 's/; never seen.*//')"
			echo "$verdict" | sed '$d'
		done
	done
done
exit $bad
