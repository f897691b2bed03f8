#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Each .NET runtime that is named: the reader and rows alone over random stops, in each way that it compiles; then stacks through hearth, in
# both forms of the walk; judged by what the program says of itself. Then files and lines through hearth, in each way, by PDBs that are made for
# the library (dotnet_pdb.py), beside the images and in them; judged by the runtime's own stack traces. By hand: `make runtimes`.
#   DOTNETS="FOLDER..." dotnet.sh BUILD   FOLDER: with libcoreclr.so and the library's images   STOPS: of each, default 1000   SECONDS_EACH, HZ
# Exit status 1 when a stack is wrong.
set -u
build=$(readlink -f "${1:?usage: DOTNETS=... $0 BUILD}")
here=$(cd "$(dirname "$0")" && pwd)
[ -n "${DOTNETS:-}" ] && command -v mcs >/dev/null || { echo ".NET: skipped: DOTNETS names no runtime, or there is no mcs (mono-mcs)"; exit 0; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
cc -O1 -o host "$here/dotnet_host.c" -ldl && mcs -unsafe -out:Calls.exe "$here/Calls.cs" && mcs -out:Lines.exe "$here/Lines.cs" 2>/dev/null || exit 1
bad=0
modes=("" TieredCompilation=0 TieredPGO=0 ReadyToRun=0 TC_QuickJitForLoops=0)
option() { echo "${1:+DOTNET_$1 COMPlus_$1}"; } # of a mode; .NET 5 and older know the second form alone
for folder in $DOTNETS; do
	for mode in "${modes[@]}"; do
		name="$(basename "$folder") ${mode:-default}"
		# shellcheck disable=SC2046 # there may be none
		env $(option "$mode") timeout 300 "$build/code/stops" -n "${STOPS:-1000}" ./host "$folder" "$work/Calls.exe" 200 >stops 2>err || bad=1
		grep '^frame' err >truth
		verdict=$(python3 "$here/../code/judge_stops.py" --min 99.9 --own Calls. --whole-names truth stops) || bad=1
		printf '%s: %s\n%s: %s\n' "$name" "$(tail -n 1 err)" "$name" "$(echo "$verdict" | tail -n 1 | sed 's/; never seen.*//')"
		echo "$verdict" | sed '$d'
	done
	for form in "" --no-bpf-loop; do
		./host "$folder" "$work/Calls.exe" "${SECONDS_EACH:-6}" >/dev/null &
		pid=$!
		sleep 1
		# shellcheck disable=SC2086
		"$build/hearth" record $form -F "${HZ:-499}" -d 4 -p $pid -o x.otlp >out 2>&1
		wait $pid
		printf '%s: %s\n' "${form:-loop form}" "$(sed -n 's/.*; \([0-9.]* %\) of user.*/\1/p' out) of stacks complete"
	done
	rm -rf with-lines && mkdir with-lines
	cp -l "$folder"/*.dll "$folder"/*.so with-lines 2>/dev/null || cp -f "$folder"/*.dll "$folder"/*.so with-lines || exit 1
	python3 "$here/dotnet_pdb.py" with-lines with-lines/*.dll || exit 1
	late=
	grep -aq '@(#)Version 4\.700\.' "$folder/libcoreclr.so" && late="--late 8"
	for mode in "${modes[@]}" embedded; do
		if [ "$mode" = embedded ]; then
			rm -f with-lines/*.pdb
			python3 "$here/dotnet_pdb.py" --embed with-lines with-lines/*.dll || exit 1
		fi
		# shellcheck disable=SC2046
		env $(option "${mode#embedded}") ./host "$work/with-lines" "$work/Lines.exe" "$((${SECONDS_EACH:-6} + 2))" >truth &
		pid=$!
		sleep 1
		"$build/hearth" record -F "${HZ:-499}" -d "${SECONDS_EACH:-6}" -p $pid -o x.otlp >out 2>&1
		wait $pid
		# shellcheck disable=SC2086 # there may be none
		verdict=$(python3 "$here/judge_lines.py" $late x.otlp host truth) || bad=1
		echo "$(basename "$folder") ${mode:-default}: $verdict"
	done
done
exit $bad
