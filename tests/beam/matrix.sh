#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Each Erlang that is here: the reader of BEAM alone over random stops, then stacks through hearth, in both forms of the walk, judged by
# what the program says of itself. By hand: `make runtimes`.
#   matrix.sh BUILD [ERL...]   ERLS: further ones, separated by blanks   STOPS: of each, default 10000   SECONDS_EACH, HZ
# Exit status 1 when a stack is wrong.
set -u
build=$(readlink -f "${1:?usage: $0 BUILD [ERL...]}")
here=$(cd "$(dirname "$0")" && pwd)
shift
[ $# -gt 0 ] || eval "set -- $(command -v erl) ${ERLS:-}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
cp "$here/../script/calls.erl" .
bad=0
printf '%-6s %-10s %s\n' OTP what verdict
for erl; do
	[ -x "$erl" ] || continue
	release=$("$erl" -noshell -eval 'io:put_chars(erlang:system_info(otp_release)), halt().')
	emulator=$("$erl" -noshell -eval 'io:format("~s/erts-~s/bin/beam.smp", [code:root_dir(), erlang:system_info(version)]), halt().')
	"$(dirname "$erl")/erlc" calls.erl || { bad=1; continue; }
	timeout 900 "$build/beam/stops" -n "${STOPS:-10000}" "$emulator" "$erl" +S 1:1 -noshell -s calls main 890 >stops 2>err || bad=1
	printf '%-6s %-10s %s\n' "$release" stops "$(tail -n 1 err)"
	"$erl" -noshell -s calls main 0 plain >truth
	verdict=$(python3 "$here/../code/judge_stops.py" --min 99.9 --file calls.erl,again.erl --whole-names truth stops) || bad=1
	printf '%-6s %-10s %s\n' "$release" names "$(echo "$verdict" | tail -n 1 | sed 's/; never seen.*//')"
	echo "$verdict" | sed '$d'
	for form in "" --no-bpf-loop; do
		"$erl" -noshell -s calls main "${SECONDS_EACH:-6}" >truth &
		pid=$!
		sleep 1
		# shellcheck disable=SC2086
		"$build/hearth" record $form -F "${HZ:-499}" -d "${SECONDS_EACH:-6}" -p $pid -o x.otlp >out 2>&1
		wait $pid
		verdict=$(python3 "$here/../script/judge.py" --min 99 --least 50 --without 100000 --loop NONE --complete 99 --whole-names \
			--file calls.erl,again.erl x.otlp beam.smp beam truth) || bad=1
		printf '%-6s %-10s %s\n' "$release" "${form:+tail form}" \
			"$(echo "$verdict" | tail -n 1 | sed 's/; never seen.*//')"
		echo "$verdict" | sed '$d'
	done
done
exit $bad
