#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `hearth top` in a real terminal (tmux), at two sizes: its table, its keys, a change of size, suspension; and that the terminal is as
# it was however it ends. Without a terminal: plain lines.
. "$TOP/tests/system/lib.sh"
need_bpf
export LC_ALL=C.UTF-8 # columns are characters, not bytes
command -v tmux >/dev/null || skip "no tmux here"

socket=hearth-top-$$
terminal() {
	tmux -L "$socket" -f /dev/null "$@"
}
trap 'terminal kill-server 2>/dev/null || :; for pid in "${pids[@]}"; do kill -KILL "$pid" 2>/dev/null || :; done' EXIT

screen() {
	terminal capture-pane -p -t "$1"
}
# shows PANE REGEX: within 15 s
shows() {
	until_true 15 eval "screen $1 | grep -qE '$2'" || fail "$1 does not show '$2': $(screen "$1")"
}
keys() {
	terminal send-keys -t "$@"
}
# restored PANE: a shell's line is seen, echoed, canonical, on the normal screen
restored() {
	keys "$1" "clear; stty -a | tr ' ' '\n' | grep -cE '^(icanon|echo);?$'; echo en''d" Enter
	shows "$1" '^end'
	screen "$1" | grep -q '^2' || fail "the terminal is not as it was after $2: $(screen "$1")"
	[ "$(terminal display -p -t "$1" '#{alternate_on} #{cursor_flag}')" = "0 1" ] || fail "still on the other screen after $2"
}

cp "$(readlink -f "$(command -v dash)")" topbusy
start busy ./topbusy -c 'while :; do :; done'
terminal new-session -d -s small -x 80 -y 24 "exec sh"
terminal new-session -d -s large -x 200 -y 50 "exec sh"
top="$HEARTH top -F 199 --refresh 500ms --comm topbusy"

for size in small large; do
	keys $size "$top" Enter
	shows $size "SELF%  TOTAL% OVERALL%   $([ $size = small ] || echo 'PROCESS +')MODULE"
	shows $size '^> *[0-9.]+%'
	screen $size >table
	rows=$([ $size = small ] && echo 24 || echo 50)
	columns=$([ $size = small ] && echo 80 || echo 200)
	[ "$(wc -l <table)" -le "$rows" ] && ! grep -qE "^.{$columns}" table || fail "$size: too large a table: $(cat table)"
	grep -q 'q quit  ? help' table || fail "$size: no legend: $(cat table)"
	[ $size = small ] || shows $size "^> *[0-9.]+% +[0-9.]+% +[0-9.]+% +topbusy \\($started\\) "
	keys $size p
	shows $size 'PROCESS *$'
	shows $size "topbusy \\($started\\)"
	keys $size Enter
	shows $size '^ +[0-9.]+% +[0-9.]+%  {10,}[^ ]'
	keys $size m
	shows $size '^modules'
	keys $size f /
	keys $size -l 'no such thing'
	shows $size "with .no such thing."
	! screen $size | grep -qE '^[> ] *[0-9.]+%' || fail "$size: rows that do not fit the filter: $(screen $size)"
	keys $size Escape
	shows $size '^> *[0-9.]+%'
	keys $size '?'
	shows $size 'begin to count anew'
	keys $size '?' z
	shows $size '^FROZEN'
	before=$(screen $size | tail -n +2)
	sleep 1.2
	[ "$(screen $size | tail -n +2)" = "$before" ] || fail "$size: it moves although frozen: $(screen $size)"
	keys $size q
	shows $size 'samples taken = '
	restored $size q
done

# --- the process of a function stands from 120 columns on ---
terminal resize-window -t large -x 119 -y 50
keys large "clear; $top" Enter
shows large 'OVERALL%   MODULE +FUNCTION'
terminal resize-window -t large -x 120 -y 50
shows large 'OVERALL%   PROCESS +MODULE +FUNCTION'
! screen large | grep -qE '^.{120}' || fail "wider than 120: $(screen large)"
keys large q
shows large 'samples taken = '
terminal resize-window -t large -x 200 -y 50

# --- another size ---
keys small "$top" Enter
shows small '^> *[0-9.]+%'
terminal resize-window -t small -x 60 -y 12
until_true 5 eval 'screen small | tail -n 1 | grep -q "q quit"' || fail "at 60x12: $(screen small)"
! screen small | grep -qE '^.{60}' || fail "wider than 60: $(screen small)"
terminal resize-window -t small -x 80 -y 24

# --- suspended and back ---
keys small C-z
shows small '(Stopped|Suspended)'
[ "$(terminal display -p -t small '#{alternate_on} #{cursor_flag}')" = "0 1" ] || fail "suspended on its screen"
keys small "fg" Enter
shows small '^> *[0-9.]+%'

# --- however it ends ---
keys small C-c
shows small 'samples taken = '
restored small Ctrl-C
for signal in TERM SEGV QUIT; do
	keys small "clear; $top" Enter
	shows small '^> *[0-9.]+%'
	pid=$(pgrep -P "$(terminal display -p -t small '#{pane_pid}')")
	kill -$signal "$pid"
	until_true 10 test ! -e "/proc/$pid" || fail "SIG$signal does not end it"
	restored small SIG$signal
done

# --- run --store keeps the table on a terminal, and the store has what it showed; without one it is a service ---
keys large "clear; $HEARTH run -F 199 --refresh 500ms --comm topbusy --http-address 127.0.0.1:0 --store $PWD/kept" Enter
shows large '^hearth  http://127.0.0.1:[0-9]+/  [0-9]+ samples/s  0 lost'
shows large '^> *[0-9.]+%'
# --- Enter: the page's address for the callers, and the page knows the function ---
keys large Enter
shows large '^ {8}http://127.0.0.1:[0-9]+/#view=sandwich&fn=[^ ]+$'
link=$(screen large | sed -nE 's/^ {8}(http.*)$/\1/p')
sleep 1.5 # the store has it after an interval
question=$(sed -E 's|/#view=sandwich&fn=|/api/v1/sandwich?from=now-1m\&function=|; s|&mod=|\&module=|' <<<"$link")
curl -sS "$question" >sandwich || fail "no answer to $question"
python3 -c 'import json; a = json.load(open("sandwich")); assert a["total"] > 0, a' || fail "$link: $(cat sandwich)"
keys large q
shows large 'samples taken = '
restored large "run --store"
"$HEARTH" store info --store kept >info || fail "store: $(cat info)"
grep -qE '^ *samples +[1-9]' info || fail "nothing was kept: $(cat info)"
keys large "clear; $HEARTH run --store /proc/none/kept; echo status \$?" Enter
shows large '^status 1'
start service "$HEARTH" run --http-address off --store kept
until_true 15 grep -q "profiles go to store kept" service.err || fail "no service without a terminal: $(cat service.err)"
stop "$started"
[ ! -s service ] || fail "a service prints: $(cat service)"

# --- no terminal: lines, and a last table ---
"$HEARTH" top -F 199 --refresh 300ms --comm topbusy -d 1.5 >lines 2>err </dev/null || fail "top into a file: $(cat err)"
! grep -q $'\033' lines || fail "escape sequences in a file"
[ "$(grep -c '^  SELF%  TOTAL% OVERALL%' lines)" -ge 2 ] || fail "not a table each interval: $(cat lines)"
"$HEARTH" top -d 500ms >lines49 2>err </dev/null || fail "top without options: $(cat err)"
grep -q ' 49 Hz, ' err || fail "top does not sample at 49 Hz: $(cat err)"
tail -n 1 lines | grep -qE '^[0-9,]+ samples in ' || fail "no last table: $(tail -n 5 lines)"
"$HEARTH" -F 199 --refresh 300ms 2>err | head -n 3 >first
[ "$(wc -l <first)" = 3 ] || fail "hearth alone prints nothing: $(cat err)"
echo "all as it should be"
