#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Random stops in the code of each JDK that is here, each way to run: the reader and rows alone walk each stack, and what the program
# says of itself judges the functions, callers and lines they find. By hand: `make runtimes`.
#   matrix.sh BUILD [JAVA...]   JDKS: further JDKs' java   STOPS: of each, default 2000
# Exit status 1 when a stop is wrong.
set -u
build=$(readlink -f "${1:?usage: $0 BUILD [JAVA...]}")
here=$(cd "$(dirname "$0")" && pwd)
shift
[ $# -gt 0 ] || eval "set -- ${JDKS:-} $(echo /usr/lib/jvm/*/bin/java)"
ways=("-Xmx300m" "-Xint" "-XX:TieredStopAtLevel=1" "-XX:-TieredCompilation" "-XX:+UseZGC" "-XX:-Inline")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
javac --release 8 -nowarn -d . "$here/../script/Calls.java" 2>/dev/null || exit 77
bad=0
declare -A seen
for java; do
	java=$(readlink -f "$java")
	[ -x "$java" ] && [ -z "${seen[$java]:-}" ] || continue
	seen[$java]=1
	"$java" -cp . Calls "$here/../script/Calls.java" 0 >truth 2>/dev/null
	for way in "${ways[@]}"; do
		# shellcheck disable=SC2086 # options
		timeout 300 "$build/code/stops" -n "${STOPS:-2000}" -w 3000 "$java" $way -cp . Calls "$here/../script/Calls.java" 280 >stops 2>err || { echo "$java $way: $(tail -n 1 err)"; continue; }
		verdict=$(python3 "$here/judge_stops.py" --min 99.9 --file Calls.java truth stops) || bad=1
		printf '%-36s %-28s %s; %s\n' "${java#/usr/lib/jvm/}" "$way" "$(echo "$verdict" | tail -n 1 | sed 's/; never seen.*//')" "$(tail -n 1 err)"
		echo "$verdict" | sed '$d'
	done
done
exit $bad
