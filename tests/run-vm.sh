#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Boots other kernels and runs tests/vm/inside.sh on each: every BPF object is loaded and a truth program is walked.
#   run-vm.sh BUILD [5.10|6.1|6.12|7.2|6.1-arm64|7.2-arm64...]      (all of them when none is named)
# Kernels for arm64 run what BUILD-arm64 has (make ARCH=arm64) in a root of packages of that CPU, with many truth
# programs, which are judged here; a minute or two each ($HEARTH_VM_ARM64: a binary that they try in place of BUILD-arm64's, below this folder,
# as that of an image). HEARTH_VM_SCRIPTS=1: scripts instead, on all kernels (tests/vm/scripts.sh), three to five minutes each; captures
# stay in the folder $HEARTH_VM_KEEP, if it is named. One kernel at a time for each pair of CPUs. One line a kernel; what failed shows its output. Needs root and
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

# The programs of tests/vm/kinds.sh (HEARTH_VM_KINDS=1 HEARTH_VM_SECONDS=1500).
kinds_programs() {
	"${CC:-cc}" -O2 -g -o "$build/vm-allocs" tests/memory/allocs.c || return
	! command -v go >/dev/null || env -u GOROOT GO111MODULE=off GOFLAGS= CGO_ENABLED=0 go build -o "$build/vm-heap" tests/memory/heap.go || rm -f "$build/vm-heap"
}

# build_CPU: all that machines of that CPU run
build_amd64() {
	[ -x "$build/hearth" ] || {
		echo "$build/hearth is not built"
		return 1
	}
	[ -z "${HEARTH_VM_SCRIPTS:-}" ] || return 0
	tests/truth/build.sh "$build/truth" && tests/probes/build.sh "$build/probes" &&
		{ [ -z "${HEARTH_VM_KINDS:-}" ] || kinds_programs; } &&
		{ [ -z "${HEARTH_VM_CHAINS:-}" ] || "${CC:-cc}" -O1 -o "$build/vm-chains" tests/vm/chains.c -lbpf; }
}
build_arm64() {
	[ -x "$build-arm64/hearth" ] || {
		echo "$build-arm64/hearth is not built"
		return 1
	}
	[ -z "${HEARTH_VM_SCRIPTS:-}" ] || {
		tests/vm/sysroot.sh arm64 "$sysroot"
		return
	}
	tests/truth/build-arm64.sh "$build-arm64/truth" "$sysroot"
}

# scripts_on KERNELDIR BUILD [ROOT [HEARTH]]: scripts alone (HEARTH_VM_SCRIPTS=1), which are judged here
scripts_on() {
	local result=0
	rm -rf "$out.d"
	mkdir "$out.d"
	HEARTH_VM_ROOT=${3:-} HEARTH_VM_OUT=$out.d HEARTH_VM_SECONDS=${HEARTH_VM_SECONDS:-1200} \
		tests/vm/boot.sh "$1" "cd '$PWD' && HEARTH='${4:-}' tests/vm/scripts.sh record '$2' '$out.d' --unsafe-kernel" || return
	[ -z "${HEARTH_VM_KEEP:-}" ] || cp -r "$out.d" "$HEARTH_VM_KEEP/${out##*/}.$EPOCHSECONDS"
	tests/vm/scripts.sh judge "$out.d" >"$out.verdict" 2>&1 || result=1
	cat "$out.verdict"
	echo "$(awk '/ % of [0-9]+ stacks right/ { for (i = 1; i < NF; i++) if ($i == "%") { n += $(i + 2); right += $(i - 1) * $(i + 2) / 100 } }
		END { printf "%.0f of %d", right, n }' "$out.verdict") stacks of scripts right"
	return $result
}

# on_amd64 KERNELDIR
on_amd64() {
	[ -z "${HEARTH_VM_SCRIPTS:-}" ] || {
		scripts_on "$1" "$build"
		return
	}
	HEARTH_VM_SECONDS=${HEARTH_VM_SECONDS:-420} tests/vm/boot.sh "$1" "cd '$PWD' && HEARTH_VM_CHAINS=${HEARTH_VM_CHAINS:-} HEARTH_VM_PROBES=${HEARTH_VM_PROBES:-} HEARTH_VM_KINDS=${HEARTH_VM_KINDS:-} tests/vm/inside.sh '$build'"
}

# on_arm64 KERNELDIR
on_arm64() {
	[ -z "${HEARTH_VM_SCRIPTS:-}" ] || {
		scripts_on "$1" "$build-arm64" "$sysroot" "${HEARTH_VM_ARM64:-}"
		return
	}
	local file name programs=() result known=$PWD/tests/truth/known-arm64
	for file in "$build-arm64/truth"/warm_*; do
		name=${file##*/warm_}
		[ "$name" = c_chain ] || programs+=("$name")
	done
	rm -rf "$out.d"
	mkdir "$out.d"
	HEARTH_VM_ROOT=$sysroot HEARTH_VM_OUT=$out.d HEARTH_VM_SECONDS=1200 \
		tests/vm/boot.sh "$1" "cd '$PWD' && HEARTH='${HEARTH_VM_ARM64:-}' tests/vm/inside.sh '$build-arm64' '$out.d' ${programs[*]}" || return
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

# Each has two CPUs, and where it has to share them it samples its own slowness.
at_once=$((($(nproc) + 1) / 2))
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
counts=${HEARTH_TEST_COUNTS:-/dev/null}

# run VERSION: its lines into $work/VERSION.said, those for the counts into $work/counts
run() {
	local version=$1 start=$EPOCHREALTIME release='' once='' cpu=amd64 kernel status took out=$work/$1
	[ "${version%-arm64}" = "$version" ] || cpu=arm64
	kernel=$(tests/vm/kernel.sh "${version%-arm64}" $cpu 2>"$out")
	status=$?
	if [ $status = 0 ]; then
		release=" ($(cat "$kernel/release"))"
		cp "$work/built-$cpu" "$out"
		tail -n 1 "$out" | grep -qx built && on_$cpu "$kernel" >"$out" 2>&1
		status=$?
		if [ $status != 0 ] && [ $status != 77 ] && [ "${HEARTH_TRIES:-2}" != 1 ]; then
			once=1
			echo "  once kernel $version, and again:"
			sed 's/^/       /' "$out"
			on_$cpu "$kernel" >"$out" 2>&1
			status=$?
		fi
	fi
	took=$(awk "BEGIN { printf \"%.1f\", $EPOCHREALTIME - $start }")
	{
		echo "time $took kernel/$version"
		case $status in
		0)
			echo "1 0 0"
			[ -z "$once" ] || echo "flake kernel/$version"
			;;
		77)
			echo "0 0 1"
			echo "skip kernel/$version $(tail -n 1 "$out")"
			;;
		*)
			echo "0 1 0"
			echo "fail kernel/$version"
			tail -n 8 "$out" | cut -c -400 | sed 's/^/said /'
			;;
		esac
	} >>"$work/counts"
	case $status in
	0) echo "  ok   kernel $version$release: $(tail -n 1 "$out") ($took s${once:+; flaky: failed once})" ;;
	77) echo "  skip kernel $version$release: $(tail -n 1 "$out")" ;;
	*)
		echo "  FAIL kernel $version$release ($took s, exit status $status)"
		sed 's/^/       /' "$out"
		;;
	esac
}

for cpu in amd64 arm64; do
	for version; do
		[ "$cpu" != "$([ "${version%-arm64}" = "$version" ] && echo amd64 || echo arm64)" ] || [ -e "$work/built-$cpu" ] ||
			{ build_$cpu && echo built; } >"$work/built-$cpu" 2>&1
	done
done
for version; do
	while (($(jobs -rp | wc -l) >= at_once)); do
		wait -n
	done
	run "$version" >"$work/$version.said" &
done
wait
for version; do
	cat "$work/$version.said"
done
awk '/^flake / { sub("kernel/", "", $2); flaky = flaky " " $2 } /^[0-9]/ { p += $1; f += $2; s += $3 }
	END { printf "vm tests: %d passed, %d failed, %d skipped%s\n", p, f, s, flaky ? "; flaky:" flaky : ""; exit f > 0 }' "$work/counts"
status=$?
cat "$work/counts" >>"$counts"
exit $status
