# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Builds the truth programs: sourced with $out set, in the folder of the sources. Builds run beside each other, one a
# CPU; what is newer than its sources stays.
set -eu
jobs=${JOBS:-$(nproc)}
broken=$out/.broken
rm -f "$broken"

missing() {
	echo "left out: $2 no $1"
}

have() {
	command -v "$1" >/dev/null
}

# build NAME SOURCE COMMAND...: runs COMMAND -o OUTDIR/NAME SOURCE. With strip=1 the program is stripped, and what it was before is
# kept in OUTDIR/symbols; with symbols=COMMAND that makes the latter.
build() {
	local name=$1 source=$2 file
	shift 2
	for file in "$source" truth.h plugin.h "${BASH_SOURCE[@]##*/}"; do
		[ "$file" -nt "$out/$name" ] || continue
		while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do
			wait -n || :
		done
		build_one "$name" "$source" "$@" || echo "$name" >>"$broken" &
		return
	done
}

build_one() {
	local name=$1 source=$2
	shift 2
	rm -f "$out/$name" "$out/symbols/$name"
	if [ "${strip:-0}" = 1 ]; then
		"$@" -o "$out/symbols/$name" "$source" && strip -o "$out/$name" "$out/symbols/$name"
	elif [ -n "${symbols:-}" ]; then
		$symbols -o "$out/symbols/$name" "$source" && "$@" -o "$out/$name" "$source"
	else
		"$@" -o "$out/$name" "$source"
	fi && return
	rm -f "$out/$name"
	echo "truth: $name was not built by: $* -o $name $source" >&2
	return 1
}

# until all is built; fails when something was not
built() {
	wait
	[ ! -e "$broken" ]
}
