#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The matrix of Java: each JDK that is here, each way to run, both forms of the walk; a row of a table each. By hand: `make runtimes`.
#   java.sh BUILD [JAVA...]   JDKS: further JDKs' java, separated by blanks
# Exit status 1 when a stack is wrong.
set -u
build=$(readlink -f "${1:?usage: $0 BUILD [JAVA...]}")
here=$(cd "$(dirname "$0")" && pwd)
shift
[ $# -gt 0 ] || eval "set -- ${JDKS:-} $(echo /usr/lib/jvm/*/bin/java)"
ways=("-Xmx300m" "-Xint" "-XX:TieredStopAtLevel=1" "-XX:TieredStopAtLevel=3" "-XX:-TieredCompilation" "-XX:-Inline" "-XX:+UseSerialGC"
	"-XX:+UseZGC" "-XX:+PreserveFramePointer" "-XX:ReservedCodeCacheSize=8m" "-XX:+UnlockDiagnosticVMOptions -XX:+DebugNonSafepoints")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
javac --release 8 -nowarn -d . "$here/Calls.java" 2>/dev/null || exit 77
for javac in javac /usr/lib/jvm/*/bin/javac; do
	"$javac" --release 21 -d . "$here/VirtualCalls.java" 2>/dev/null && break
done
bad=0
least_complete=90 # virtual threads of JDK 21 and 28 have 93 and more

# run CLASS JAVA FORM WAY: a row of the table.
run() {
	local class=$1 java=$2 form=$3 way=$4 pid verdict
	[ "$class" = Calls ] || "$java" -cp . "$class" "$here/$class.java" 0 >/dev/null 2>&1 || return # too old
	# shellcheck disable=SC2086 # options
	"$java" $way -cp . "$class" "$here/$class.java" "${SECONDS_EACH:-6}" >truth 2>java.err &
	pid=$!
	sleep 0.5
	# shellcheck disable=SC2086 # there may be none
	"$build/hearth" record $form -F "${HZ:-997}" -d "${SECONDS_EACH:-6}" -p $pid -o x.otlp >out 2>&1
	wait $pid || { echo "$java $way: $(head -1 java.err)"; return; }
	verdict=$(python3 "$here/judge.py" --min 99.9 --least 50 --without 100000 --loop NONE --complete $least_complete --file "$class.java" \
		x.otlp java jvm truth) || bad=1
	printf '%-44s %-9s %-52s %s\n' "${java#/usr/lib/jvm/}" "${form:+tail}" "$class $way" \
		"$(echo "$verdict" | tail -n 1 | sed 's/; never seen.*//')"
	echo "$verdict" | sed '$d'
}

declare -A seen
printf '%-44s %-9s %-52s %s\n' java form way verdict
for java; do
	java=$(readlink -f "$java")
	[ -x "$java" ] && [ -z "${seen[$java]:-}" ] || continue
	seen[$java]=1
	for form in "" --no-bpf-loop; do
		for way in "${ways[@]}"; do
			run Calls "$java" "$form" "$way"
			[ ! -f VirtualCalls.class ] || run VirtualCalls "$java" "$form" "$way"
		done
	done
done
exit $bad
