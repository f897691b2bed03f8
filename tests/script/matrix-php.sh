#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The matrix of PHP scripts: each interpreter, without and with its cache of scripts and its JIT, both forms of the walk; a row of a table each.
# By hand: `make runtimes`.   matrix-php.sh BUILD [COMMAND...]
# COMMAND: how to run an interpreter, such as `env LD_LIBRARY_PATH=/opt/php/lib /opt/php/bin/php -n` or `chroot DIR /usr/bin/php8.4`; each
# /usr/bin/phpN.M when none is named. PHPS: further commands, a line each. RECORD: options of the recording. Exit status 1 when a stack is wrong.
set -u
build=$(readlink -f "${1:?usage: $0 BUILD [COMMAND...]}")
here=$(cd "$(dirname "$0")" && pwd)
shift
if [ $# = 0 ]; then
	for php in /usr/bin/php[0-9].[0-9]; do
		[ ! -x "$php" ] || set -- "$@" "$php"
	done
	while IFS= read -r command; do
		[ -z "$command" ] || set -- "$@" "$command"
	done <<<"${PHPS:-}"
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
bad=0
printf '%-16s %-5s %-8s %s\n' interpreter form way verdict
for command; do
	folder=$here
	read -ra words <<<"$command"
	if [ "${words[0]}" = chroot ]; then
		cp "$here"/{calls,included}.php "${words[1]}/tmp/"
		folder=/tmp
	fi
	version=$("${words[@]}" -r 'echo PHP_VERSION, PHP_ZTS ? " ZTS" : "";') || {
		echo "$command: does not run"
		bad=1
		continue
	}
	case $version in
	7.[0-3].*) # without fn(): the same functions written out, in the same lines
		cp "$here/included.php" .
		sed -E 's/fn\(\) => spin\(\$times\)/function () use ($times) { return spin($times); }/; s/fn\(\$n\) => spin\(\$n\)/function ($n) { return spin($n); }/' \
			"$here/calls.php" >calls.php
		folder=$work
		;;
	esac
	for way in plain cache jit; do
		case $way in
		plain) options=() ;;
		cache) options=(-d opcache.enable_cli=1) ;;
		jit) options=(-d opcache.enable_cli=1 -d opcache.jit=tracing -d opcache.jit_buffer_size=64M) ;;
		esac
		for form in "" --no-bpf-loop; do
			"${words[@]}" "${options[@]}" "$folder/calls.php" 60 >truth &
			pid=$!
			until grep -q . truth 2>/dev/null || ! kill -0 $pid 2>/dev/null; do sleep 0.01; done
			exe=$(basename "$(readlink /proc/$pid/exe)")
			# shellcheck disable=SC2086 # there may be none
			"$build/hearth" record $form ${RECORD:--F 499 -d 4} -p $pid -o x.otlp >out 2>&1
			kill $pid
			wait $pid 2>/dev/null
			verdict=$(python3 "$here/judge.py" --min 99.5 --least 200 --without 1000 --all-lines --loop execute_ex \
				--file calls.php,included.php x.otlp "$exe" php truth) || bad=1
			printf '%-16s %-5s %-8s %s\n' "$version" "${form:+tail}" "$way" \
				"$(echo "$verdict" | tail -n 1 | sed 's/; never seen.*//'), $(sed -n 's/.* not sampled; //p' out)"
			echo "$verdict" | sed '$d'
		done
	done
done
exit $bad
