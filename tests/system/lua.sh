#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The functions of Lua scripts in stacks: each sample of a program that calls in every way there is, judged by what the program says of
# itself, with the interpreters that are here, LuaJIT with and without its compiler; both forms of the walk; a program that passes itself off
# as Lua, with states that are broken in many ways.
. "$TOP/tests/system/lib.sh"
need_bpf
[ "$(uname -m)" = x86_64 ] || skip "Lua's states are looked for on x86-64 alone"

# --- states that make no sense: what is inside of that is right, nothing is outside ---

"${CC:-gcc}" -O1 -o torn_lua "$TOP/tests/system/torn_lua.c"
# expected WAY STACK: of the stacks that have the function WAY all are this one
expected() {
	local others
	grep -qE ";lua_callk;$2(;| [0-9]+$)" folded || fail "$1: no stack $2: $(grep "torn.lua:$1" folded | head -3)"
	others=$(grep -E "torn.lua:$1(;| )" folded | grep -vcE ";lua_callk;$2(;| [0-9]+$)" || :)
	[ "$others" = 0 ] || fail "$1: $(grep "torn.lua:$1" folded | grep -vE ";lua_callk;$2(;| [0-9]+$)" | head -3)"
}

start torn.out ./torn_lua 60 # its file is read while it runs, so that the first way of the next is seen on a busy machine
callers="main chunk torn.lua;function torn.lua:6"
for form in "" --no-bpf-loop; do
	# shellcheck disable=SC2086 # there may be none
	"$HEARTH" record $form -F 499 --interpreter-frames -o torn.otlp -- ./torn_lua >/dev/null 2>record.err || fail "$(cat record.err)"
	"$HEARTH" report torn.otlp --format folded >folded
	expected 100 "$callers;function torn.lua:100" # whole
	expected 105 "$callers;function torn.lua:105" # more lines than memory has
	for way in 102 107; do # the caller is no function, or not on the stack of values
		expected $way "function torn.lua:$way"
	done
	for way in 103 104; do # errors jump to elsewhere; the main state is another's
		! grep -q "torn.lua:$way" folded || fail "$way: $(grep "torn.lua:$way" folded | head -3)"
	done
	grep -qE "(function torn.lua:(6|101);(main chunk torn.lua;)?){400,}" folded || fail "ring: $(grep -c torn.lua:101 folded) stacks"
done

# --- scripts ---

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
for lua in lua5.1 lua5.4; do # the others are in the matrix
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
