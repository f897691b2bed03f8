#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The truth matrix (tests/truth/cells.sh), a short while of each cell, two at a time, below one recording of nothing else: every
# stack must be exact. tests/truth/matrix.sh is the long form of it.
. "$TOP/tests/system/lib.sh"
need_bpf
"$TOP/tests/truth/matrix.sh" --seconds 0.8 --least 40 "$HEARTH" "$TRUTH/matrix" . || fail "not every stack is exact"
