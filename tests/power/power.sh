#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A power cut at N random moments of a store that is written, packed, pruned and closed: power.c writes down what reaches the disk in
# which order, power.py makes what may be left. By hand: make power; tests/system/store-power.sh has a few cuts.
#   power.sh BUILD [N [REQUESTS [SEED]]]
build=$(readlink -f "${1:?usage: power.sh BUILD [N [REQUESTS [SEED]]]}")
cuts=${2:-1000} requests=${3:-600} seed=${4:-$RANDOM}
unset HEARTH_ONE_PROCESS SUDO_USER SUDO_UID SUDO_GID
. "$(dirname "$0")/../by-hand.sh"
"${CC:-cc}" -shared -fPIC -O1 -o power.so "$TOP/tests/power/power.c" -ldl || skip "no C compiler here"
logged() {
	POWER_LOG=$PWD/log POWER_FOLDER=$PWD/store LD_PRELOAD=$PWD/power.so exec "$@"
}
: >log
chmod 666 log
start served logged "$HEARTH" serve --grpc-address off --http-address 127.0.0.1:0 --store "$PWD/store" --keep-free 0
server=$started
until_true 20 grep -q 'page at http' served.err || fail "no page: $(cat served.err)"
url=$(sed -n 's/.*page at \(http:[^ ]*\)\/.*/\1/p' served.err)
"$TOP/tests/power/power.py" send "$url" log acks "$requests" || fail "a request is not taken: $(cat served.err)"
stop "$server"
[ -s log ] || fail "nothing was written down"
echo "seed $seed"
"$TOP/tests/power/power.py" judge log acks left "$cuts" "$seed" "$HEARTH" || fail "a power cut at such a moment loses what was flushed, or leaves a damaged store"
