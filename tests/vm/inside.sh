#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs inside a test machine (see run-vm.sh): the checks pass, a recording loads every BPF object, the chain of a truth program
# comes out whole. Its last line tells the result.   inside.sh BUILD
set -eu
build=$1
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
cd "$work"

# A kernel that can lock up is refused, and taken when the user insists. Nothing else may be missing.
insist=
if ! "$build/hearth" check >check 2>&1; then
	cat check
	[ "$(sed -n 's/^no *//p' check | cut -d : -f 1)" = "safe reads of user memory" ] || {
		echo "hearth check: something is missing"
		exit 1
	}
	! "$build/hearth" record -d 1 -o refused.otlp 2>err || {
		echo "hearth record started on a kernel that hearth check calls unsafe"
		exit 1
	}
	insist=--unsafe-kernel
fi
"$build/hearth" record $insist -F 99 -d 7 -o vm.otlp 2>err &
recorder=$!
for _ in $(seq 100); do
	[ ! -e vm.otlp.part ] || break
	sleep 0.1
done
"$build/truth/c_chain" 4 >c_chain
wait $recorder || {
	status=$?
	cat err
	echo "hearth record: exit status $status"
	exit 1
}
cat err
status=0
"$here/../truth/check.py" --min 99 --least 30 vm.otlp c_chain >verdict || status=$?
cat verdict
sed -n 's/^ok *//p' verdict
exit $status
