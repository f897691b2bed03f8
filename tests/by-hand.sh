# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # build is the caller's
# Sourced by scripts of tests/*/ that are run by hand, or by a system test: from here on they stand in an empty folder, $here, with what a
# system test has of the build folder $build; at their end that folder goes, and all that they started.
TOP=$(readlink -f "$(dirname "${BASH_SOURCE[0]}")/..")
export HEARTH=$build/hearth TRUTH=$build/truth TOP HEARTH_CONFIG=/dev/null
here=$(mktemp -d)
cd "$here" || exit 1
. "$TOP/tests/system/lib.sh"
trap 'for pid in "${pids[@]}"; do kill -KILL "$pid" 2>/dev/null || :; done; cd /; rm -rf "$here"' EXIT
