#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The matrix of Lua scripts: each interpreter, LuaJIT without and with its compiler, each way of calling, both forms of the walk; a row of a
# table each. By hand: `make runtimes`.   matrix-lua.sh BUILD [COMMAND...]
# COMMAND: how to run an interpreter, such as `/opt/lua/bin/lua` or `luajit -joff`; those of Debian's packages when none is named.
# CASES: ways of calling, or `all` at once. RECORD: options of the recording. Exit status 1 when a stack is wrong.
set -u
build=$(readlink -f "${1:?usage: $0 BUILD [COMMAND...]}")
here=$(cd "$(dirname "$0")" && pwd)
shift
if [ $# = 0 ]; then
	for command in lua5.1 lua5.2 lua5.3 lua5.4 lua5.5 luajit; do
		[ -x /usr/bin/$command ] && set -- "$@" /usr/bin/$command
	done
	[ -x /usr/bin/luajit ] && set -- "$@" "/usr/bin/luajit -joff"
fi
cases=${CASES:-deep deep_c tiny loop library sort gsub pcall xpcall meta iterate thread wrap nested many closure tail vararg load hook gc errors}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
bad=0
printf '%-28s %-5s %-9s %s\n' interpreter form case verdict
for command; do
	type=lua
	case $command in *luajit*) type=luajit ;; esac
	version=$($command -v 2>&1 | sed -E 's/ *(Copyright| --).*//')
	for form in "" --no-bpf-loop; do
		for case in $cases; do
			rm -f truth
			# shellcheck disable=SC2086
			$command "$here/calls.lua" 60 ${case#all} >truth &
			pid=$!
			until grep -q '^root' truth 2>/dev/null || ! kill -0 $pid 2>/dev/null; do sleep 0.01; done
			exe=$(basename "$(readlink /proc/$pid/exe)")
			# shellcheck disable=SC2086 # there may be none
			"$build/hearth" record $form ${RECORD:--F 199 -d 2} -p $pid -o x.otlp >out 2>&1
			kill $pid
			wait $pid 2>/dev/null
			verdict=$(python3 "$here/judge.py" --min 99.9 --least 50 --without 1000 --loop luaV_execute --file calls.lua \
				--whole-names x.otlp "$exe" $type truth) || bad=1
			printf '%-28s %-5s %-9s %s\n' "$version ${command#* }" "${form:+tail}" "$case" \
				"$(echo "$verdict" | tail -n 1 | sed 's/; never seen.*//'), $(sed -n 's/.* not sampled; //p' out)"
			echo "$verdict" | sed '$d'
		done
	done
done
exit $bad
