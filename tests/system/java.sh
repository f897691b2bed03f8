#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The methods of Java programs in stacks, compiled, interpreted and inlined: each sample of a program that calls in every way there is,
# judged by what the program says of itself; of one that is gone when its profile is made. Debian's own JDK here, others by
# `make runtimes`.
. "$TOP/tests/system/lib.sh"
need_bpf
case $(uname -m) in x86_64 | aarch64) ;; *) skip "frames of HotSpot are not known for this CPU" ;; esac
java=$(readlink -e /usr/bin/java) && javac=$(readlink -e /usr/bin/javac) || skip "no JDK here (openjdk-17-jdk-headless)"
mkdir classes
"$javac" --release 8 -nowarn -d classes "$TOP/tests/script/Calls.java" 2>javac.err || fail "$(cat javac.err)"

# judged LEAST: the verdict on x.otlp
judged() {
	local status=0
	python3 "$TOP/tests/script/judge.py" --min 99.5 --least "$1" --without 100000 --loop NONE --file Calls.java x.otlp java jvm truth ||
		status=$?
	[ $status != 77 ] || skip "no Python with protobuf here"
	[ $status = 0 ] || fail "stacks are wrong"
}

# complete PART: at least so many percent of the stacks of java reached their root
complete() {
	"$HEARTH" report x.otlp --format truth >truth.report
	local part
	part=$(awk '$NF == "java" || $6 == "java" { sub(/%/, "", $2); print int($2); exit }' truth.report)
	[ -z "$part" ] || [ "$part" -ge "$1" ] || fail "$part % of stacks are complete: $(cat truth.report)"
}

for way in "-Xmx200m" "-Xint --no-bpf-loop"; do
	read -r option form <<<"$way"
	# shellcheck disable=SC2086 # there may be none
	start_record x.otlp $form -F 499 --report-interval 500ms -p $$ # and its children
	"$java" "$option" -cp classes Calls "$TOP/tests/script/Calls.java" 5 >truth
	stop "$recorder"
	accounted record.out.err
	judged 200
	complete 97
	"$HEARTH" report x.otlp --format folded >folded
	for name in main down useShapes spin allocating; do
		grep -q "Calls.$name[; ]" folded || fail "$option: Calls.$name is in no stack"
	done
	! grep -q "JavaMain;.*\[JIT code\].*Calls.main" folded || fail "$(grep 'JIT code' folded | head -3)"
done
