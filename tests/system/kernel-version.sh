#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A kernel that says it is too old (uname(2) under the personality UNAME26 says 2.6.N): refused with its version and a way on, which
# works where the kernel can do what is needed all the same.
. "$TOP/tests/system/lib.sh"
need_bpf
old() { setarch --uname-2.6 "$@"; }
old true 2>/dev/null || skip "no setarch that changes uname"
version=$(old uname -r)

! old "$HEARTH" record -d 1 -o x.otlp 2>err || fail "Linux $version was taken"
grep -q "Linux $version is too old: hearth needs .* or newer; --no-version-check" err || fail "says: $(cat err)"
[ ! -e x.otlp ] && [ ! -e x.otlp.part ] || fail "leaves a file"
! old "$HEARTH" check >out 2>&1 || fail "check takes Linux $version: $(cat out)"
grep -qE "^no +kernel .* or newer: $version" out || fail "check: $(cat out)"

start chain "$TRUTH/c_chain" 20 # an idle machine may have no sample
old "$HEARTH" record -F 99 -d 1 --no-version-check -o x.otlp 2>err || fail "--no-version-check: $(cat err)"
accounted err
HEARTH_NO_VERSION_CHECK=yes old "$HEARTH" record -F 99 -d 1 -o y.otlp 2>err || fail "the variable: $(cat err)"
old "$HEARTH" check --no-version-check >out 2>&1 || fail "check --no-version-check: $(cat out)"
grep -qE "^partly +kernel .* or newer: $version" out || fail "check --no-version-check: $(cat out)"
echo "all as it should be"
