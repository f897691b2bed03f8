#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds the cells of the truth matrix, runs each below one recording and judges every stack.
#   matrix.sh [OPTION]... HEARTH OUTDIR WORKDIR
#   --all           all cells, and other Go toolchains through the module proxy
#   --seconds N     of each cell (5)          --least N       samples of each cell (50)
#   --slack N       stacks of a cell that may be inexact (0)
#   --table         a Markdown table, with a column of what perf makes of the same cells, where perf is installed
# The cells land in OUTDIR; the capture, what the cells said and the verdict in WORKDIR. Exit status 1 when a stack is not exact.
set -eu
all='' seconds=5 least=50 slack=0 table=0
while [ $# -gt 3 ]; do
	case $1 in
	--all) all=--all ;;
	--seconds) seconds=$2 && shift ;;
	--least) least=$2 && shift ;;
	--slack) slack=$2 && shift ;;
	--table) table=1 ;;
	*)
		echo "usage: $0 [--all] [--seconds N] [--least N] [--slack N] [--table] HEARTH OUTDIR WORKDIR" >&2
		exit 2
		;;
	esac
	shift
done
here=$(cd "$(dirname "$0")" && pwd)
hearth=$1 cells=$2 work=$3
"$here/cells.sh" "$cells" $all
mkdir -p "$work/told"

# run RECORDER...: all cells, two at a time, below RECORDER
run() {
	# shellcheck disable=SC2016 # the inner shell's
	find "$cells" -maxdepth 1 -type f -perm -u+x | sort >"$work/list"
	"$@" sh -c 'xargs -P 2 -I {} sh -c "{} \"\$0\" >\"\$1/told/\$(basename {})\"" "$0" "$1" <"$1/list"' "$seconds" "$work"
}

# The ring has room for a storm: every function of every cell is new once.
run "$hearth" record -F 997 --ring-bytes 16777216 -o "$work/matrix.otlp" --
judge() {
	"$here/check.py" --known "$here/known" --least "$least" --slack "$slack" "$@" "$work/matrix.otlp" "$work"/told/*
}
if [ $table = 0 ]; then
	judge
	exit
fi

# The same judge for perf, which is not asked for names nor for the frames before main.
if command -v perf >/dev/null; then
	seconds=1
	run perf record -q -F 99 --call-graph dwarf,32768 -o "$work/perf.data" --
	"$here/perf_stacks.py" "$work/perf.data" "$(readlink -f "$cells")" >"$work/perf.stacks"
	rm "$work/perf.data"
	"$here/check.py" --any-name --any-root --table "$work/perf.stacks" "$work"/told/* >"$work/perf.table" || :
fi
status=0
judge --table >"$work/table" || status=$?
echo "| cell | stacks | exact % | at full depth | on the way | not exact, or outside of the chains | perf: exact % |"
echo "|---|---|---|---|---|---|---|"
awk -F ' *[|] *' 'FILENAME == ARGV[1] { perf[$2] = $3 > 0 ? $4 : "-"; next } { print $0, (($2 in perf) ? perf[$2] : "-"), "|" }' \
	"$([ -e "$work/perf.table" ] && echo "$work/perf.table" || echo /dev/null)" "$work/table"
exit $status
