#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The short form of `make judge`: at thousands of random stops of other programs, hearth's walk finds what libdwfl finds, or
# what the programs' own returns say.
. "$TOP/tests/system/lib.sh"

build=$(dirname "$HEARTH")
[ -x "$build/judge/judge" ] || skip "the judge is not built (make judge-bin)"
"$TOP/tests/judge/run.sh" "$build" short || fail "see above; tests/judge/differences.txt holds what is known"
