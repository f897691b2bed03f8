#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Programs that cost whoever profiles them what they can, for a moment each: tests/hostile/neighbours.sh, which make neighbours runs for longer.
. "$TOP/tests/system/lib.sh"
need_bpf
command -v gcc >/dev/null || skip "no gcc here"
"$TOP/tests/hostile/neighbours.sh" "$(dirname "$HEARTH")" 3 || fail "see above"
