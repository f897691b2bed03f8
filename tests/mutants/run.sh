#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Does a test notice when the handling of a case is taken out? Each *.patch here takes one out, in a copy of the tree that is
# built and tested; its test must fail there.
#   run.sh BUILD [NAME...]
# A patch says in its first lines what it takes out, and its test: "Test: unit NAME" (test_NAME.c in tests/unit/agent) or
# "Test: NAME [ARGUMENT...]" (tests/system/NAME.sh, with the arguments). "Fails: CASE..." are those of its cases that must (lines
# "FAIL CASE"). A test that fails on the untouched copy proves nothing, so all are run there first. One line a patch: killed,
# with what the test said, or SURVIVED (the test, or such a case, passed), or BROKEN (it does not apply or does not compile any
# more); exit status 1 when one was not killed. Needs root, as the system tests do.
set -u
[ $# -ge 1 ] || {
	echo "usage: $0 BUILD [NAME...]" >&2
	exit 2
}
build=$(readlink -f "$1")
shift
here=$(dirname "$(readlink -f "$0")")
cd "$here/../.." || exit 1
[ -x "$build/hearth" ] || {
	echo "$build/hearth is not built: run 'make' first" >&2
	exit 1
}
[ $# -gt 0 ] || set -- $(basename -s .patch "$here"/*.patch)

scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
chmod 755 "$scratch"
mkdir "$scratch/tree" "$scratch/tree/build"
git ls-files -z | xargs -0 cp -a --parents -t "$scratch/tree" || exit 1
tar -C "$build" --exclude='./truth/matrix*' --exclude=./chdb --exclude=./peers -cf - . | tar -C "$scratch/tree/build" -xf - || exit 1
cd "$scratch/tree" || exit 1
unset SUDO_USER SUDO_UID SUDO_GID SUDO_COMMAND
export HEARTH=$PWD/build/hearth TRUTH=$PWD/build/truth TOP=$PWD HEARTH_CONFIG=/dev/null

# try TEST [ARGUMENT...]: builds what it needs and runs it; what it says into $scratch/said. 99: it cannot be built.
try() {
	local dir=$scratch/run status binary=
	[ "$1" != unit ] || binary=build/$(cd tests && find unit/agent -name "test_$2.c" | sed 's/\.c$//')
	make -j2 BUILD=build all $binary >"$scratch/said" 2>&1 || return 99
	rm -rf "$dir"
	mkdir "$dir" # rows and names that another build learned are another's
	export HEARTH_SYMBOL_CACHE=$dir.symbols STATE_DIRECTORY=$dir.state
	rm -rf "$dir".*
	if [ "$1" = unit ]; then
		CMOCKA_MESSAGE_OUTPUT=STDOUT timeout -k 5 120 "$binary" >"$scratch/said" 2>&1 </dev/null
	else
		(cd "$dir" && exec timeout -k 10 100 "$TOP/tests/system/$1.sh" "${@:2}") >"$scratch/said" 2>&1 </dev/null
	fi
	status=$?
	return $status
}

# head_of NAME WORD: what a patch says behind "WORD: "
head_of() {
	sed -n "/^---/q; s/^$2: //p" "$here/$1.patch"
}

# The untouched copy: all cases of a test at once.
tests/truth/build.sh "$TRUTH" >"$scratch/said" 2>&1 || cat "$scratch/said"
for name; do
	head_of "$name" Test
done | sort -u | awk '$1 == "unit" || $1 != last { if (NR > 1) print line; line = $1; last = $1; any = NF > 1 }
	{ if (NF == 1 || !any) { any = 0; line = $1 } else for (i = 2; i <= NF; i++) if (!seen[$1, $i]++) line = line " " $i }
	END { print line }' >"$scratch/tests"
while read -r -a test; do
	if ! try "${test[@]}" && ! try "${test[@]}"; then
		echo "without any patch this fails: ${test[*]}"
		sed 's/^/       /' "$scratch/said"
		exit 1
	fi
done <"$scratch/tests"

killed=0 others=0
for name; do
	read -r -a test < <(head_of "$name" Test)
	begin=$SECONDS status=99
	if git apply "$here/$name.patch" >"$scratch/said" 2>&1; then
		try "${test[@]}"
		status=$?
		git apply -R "$here/$name.patch"
	fi
	for case in $(head_of "$name" Fails); do
		[ $status = 99 ] || grep -q "^FAIL $case " "$scratch/said" || status=0
	done
	case $status in
	0 | 77) verdict=SURVIVED ;;
	99) verdict=BROKEN ;;
	*) verdict=killed ;;
	esac
	case $verdict in
	killed)
		killed=$((killed + 1))
		[ $status != 124 ] || echo "FAILED: no end" >>"$scratch/said"
		why=$(grep -E 'FAILED|FAIL |ERROR' "$scratch/said" | tail -n 1 | cut -c -100)
		;;
	*)
		others=$((others + 1))
		why=$(tail -n 3 "$scratch/said")
		;;
	esac
	printf '%-8s %-22s %3d s  %s: %s\n' $verdict "$name" $((SECONDS - begin)) "${test[*]}" "$why"
	[ -z "${MUTANTS_SAID:-}" ] || cp "$scratch/said" "$MUTANTS_SAID/$name"
done
echo "$killed killed, $others not"
[ $others = 0 ]
