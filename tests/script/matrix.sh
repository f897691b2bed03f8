#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The matrix of scripts: each interpreter that is here, each way of calling, both forms of the walk; a row of a table each. By hand:
# `make runtimes`.   matrix.sh BUILD [INTERPRETER...]   An interpreter is a path, or ROOT:PATH in another root (debootstrap).
# PYTHONS: further interpreters, separated by blanks; CASES: only these ways of calling; FORMS: only these forms (bpf_loop, tail).
# Exit status 1 when a stack is wrong.
set -u
build=$(readlink -f "${1:?usage: $0 BUILD [INTERPRETER...]}")
here=$(cd "$(dirname "$0")" && pwd)
shift
[ $# -gt 0 ] || eval "set -- /usr/bin/python3 ${PYTHONS:-} $(echo ~/.pyenv/versions/3*/bin/python3)"
cases=${CASES:-deep sort substitute reduce use_map use_qsort use_generator use_next use_coroutine use_exception use_closure use_method
use_made use_threads use_fork}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
bad=0
printf '%-34s %-9s %-14s %s\n' interpreter form case verdict
for python; do
	run=("$python")
	[ "$python" = "${python#*:}" ] || run=(chroot "${python%%:*}" "${python#*:}")
	program=$("${run[@]}" -c 'import os, sys; print(os.path.basename(os.readlink("/proc/self/exe") if os.path.exists("/proc/self/exe") else
os.path.realpath(sys.executable))); sys.exit(sys.version_info < (3, 6))') || continue
	for form in ${FORMS:-bpf_loop tail}; do
		for case in $cases; do
			"$build/hearth" record $([ "$form" = bpf_loop ] || echo --no-bpf-loop) -F 199 -o x.otlp -- \
				"${run[@]}" -W ignore - 2 "$case" <"$here/calls.py" >truth 2>out
			verdict=$(python3 "$here/judge.py" --min 99.9 --least 50 --without 1000 --file "<stdin>,<made>" x.otlp "$program" cpython truth) ||
				bad=1
			printf '%-34s %-9s %-14s %s\n' "${python#"$HOME/.pyenv/versions/"}" "$form" "$case" \
				"$(echo "$verdict" | tail -n 1 | sed 's/; never seen.*//')"
			echo "$verdict" | sed '$d'
		done
	done
done
exit $bad
