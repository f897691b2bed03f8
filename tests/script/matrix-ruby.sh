#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The matrix of Ruby scripts: each interpreter, without and with its JIT where it has one, each way of calling, both forms of the walk; a row
# of a table each. By hand: `make runtimes`.   matrix-ruby.sh BUILD [COMMAND...]
# COMMAND: how to run an interpreter, such as `/opt/ruby/bin/ruby --yjit` or `chroot DIR /usr/bin/ruby3.3`; /usr/bin/ruby when none is named.
# RUBIES: further commands, a line each. CASES: ways of calling, or `all` at once. RECORD: options of the recording. Exit status 1 when a stack is wrong.
set -u
build=$(readlink -f "${1:?usage: $0 BUILD [COMMAND...]}")
here=$(cd "$(dirname "$0")" && pwd)
shift
if [ $# = 0 ]; then
	[ -x /usr/bin/ruby ] && set -- /usr/bin/ruby "/usr/bin/ruby --yjit"
	while IFS= read -r command; do
		[ -z "$command" ] || set -- "$@" "$command"
	done <<<"${RUBIES:-}"
fi
cases=${CASES:-deep times each map gsub inject hash sort_by sort fiber next rescue catch closure methods define missing shown eval instance
made load threads fork}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
bad=0
printf '%-28s %-5s %-9s %s\n' interpreter form case verdict
for command; do
	script=$here/calls.rb
	words=($command)
	if [ "${words[0]}" = chroot ]; then
		cp "$script" "${words[1]}/tmp/"
		script=/tmp/calls.rb
	fi
	"${words[@]}" -e '' 2>/dev/null || continue # it has no JIT
	version=$("${words[@]}" -v | sed -E 's/^ruby ([0-9.]+)[^ ]* \(.*\)([^[]*).*/\1\2/')
	for form in "" --no-bpf-loop; do
		for case in $cases; do
			rm -f truth
			# shellcheck disable=SC2086
			"${words[@]}" -W0 "$script" 60 ${case#all} >truth &
			pid=$!
			until grep -q '^root' truth 2>/dev/null || ! kill -0 $pid 2>/dev/null; do sleep 0.01; done
			exe=$(basename "$(readlink /proc/$pid/exe)")
			# shellcheck disable=SC2086 # there may be none
			"$build/hearth" record $form ${RECORD:--F 199 -d 2} -p $pid -o x.otlp >out 2>&1
			kill $pid
			wait $pid 2>/dev/null
			verdict=$(python3 "$here/judge.py" --min 99.9 --least 50 --without 1000 --loop 'rb_vm_exec*' --file calls.rb,calls_loaded.rb, \
				--whole-names x.otlp "$exe" ruby truth) || bad=1
			printf '%-28s %-5s %-9s %s\n' "$version" "${form:+tail}" "$case" \
				"$(echo "$verdict" | tail -n 1 | sed 's/; never seen.*//'), $(sed -n 's/.* not sampled; //p' out)"
			echo "$verdict" | sed '$d'
		done
	done
done
exit $bad
