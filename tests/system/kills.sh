#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Either half of hearth is killed twice, under load, while another sends: tests/halves/kills.sh, which make kills KILLS=30 runs for longer.
# Alone: it puts every CPU under load.
. "$TOP/tests/system/lib.sh"
need_bpf
"$TOP/tests/halves/kills.sh" "$(dirname "$HEARTH")" 2 || fail "see above"
