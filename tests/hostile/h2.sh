#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Attacks on HTTP/2, frame by frame (h2_attacks.py), on a `hearth serve` with a store, of whichever build; a second one has room for 40
# connections. By hand, for SECONDS of random sessions, over TLS as well: make h2; tests/system/h2.sh has a moment of it.
#   h2.sh BUILD [SECONDS [OPTION...]]      options of h2_attacks.py
build=$(readlink -f "${1:?usage: h2.sh BUILD [SECONDS [OPTION...]]}")
seconds=${2:-60}
options=("${@:3}")
unset HEARTH_ONE_PROCESS SUDO_USER SUDO_UID SUDO_GID
. "$(dirname "$0")/../by-hand.sh"
ulimit -n 8192
most_mb=64
if grep -q __asan_init "$HEARTH"; then # what was freed is kept for a while, so that its use is seen
	export ASAN_OPTIONS=quarantine_size_mb=16:detect_leaks=1 UBSAN_OPTIONS=print_stacktrace=1
	most_mb=400
fi

# serve NAME OPTION...: appends its pid, URL and port of gRPC to $place
serve() {
	local name=$1
	start "$name" "$HEARTH" serve --http-address 127.0.0.1:0 --grpc-address 127.0.0.1:0 --store "$name.store" --keep-free 0 "${@:2}"
	servers+=("$started")
	until_true 30 grep -q 'page at http' "$name.err" || fail "no page: $(cat "$name.err")"
	place=("$started" "$(sed -n 's/.*page at \(https*:[^ ]*\)\/.*/\1/p' "$name.err")"
		"$(sed -n 's/.*on grpcs*:\/\/[^ ]*:\([0-9]*\) .*/\1/p' "$name.err" | head -n 1)")
}

# attack NAME SECONDS OPTION...: of servers that are started with OPTION
attack() {
	local wide narrow pid
	servers=()
	serve "$1" "${@:3}"
	wide=("${place[@]}")
	serve "$1-narrow" --max-connections 40 "${@:3}"
	narrow=("${place[@]}")
	"$TOP/tests/hostile/h2_attacks.py" "${wide[@]}" --narrow "${narrow[@]}" --seconds "$2" --most-mb $most_mb "${options[@]}" || {
		for pid in "${servers[@]}"; do
			kill -0 "$pid" 2>/dev/null || wait "$pid" || echo "a server ended with status $?"
		done
		fail "$1: see above; $(tail -n 40 "$1.err" "$1-narrow.err")"
	}
	for pid in "${servers[@]}"; do
		stop "$pid"
	done
	! grep -hE 'Sanitizer|runtime error' "$1.err" "$1-narrow.err" || fail "$1: see above"
	for store in "$1.store" "$1-narrow.store"; do
		"$HEARTH" store verify --store "$store" >verify.out 2>&1 || fail "$1: $(cat verify.out)"
	done
}
attack plain "$seconds"
if [ "$seconds" -ge 60 ]; then
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout key -out crt -days 2 -subj /CN=localhost 2>/dev/null || skip "no openssl here"
	attack tls $((seconds / 2)) --tls-cert crt --tls-key key
fi
