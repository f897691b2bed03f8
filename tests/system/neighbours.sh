#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Programs that cost whoever profiles them what they can, three of six for a moment each: tests/hostile/neighbours.sh, of which make neighbours
# runs all for longer.
. "$TOP/tests/system/lib.sh"
need_bpf
command -v gcc >/dev/null || skip "no gcc here"
"$TOP/tests/hostile/neighbours.sh" "$(dirname "$HEARTH")" 3 remap threads jitdump || fail "see above"
