#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The truth matrix (tests/truth/cells.sh), a short while of each cell, two at a time, below one recording of nothing else: every
# stack must be exact but for one a cell, which other work on the machine may spoil (a page that is moved while it is read); it is
# shown. tests/truth/matrix.sh is the long form of it, without that.
# Alone: it takes every CPU.
. "$TOP/tests/system/lib.sh"
need_bpf
"$TOP/tests/truth/matrix.sh" --seconds 0.5 --least 40 --slack 1 "$HEARTH" "$TRUTH/matrix" . || fail "not every stack is exact"
