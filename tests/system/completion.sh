#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Completion as each shell does it: typed into bash, zsh and fish in a terminal (tmux). In bash also every option of every command,
# against what `hearth help COMMAND` lists.
# Waits: for shells to answer.
. "$TOP/tests/system/lib.sh"
command -v tmux >/dev/null || skip "no tmux here"
socket=hearth-completion-$$
terminal() {
	tmux -L "$socket" -f /dev/null "$@"
}
trap 'terminal kill-server 2>/dev/null || :' EXIT
mkdir bin home
cp "$HEARTH" bin/hearth
touch some-capture.otlp
export PATH=$PWD/bin:$PATH HOME=$PWD/home

# --- bash, without a terminal: the function alone ---
cat >ask.bash <<'END'
# ask.bash WORD...: what the last word may become
source <(hearth help --completion bash)
compopt() { :; }
COMP_WORDS=(hearth "$@")
COMP_CWORD=$#
_hearth
((${#COMPREPLY[@]} == 0)) || printf '%s\n' "${COMPREPLY[@]}"
END
ask() {
	bash --norc ask.bash "$@" | sort -u
}
commands=$(hearth help | awk '/^Commands:/ { on = 1; next } /^$/ { on = 0 } on && /^  [^ ]/ { print $1 }')
[ "$(ask '')" = "$(sort <<<"$commands")" ] || fail "commands: $(ask '')"
for command in $commands; do
	want=$(hearth help "$command" | grep -oE '^  (-[A-Za-z], |    )--[a-z0-9-]+' | grep -oE -- '--[a-z0-9-]+' | sort)
	got=$(ask "$command" --)
	[ "$got" = "$want" ] || fail "options of $command: $(diff <(echo "$got") <(echo "$want"))"
done
# expect ANSWER WORD...
expect() {
	local want=$1
	shift
	[ "$(ask "$@" | tr '\n' ' ')" = "$want" ] || fail "hearth $*: $(ask "$@" | tr '\n' ' '), not $want"
}
expect "full off tables " run --symbols ''
expect "full off tables " run --symbols = ''
expect "full " record --symbols = fu
expect "tables " --symbols t
expect "some-capture.otlp " report some
expect "some-capture.otlp " record -o some
ask record -p "$(head -c 1 <<<$$)" | grep -qx "$$" || fail "hearth record -p: not this process: $(ask record -p "$(head -c 1 <<<$$)")"
expect "" run --freq ''
expect "record " help reco
expect "" record -F 99 -- ls -zzz-no-such
expect "sha256sum " record -F 99 sha256s
expect "sha256sum " record -- sha256s

# --- the three shells, typed into ---
typed() { # SHELL KEYS REGEX: after these keys the screen has a line like this
	local shell=$1 text=$2 want=$3
	terminal send-keys -t "$shell" C-u
	terminal send-keys -t "$shell" -l "$text"
	terminal send-keys -t "$shell" Tab
	until_true 10 eval "terminal capture-pane -p -t $shell | grep -qE -- '$want'" ||
		fail "$shell: '$text' and Tab: $(terminal capture-pane -p -t "$shell")"
	terminal send-keys -t "$shell" C-c
	terminal send-keys -t "$shell" C-l
	sleep 0.3
}
run_shell() { # SHELL COMMAND PREPARATION
	command -v "$1" >/dev/null || {
		left_out "$1" "not here"
		return 0
	}
	terminal new-session -d -s "$1" -x 120 -y 40 "$2"
	sleep 1
	terminal send-keys -t "$1" -l "$3"
	terminal send-keys -t "$1" Enter
	sleep 1
	terminal send-keys -t "$1" C-l
	sleep 0.3
	typed "$1" "hearth rec" 'hearth record *$'
	typed "$1" "hearth record --no-inh" 'record --no-inherit'
	typed "$1" "hearth run --collector-protocol gr" '(--collector-protocol|protocol=)[ =]?grpc'
	typed "$1" "hearth report some-" 'report some-capture.otlp'
	typed "$1" "hearth record -F 99 sha256s" 'record -F 99 sha256sum'
	echo "ok $1"
}
run_shell bash "exec bash --norc --noprofile -i" 'PS1="> "; source <(hearth help --completion bash)'
run_shell zsh "exec zsh -f -i" 'PS1="> "; autoload -Uz compinit; compinit -D; source <(hearth help --completion zsh)'
run_shell fish "exec fish --no-config -i" 'function fish_prompt; echo "> "; end; hearth help --completion fish | source'
