#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Power cuts at random moments of a store (tests/power): it is whole, and has all that was flushed. Needs no BPF.
. "$TOP/tests/system/lib.sh"
"$TOP/tests/power/power.sh" "$(dirname "$HEARTH")" 60 30 || fail "see above"
