#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The functions of Lua scripts in stacks: each sample of a program that calls in every way there is, judged by what the program says of
# itself, with the interpreters that are here: Lua in an executable, LuaJIT in a library, with and without its compiler; both forms of the walk.
. "$TOP/tests/system/lib.sh"
need_bpf
[ "$(uname -m)" = x86_64 ] || skip "Lua's states are looked for on x86-64 alone"

# judged COMMAND TYPE LEAST OPTION...: a second of all ways of calling
judged() {
	local exe
	# shellcheck disable=SC2086 # a command and its option
	start truth $1 "$TOP/tests/script/calls.lua" 60
	until_true 30 grep -q '^root' truth || fail "$1: the script does not begin: $(cat truth.err)"
	exe=$(basename "$(readlink "/proc/$started/exe")")
	"$HEARTH" record "${@:4}" -F 999 -d 1 -o x.otlp -p "$started" 2>record.err || fail "$1: $(cat record.err)"
	kill "$started"
	accounted record.err
	judge_scripts --min 99.5 --least "$3" --without 100 --loop luaV_execute --file calls.lua --whole-names x.otlp "$exe" "$2" truth
}

ran=0
mkfifo never # nobody writes to it
for lua in lua5.1 lua5.2 lua5.3 lua5.4; do
	[ -x /usr/bin/$lua ] || continue
	# The interpreter is read when a process that has it is met first, which takes its time on a busy machine: one runs before.
	start idle.out /usr/bin/$lua -e 'io.open("never")'
	judged /usr/bin/$lua lua 50
	ran=$((ran + 1))
done
if [ -x /usr/bin/luajit ]; then
	judged /usr/bin/luajit luajit 50
	judged "/usr/bin/luajit -joff" luajit 50 --no-bpf-loop
	ran=$((ran + 1))
fi
[ $ran -gt 0 ] || skip "no Lua here"
[ ! -x /usr/bin/lua5.4 ] || judged /usr/bin/lua5.4 lua 50 --no-bpf-loop
