#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `hearth record` in a real terminal (tmux): its line of progress, before and after --delay, and Ctrl-C, which is the command's first.
# Waits: for a terminal.
. "$TOP/tests/system/lib.sh"
need_bpf
command -v tmux >/dev/null || skip "no tmux here"
socket=hearth-record-$$
terminal() {
	tmux -L "$socket" -f /dev/null "$@"
}
trap 'terminal kill-server 2>/dev/null || :' EXIT
shows() {
	until_true 20 eval "terminal capture-pane -p -t t | grep -qE '$1'" || fail "does not show '$1': $(terminal capture-pane -p -t t)"
}
terminal new-session -d -s t -x 100 -y 24 "exec sh"
cat >stubborn <<'END'
trap 'echo the command had it; sleep 1; exit 3' INT
while :; do :; done
END
terminal send-keys -t t "$HEARTH record --delay 3s -F 99 -o t.otlp -- sh stubborn; echo status \$?" Enter
shows '^begins in [0-9] s$'
shows '^[0-9]+ s  [1-9][0-9]* samples  0 lost$'
terminal send-keys -t t C-c
shows 'the command had it'
shows '^hearth: [0-9]+ samples taken = '
shows '^status 3$'
! terminal capture-pane -p -t t | grep -qE '^begins|^[0-9]+ s  .*lost$' || fail "the line of progress stays: $(terminal capture-pane -p -t t)"

# Who did not say what to do with the capture sees the heaviest functions; not with -q.
busy="timeout 1 sh -c 'while :; do :; done'"
terminal send-keys -t t "clear; $HEARTH record -F 99 -- $busy; echo shown \$?" Enter
shows '^shown 124$'
shows '^ *SELF% +TOTAL%'
terminal send-keys -t t "clear; $HEARTH record -q -F 99 -- $busy; echo quiet \$?" Enter
shows '^quiet 124$'
! terminal capture-pane -p -t t | grep -q 'SELF%' || fail "-q shows functions: $(terminal capture-pane -p -t t)"
"$HEARTH" report t.otlp >top || fail "report: $(cat top)"
echo "all as it should be"
