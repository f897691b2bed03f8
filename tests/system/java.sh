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

for way in "-Xmx200m" "-Xint --no-bpf-loop"; do
	read -r option form <<<"$way"
	# shellcheck disable=SC2086 # there may be none
	start_record x.otlp $form -F 499 --report-interval 500ms -p $$ # and its children
	"$java" "$option" -cp classes Calls "$TOP/tests/script/Calls.java" 5 >truth
	stop "$recorder"
	accounted record.out.err
	judge_scripts --min 99.5 --least 200 --without 100000 --loop NONE --complete 97 --file Calls.java x.otlp java jvm truth
	"$HEARTH" report x.otlp --format folded >folded
	for name in main down useShapes spin allocating; do
		grep -q "Calls.$name[; ]" folded || fail "$option: Calls.$name is in no stack"
	done
	! grep -q "JavaMain;.*\[JIT code\].*Calls.main" folded || fail "$(grep 'JIT code' folded | head -3)"
done
