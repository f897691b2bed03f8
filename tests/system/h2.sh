#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Attacks on HTTP/2, frame by frame, and a moment of sessions that are changed at random: tests/hostile/h2.sh, of which make h2 does more.
# Waits: for limits of time.
. "$TOP/tests/system/lib.sh"
"$TOP/tests/hostile/h2.sh" "$(dirname "$HEARTH")" 3 || fail "see above"
