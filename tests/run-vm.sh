#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Boots other kernels and runs tests/vm/inside.sh on each: every BPF object is loaded and a truth program is walked.
#   run-vm.sh BUILD [5.10|6.1|6.12|7.2|6.1-arm64|7.2-arm64...]      (all of them when none is named)
# Kernels for arm64 run what BUILD-arm64 has (make ARCH=arm64) in a root of packages of that CPU, with many truth
# programs, which are judged here; a minute or two each. One line a kernel; what failed shows its output. Needs root and
# what tests/vm/boot.sh names; a kernel that cannot be had is skipped. An emulated machine is slow, and another one
# where its host is busy: what failed runs a second time, as in run-system.sh (HEARTH_TRIES=1: no second time). Counts
# as run-system.sh does: its names here are kernel/VERSION.
set -u
[ $# -ge 1 ] || {
	echo "usage: $0 BUILD [KERNEL...]" >&2
	exit 2
}
build=$(readlink -f "$1")
cd "$(dirname "$0")/.." || exit 1
shift
[ $# -gt 0 ] || set -- 5.10 6.1 6.12 7.2 6.1-arm64 7.2-arm64
sysroot=$PWD/build-arm64-sysroot

# prepare BUILD COMMAND...: is it built? Then COMMAND builds the truth programs.
prepare() {
	[ -x "$1/hearth" ] || {
		echo "$1/hearth is not built"
		return 1
	}
	"${@:2}"
}

# on_amd64 KERNELDIR
on_amd64() {
	prepare "$build" tests/truth/build.sh "$build/truth" && tests/probes/build.sh "$build/probes" &&
		{ [ -z "${HEARTH_VM_CHAINS:-}" ] || "${CC:-cc}" -O1 -o "$build/vm-chains" tests/vm/chains.c -lbpf; } &&
		HEARTH_VM_SECONDS=${HEARTH_VM_SECONDS:-420} tests/vm/boot.sh "$1" "cd '$PWD' && HEARTH_VM_CHAINS=${HEARTH_VM_CHAINS:-} HEARTH_VM_PROBES=${HEARTH_VM_PROBES:-} tests/vm/inside.sh '$build'"
}

# on_arm64 KERNELDIR
on_arm64() {
	local file name programs=() result known=$PWD/tests/truth/known-arm64
	prepare "$build-arm64" tests/truth/build-arm64.sh "$build-arm64/truth" "$sysroot" || return
	for file in "$build-arm64/truth"/warm_*; do
		name=${file##*/warm_}
		[ "$name" = c_chain ] || programs+=("$name")
	done
	rm -rf "$out.d"
	mkdir "$out.d"
	HEARTH_VM_ROOT=$sysroot HEARTH_VM_OUT=$out.d HEARTH_VM_SECONDS=1200 \
		tests/vm/boot.sh "$1" "cd '$PWD' && tests/vm/inside.sh '$build-arm64' '$out.d' ${programs[*]}" || return
	result=0
	(
		cd "$out.d" || exit
		failed=0
		mkdir bin && ln -s "$(command -v aarch64-linux-gnu-nm)" bin/nm && PATH=$PWD/bin:$PATH
		"$OLDPWD/tests/truth/check.py" --least 30 --known "$known" helper.otlp c_chain || failed=1
		"$OLDPWD/tests/truth/check.py" --least 30 --known "$known" all.otlp "${programs[@]}" || failed=1
		exit $failed
	) >"$out.verdict" 2>&1 || result=1
	cat "$out.verdict"
	echo "$(grep -c '^ok' "$out.verdict") of $((${#programs[@]} + 1)) programs exact"
	return $result
}

out=$(mktemp)
trap 'rm -rf "$out" "$out.d" "$out.verdict"' EXIT
passed=0 failed=0 skipped=0 flaky=''
counts=${HEARTH_TEST_COUNTS:-/dev/null}
for version; do
	start=$EPOCHREALTIME
	release= once=
	cpu=amd64
	[ "${version%-arm64}" = "$version" ] || cpu=arm64
	kernel=$(tests/vm/kernel.sh "${version%-arm64}" $cpu 2>"$out")
	status=$?
	if [ $status = 0 ]; then
		release=" ($(cat "$kernel/release"))"
		on_$cpu "$kernel" >"$out" 2>&1
		status=$?
		if [ $status != 0 ] && [ $status != 77 ] && [ "${HEARTH_TRIES:-2}" != 1 ]; then
			once=1
			echo "  once kernel $version, and again:"
			sed 's/^/       /' "$out"
			on_$cpu "$kernel" >"$out" 2>&1
			status=$?
		fi
	fi
	took=$(awk "BEGIN { printf \"%.1f s\", $EPOCHREALTIME - $start }")
	case $status in
	0)
		passed=$((passed + 1))
		if [ -n "$once" ]; then
			flaky="$flaky $version"
			echo "flake kernel/$version" >>"$counts"
		fi
		echo "  ok   kernel $version$release: $(tail -n 1 "$out") ($took${once:+; flaky: failed once})"
		;;
	77)
		skipped=$((skipped + 1))
		echo "skip kernel/$version $(tail -n 1 "$out")" >>"$counts"
		echo "  skip kernel $version$release: $(tail -n 1 "$out")"
		;;
	*)
		failed=$((failed + 1))
		echo "fail kernel/$version" >>"$counts"
		echo "  FAIL kernel $version$release ($took, exit status $status)"
		sed 's/^/       /' "$out"
		;;
	esac
done
echo "vm tests: $passed passed, $failed failed, $skipped skipped${flaky:+; flaky:$flaky}"
echo "$passed $failed $skipped" >>"$counts"
[ $failed = 0 ]
