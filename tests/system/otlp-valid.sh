#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A capture read by protoc and Python's protobuf, which are not ours: no field outside the schema, every rule of the format kept.
. "$TOP/tests/system/lib.sh"
need_bpf
command -v protoc >/dev/null || skip "no protoc here"

start chain "$TRUTH/c_chain" 10
start threads "$TRUTH/threads" 10
start deep "$TRUTH/turns1500" 10 # whose stacks are cut and marked
"$HEARTH" record --error-frames -F 99 -d 8 --report-interval 1s -o valid.otlp >out 2>err || fail "exit status $?: $(cat err)"

# One run over all our schema files: the capture's message is found by name.
"$HEARTH" report valid.otlp --format folded | grep -q "stack truncated" || fail "no stack is marked"
schemas=("$TOP"/proto/opentelemetry/*.proto)
package=$(sed -n 's/^package \(.*\);/\1/p' "$(grep -l '^message ProfilesData' "${schemas[@]}")")
protoc -I "$TOP/proto/opentelemetry" --decode "$package.ProfilesData" "${schemas[@]##*/}" <valid.otlp >decoded 2>decode.err ||
	fail "protoc cannot read it: $(cat decode.err)"
unknown=$(grep -cE '^ *[0-9]+(:| \{)' decoded || :)
[ "$unknown" = 0 ] || fail "$unknown fields that the schema lacks: $(grep -nE '^ *[0-9]+(:| \{)' decoded | head -n 5)"

for python in python3 /usr/bin/python3 ''; do
	[ -n "$python" ] || skip "no Python with protobuf here"
	! "$python" -c 'import google.protobuf' 2>/dev/null || break
done
mkdir py
protoc -I "$TOP/proto/opentelemetry" --python_out=py "${schemas[@]}"
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=py "$python" "$TOP/tests/system/otlp_rules.py" "$package" valid.otlp
