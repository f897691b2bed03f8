#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The whole test suite, what `make test` runs: lint, unit tests as built for use and with sanitizers, a short round of fuzzing,
# system tests, and the other kernels where QEMU is installed. A step that fails does not keep the next from running. Closes with
# one line, "N passed, N failed, N skipped"; exit status 1 when something failed.
#   HEARTH_VM=0: no other kernels    HEARTH_LONG=1: a longer accounting test
set -u
cd "$(dirname "$0")/.." || exit 1
make=${MAKE:-make}
unset MAKEFLAGS MFLAGS MAKELEVEL
jobs=-j$(nproc)
HEARTH_TEST_COUNTS=$(mktemp)
export HEARTH_TEST_COUNTS
trap 'rm -f "$HEARTH_TEST_COUNTS"' EXIT
began=$SECONDS
fuzz_seconds=60 # shared by all targets

headline() {
	echo
	echo "== $* (at $((SECONDS - began)) s)"
}

# count PASSED FAILED SKIPPED
count() {
	echo "$*" >>"$HEARTH_TEST_COUNTS"
}

# one NAME COMMAND...: a step that is itself a test
one() {
	local name=$1
	shift
	if "$@"; then
		count 1 0 0
		echo "  ok   $name"
	else
		count 0 1 0
		echo "  FAIL $name"
	fi
}

# counted COMMAND...: a step that counts for itself; one that fails without having counted a failure counts as one
counted() {
	local failures
	failures=$(failed)
	"$@" || [ "$(failed)" -gt "$failures" ] || count 0 1 0
}

failed() {
	awk '{ sum += $2 } END { print sum + 0 }' "$HEARTH_TEST_COUNTS"
}

skip() {
	count 0 0 1
	echo "  skip $*"
}

headline "lint"
one "lint" "$make" -s lint
one "lint finds what it should" tools/check-lint.sh

headline "build and unit tests"
one "build" "$make" -s "$jobs" all
counted "$make" -s "$jobs" test-unit

headline "unit tests with address and undefined behaviour sanitizers"
counted "$make" -s "$jobs" SAN=1 test-unit

headline "fuzzing"
probe=$(mktemp)
if echo 'int LLVMFuzzerTestOneInput(void) { return 0; }' | ${CLANG:-clang} -fsanitize=fuzzer -x c -o "$probe" - 2>/dev/null; then
	targets=(tests/fuzz/fuzz_*.c)
	# The seed is fixed: what fails here fails again. 'make fuzz' looks further.
	FUZZ_SEED=1 counted "$make" -s "$jobs" fuzz FUZZ_SECONDS=$((fuzz_seconds / ${#targets[@]}))
else
	skip "fuzzing: clang has no libFuzzer here"
fi
rm -f "$probe"

headline "system tests"
if [ "$(id -u)" = 0 ]; then
	counted "$make" -s test-system
	headline "system tests with sanitizers"
	one "build" "$make" -s "$jobs" SAN=1 all
	# Not those about how good the stacks are: a sanitized agent is too slow for the shortest processes.
	counted tests/run-system.sh build-san tests/system/{accounting,cli,convert,otlp-valid,record-make,serve-grpc,serve-http,symbols}.sh
else
	skip "system tests: they need root"
fi

headline "other kernels"
if [ "${HEARTH_VM:-1}" = 0 ]; then
	skip "other kernels: HEARTH_VM=0"
elif [ "$(id -u)" != 0 ]; then
	skip "other kernels: they need root"
elif ! command -v qemu-system-x86_64 >/dev/null; then
	skip "other kernels: no qemu-system-x86_64 here"
else
	counted "$make" -s test-vm KERNELS="5.10 6.1 6.12 7.2" # arm64, for which all is built again, is for 'make test-vm'
fi

headline "all"
awk '{ p += $1; f += $2; s += $3 } END { printf "%d passed, %d failed, %d skipped\n", p, f, s; exit !(f == 0 && p > 0) }' \
	"$HEARTH_TEST_COUNTS"
