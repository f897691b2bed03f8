#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The names of some thousand random addresses against llvm-symbolizer's; `make symbols-truth` does it with 100,000.
. "$TOP/tests/system/lib.sh"
status=0
"$TOP/tests/symbols/run.sh" "$(dirname "$HEARTH")" short || status=$?
[ $status != 77 ] || skip "no llvm-symbolizer here"
[ $status = 0 ] || fail "names or lines are wrong"
