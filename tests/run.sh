#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The whole test suite, what `make test` runs: what tests need is installed; lint, unit tests as built for use and with sanitizers, a short round of fuzzing,
# system tests, and the other kernels where QEMU is installed. A step that fails does not keep the next from running. Closes with
# what was skipped or needed a second try and one line, "N passed, N failed, N skipped, N flaky"; exit status 1 when something failed.
#   HEARTH_VM=0: no other kernels    HEARTH_LONG=1: a longer accounting test
#   HEARTH_STRICT=1: what is skipped and not named in tests/skips has failed
# The steps append to $HEARTH_TEST_COUNTS lines "PASSED FAILED SKIPPED", "skip NAME WHY" for each test or part of one that was left
# out, "flake NAME" for each that passed by its second try, "fail NAME" for each that failed, behind it "said LINE" for the last lines that
# it printed, and "time SECONDS NAME".
set -u
cd "$(dirname "$0")/.." || exit 1
make=${MAKE:-make}
unset MAKEFLAGS MFLAGS MAKELEVEL
jobs=-j$(nproc)
work=$(mktemp -d)
export HEARTH_TEST_COUNTS=$work/counts
: >"$HEARTH_TEST_COUNTS"
trap 'rm -rf "$work"' EXIT
began=$SECONDS
step=
fuzz_seconds=60 # shared by all targets

headline() {
	[ -z "$step" ] || printf '%6d s  %s\n' $((SECONDS - step_began)) "$step" >>"$work/steps"
	step=$* step_began=$SECONDS
	echo
	echo "== $* (at $((SECONDS - began)) s)"
}

# count PASSED FAILED SKIPPED
count() {
	echo "$*" >>"$HEARTH_TEST_COUNTS"
}

# failed_step NAME
failed_step() {
	count 0 1 0
	echo "fail $*" >>"$HEARTH_TEST_COUNTS"
}

# one NAME COMMAND...: a step that is itself a test
one() {
	local name=$1
	shift
	if "$@"; then
		count 1 0 0
		echo "  ok   $name"
	else
		failed_step "$name"
		echo "  FAIL $name"
	fi
}

# counted COMMAND...: a step that counts for itself; one that fails without having counted a failure counts as one
counted() {
	local failures
	failures=$(failed)
	"$@" || [ "$(failed)" -gt "$failures" ] || failed_step "$*"
}

failed() {
	awk '/^[0-9]/ { sum += $2 } END { print sum + 0 }' "$HEARTH_TEST_COUNTS"
}

# skip NAME WHY
skip() {
	count 0 0 1
	echo "skip $*" >>"$HEARTH_TEST_COUNTS"
	echo "  skip $1: ${*:2}"
}

# skips that tests/skips names here, as patterns, a line each
named_skips() {
	local own
	own=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
	awk -v own="$own" '/^#/ || !NF { next } /^\[/ { other = $1 != "[" own "]"; next } !other { print $1 }' tests/skips
}

# Shows what was skipped; where that must not be it is counted as failed.
skips() {
	local name why pattern named
	sed -n 's/^skip //p' "$HEARTH_TEST_COUNTS" | sort -u | while read -r name why; do
		named=
		for pattern in $(set -f && named_skips); do
			# shellcheck disable=SC2053 # a pattern
			[[ $name != $pattern ]] || named=1
		done
		if [ -n "$named" ] || [ "${HEARTH_STRICT:-0}" = 0 ]; then
			echo "skipped${named:+ as tests/skips says}: $name: $why"
		else
			failed_step "$name"
			echo "  FAIL skipped, and not named in tests/skips: $name: $why"
		fi
	done
}

# While packages come, sanitized code is compiled, which needs none of them; what fails there is told when it is wanted.
headline "packages"
"$make" -s "$jobs" SAN=1 libs >/dev/null 2>&1 &
tools/deps.sh --test || exit 1
wait

# Fetched meanwhile: a newer Go, and the other kernels, the oldest and the newest; those between and arm64 are for 'make test-vm'.
kernels="5.10 7.2"
tests/new-go.sh build/go >"$work/go" 2>"$work/go.err" &
go=$!
for kernel in $kernels; do
	[ "${HEARTH_VM:-1}" = 0 ] || [ "$(id -u)" != 0 ] || tests/vm/kernel.sh "$kernel"
done >"$work/kernels" 2>&1 & # what fails is tried and told again where they are booted
fetch=$!

headline "lint"
tools/check-lint.sh >"$work/check-lint" 2>&1 &
check_lint=$!
one "lint" "$make" -s lint
{ clang-format-14 --version || clang-format --version; } 2>/dev/null | grep -q ' version 14\.' || skip lint/format "no clang-format 14 here"
wait_for() {
	local status=0
	wait "$1" || status=$?
	cat "$2"
	return $status
}
one "lint finds what it should" wait_for $check_lint "$work/check-lint"
if wait $go; then
	PATH=$(cat "$work/go"):$PATH
else
	skip new-go "$(tail -n 1 "$work/go.err")"
fi

headline "build and unit tests"
one "build" "$make" -s "$jobs" all
one "rooms" "$make" -s rooms
if [ "$(uname -m)" = x86_64 ] && [ -e /usr/aarch64-linux-gnu/include ]; then
	one "valid for arm64" tests/other-cpu.sh build
else
	skip other-cpu "no headers of arm64's C library here (libc6-dev-arm64-cross)"
fi
counted "$make" -s "$jobs" test-unit

headline "unit tests with address and undefined behaviour sanitizers"
counted "$make" -s "$jobs" SAN=1 test-unit

headline "fuzzing"
probe=$work/probe
if echo 'int LLVMFuzzerTestOneInput(void) { return 0; }' | ${CLANG:-clang} -fsanitize=fuzzer -x c -o "$probe" - 2>/dev/null; then
	targets=(tests/fuzz/fuzz_*.c)
	# The seed is fixed: what fails here fails again. 'make fuzz' looks further.
	FUZZ_SEED=1 counted "$make" -s "$jobs" fuzz FUZZ_SECONDS=$((fuzz_seconds / ${#targets[@]}))
else
	skip fuzzing "clang has no libFuzzer here"
fi

headline "system tests"
if [ "$(id -u)" = 0 ]; then
	counted "$make" -s test-system
	headline "system tests with sanitizers"
	one "build" "$make" -s "$jobs" SAN=1 all
	# Not those about how good the stacks are: a sanitized agent is too slow for the shortest processes.
	counted tests/run-system.sh build-san tests/system/{accounting,cli,convert,h2,otlp-valid,record-make,serve-grpc,serve-http,symbols}.sh
else
	skip system "needs root"
fi

headline "other kernels"
if [ "${HEARTH_VM:-1}" = 0 ]; then
	skip kernel "HEARTH_VM=0"
elif [ "$(id -u)" != 0 ]; then
	skip kernel "needs root"
elif ! command -v qemu-system-x86_64 >/dev/null; then
	skip kernel "no qemu-system-x86_64 here"
else
	wait $fetch
	counted "$make" -s test-vm KERNELS="$kernels"
fi

headline "all"
cat "$work/steps"
echo "the slowest tests:"
sed -n 's/^time //p' "$HEARTH_TEST_COUNTS" | sort -rn | head -n 20 | while read -r seconds name; do printf '%6.1f s  %s\n' "$seconds" "$name"; done
skips
sed -n 's/^flake /flaky, passed by its second try: /p; s/^fail /failed: /p; s/^said /        /p' "$HEARTH_TEST_COUNTS"
awk '/^flake / { flaky++ } /^[0-9]/ { p += $1; f += $2; s += $3 }
	END { printf "%d flaky\n%d passed, %d failed, %d skipped\n", flaky, p, f, s; exit !(f == 0 && p > 0) }' "$HEARTH_TEST_COUNTS"
