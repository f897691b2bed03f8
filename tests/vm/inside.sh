#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs inside a test machine (see run-vm.sh): the checks pass, a recording loads every BPF object, the chain of a truth program
# comes out whole. Its last line tells the result.   inside.sh BUILD
set -eu
build=$1
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
cd "$work"

"$build/hearth" check || {
	echo "hearth check: exit status $?"
	exit 1
}
"$build/hearth" record -F 99 -d 7 -o vm.otlp 2>err &
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
"$build/hearth" report vm.otlp --format folded >folded
status=0
"$here/../truth/check.py" --min 99 --least 100 folded c_chain >verdict || status=$?
cat verdict
sed -n 's/^ok *//p' verdict
exit $status
