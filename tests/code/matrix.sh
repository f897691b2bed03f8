#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Random stops in the code of each JDK that is here, each way to run: the reader and rows alone walk each stack, and what the program
# says of itself judges the functions, callers and lines they find. By hand: `make runtimes`.
#   matrix.sh BUILD [JAVA...]   JDKS: further JDKs' java   STOPS: of each, default 2000
# JDK 21 and later: virtual threads, too, of which walks may end where the outermost frame has arguments on the stack.
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
for javac in javac /usr/lib/jvm/*/bin/javac; do
	"$javac" --release 21 -d . "$here/../script/VirtualCalls.java" 2>/dev/null && break
done
bad=0

# stops CLASS JAVA WAY: a row of the table.
stops() {
	local source="$here/../script/$1.java" java=$2 way=$3 verdict
	"$java" -cp . "$1" "$source" 0 >truth 2>/dev/null || return
	# shellcheck disable=SC2086 # options
	timeout 300 "$build/code/stops" -n "${STOPS:-2000}" -w 3000 "$java" $way -cp . "$1" "$source" 280 >stops 2>err ||
		{ echo "$java $way: $(tail -n 1 err)"; return; }
	verdict=$(python3 "$here/judge_stops.py" --min 99.9 --file "$1.java" truth stops) || bad=1
	printf '%-36s %-12s %-28s %s; %s\n' "${java#/usr/lib/jvm/}" "$1" "$way" \
		"$(echo "$verdict" | tail -n 1 | sed 's/; never seen.*//')" "$(tail -n 1 err)"
	echo "$verdict" | sed '$d'
}

declare -A seen
for java; do
	java=$(readlink -f "$java")
	[ -x "$java" ] && [ -z "${seen[$java]:-}" ] || continue
	seen[$java]=1
	for way in "${ways[@]}"; do
		stops Calls "$java" "$way"
		[ ! -f VirtualCalls.class ] || stops VirtualCalls "$java" "$way -Djdk.virtualThreadScheduler.parallelism=2"
	done
done
exit $bad
