#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Scripts in a test machine: programs that say what their stacks may look like (tests/script/) run under hearth, in each form of the walk
# that the kernel has, one recording a form.
#   scripts.sh record BUILD OUTDIR RECORD_OPTION...   in the machine: captures, what the programs said, and a list of both go to OUTDIR
#   scripts.sh judge OUTDIR                           outside, as judging is Python's work, which an emulated CPU takes minutes for
# $HEARTH: the binary to try, BUILD's by itself. $SCRIPTS_SECONDS: of each program (10).
set -u
here=$(cd "$(dirname "$0")" && pwd)
scripts=$here/../script

# The languages: the interpreter, what it runs, and what judge.py is told, its first word the type of the frames. (PHP: a fiber
# that is just being left has no callers.)
declare -A files=([python]=/usr/bin/python3 [perl]=/usr/bin/perl [php]="/usr/bin/php*" [ruby]=/usr/bin/ruby)
declare -A commands=(
	[python]="-W ignore $scripts/calls.py 1000"
	# without threads: of one that is being made, which takes an emulated CPU long, Perl says that it runs already
	[perl]="$scripts/calls.pl 1000 deep tiny sort sort_block sort_eval map grep first keys match replace eval closure text jump signal warning
		method auto overload tie fork"
	[php]="$scripts/calls.php 1000"
	[ruby]="-W0 $scripts/calls.rb 1000"
)
declare -A judged=(
	[python]="cpython"
	[perl]="perl --loop Perl_runops_standard --file calls.pl --within eval?*"
	[php]="php --min 99.5 --all-lines --loop execute_ex --file calls.php,included.php,"
	[ruby]="ruby --loop rb_vm_exec* --file calls.rb,calls_loaded.rb, --whole-names"
)
languages=(python perl php)
[ "$(uname -m)" != x86_64 ] || languages+=(ruby) # docs/scripts.md, "Not done"

# fail WORDS...: ends all that was started, too, for else the machine would wait for it until its own time is over
fail() {
	echo "scripts: $*"
	# shellcheck disable=SC2046 # numbers
	kill -KILL $(jobs -p) 2>/dev/null
	exit 1
}

# until_true SECONDS PID COMMAND...: repeats COMMAND until it succeeds, while there is the process
until_true() {
	local end=$((SECONDS + $1))
	until "${@:3}" >/dev/null 2>&1; do
		[ $SECONDS -lt $end ] && kill -0 "$2" || return 1
		sleep 0.2
	done
}

# has_programs COUNT: so many programs that read the frames of a runtime are in the kernel
has_programs() {
	[ "$(bpftool prog show | grep -c ' name chain_')" -ge "$1" ]
}

# has_read_all PID...: each of these has one. A machine so slow that hearth stopped to wait for what /proc says of a process has hearth look
# at it again when it is sampled: so each runs for a moment.
has_read_all() {
	local pid
	has_programs $# && return
	for pid; do
		kill -CONT "$pid" && sleep 0.1
		kill -STOP "$pid"
	done
	return 1
}

# record_form FORM OPTION...: each program begins, and waits until it is its turn, so that nothing is judged but what it tells of
record_form() {
	local form=$1 language program recorder all=''
	local -A pids=()
	for language in "${languages[@]}"; do
		# shellcheck disable=SC2086 # a package that was unpacked and not installed has no link to its program
		program=$(readlink -e ${files[$language]} | head -n 1)
		[ -x "$program" ] || {
			echo "left out: $language, which is not here"
			continue
		}
		# shellcheck disable=SC2086 # words
		"$program" ${commands[$language]} >"$out/$form.$language" 2>"$language.err" &
		pids[$language]=$!
		all+=,$!
		until_true 120 $! grep -q ^root "$out/$form.$language" || fail "$language does not begin: $(cat "$language.err")"
		kill -STOP $!
		echo "$form $language ${program##*/}" >>"$out/recorded"
	done
	# How long reading tables may take is not the matter here: not in the helper, which would call these files hostile.
	"$HEARTH" record "${@:2}" --no-helper -F 99 --symbols tables --interpreter-frames -o "$out/$form.otlp" -p "${all#,}" 2>"$out/$form.err" &
	recorder=$!
	until_true 300 $recorder grep -q "profiles go to" "$out/$form.err" || fail "no recording, $form: $(cat "$out/$form.err")"
	until_true 300 $recorder has_read_all "${pids[@]}" || fail "not ${#pids[@]} programs, $form: $(bpftool prog show | grep ' name chain_') $(cat "$out/$form.err")"
	for language in "${languages[@]}"; do
		[ -n "${pids[$language]:-}" ] || continue
		kill -CONT "${pids[$language]}"
		sleep "${SCRIPTS_SECONDS:-10}"
		kill -KILL "${pids[$language]}" || fail "$language ended before its time: $(cat "$language.err")"
	done
	wait $recorder || fail "exit status $? of the recording, $form: $(cat "$out/$form.err")"
	! grep 'cannot load' "$out/$form.err" || fail "$form"
	echo "$form, $SECONDS s"
	grep -E 'warning|samples taken' "$out/$form.err"
}

record() {
	local build forms=(bpf_loop tail) form
	build=$(readlink -f "$1")
	out=$2
	export HEARTH=${HEARTH:-$build/hearth}
	[[ $(uname -r) != 5.10.* ]] || forms=(tail) # it has but the one
	cd "$(mktemp -d)" || exit
	: >"$out/recorded"
	for form in "${forms[@]}"; do
		# shellcheck disable=SC2046 # no option is no word
		record_form "$form" $([ "$form" = bpf_loop ] || echo --no-bpf-loop) "${@:3}"
	done 2>&1 | grep -v ' Killed '
	return "${PIPESTATUS[0]}"
}

# judge OUTDIR: a line for each program
judge() {
	local form language program verdict status=0 mark words
	while read -r form language program; do
		mark=ok
		read -ra words <<<"${judged[$language]}"
		verdict=$(python3 "$scripts/judge.py" --min 99.9 --least 300 --without 100 --cut 3 "${words[@]:1}" "$out/$form.otlp" "$program" "${words[0]}" \
			"$out/$form.$language") || {
			mark=FAIL
			status=1
		}
		printf '%-4s %-8s %-10s %s\n' $mark "$form" "$program" "$(tail -n 1 <<<"$verdict" | sed 's/; never seen.*//')"
		sed '$d' <<<"$verdict"
	done <"$out/recorded"
	return $status
}

case ${1:-} in
record) record "${@:2}" ;;
judge)
	out=$2
	judge
	;;
*)
	echo "usage: $0 record BUILD OUTDIR RECORD_OPTION... | judge OUTDIR" >&2
	exit 2
	;;
esac
