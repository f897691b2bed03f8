#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Clients that want too much (crowd.py), one kind after another for SECONDS each, of a `hearth serve` with TLS, a token and a store: an
# honest client is answered all the while, and the memory stays flat. By hand: make crowd.
#   crowd.sh BUILD [SECONDS [KIND...]]
build=$(readlink -f "${1:?usage: crowd.sh BUILD [SECONDS [KIND...]]}")
seconds=${2:-300}
kinds=("${@:3}")
[ ${#kinds[@]} != 0 ] || kinds=(clients slow nothing guesses handshakes)
unset HEARTH_ONE_PROCESS SUDO_USER SUDO_UID SUDO_GID
. "$(dirname "$0")/../by-hand.sh"
ulimit -n 8192
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout key -out crt -days 2 -subj /CN=crowd -addext subjectAltName=IP:127.0.0.1 2>/dev/null ||
	skip "no openssl here"
token=$(head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n')
echo "$token" >tokens
failures=()
for kind in "${kinds[@]}"; do
	rm -rf store
	start "$kind" "$HEARTH" serve --http-address 127.0.0.1:0 --grpc-address 127.0.0.1:0 --store store --tls-cert crt --tls-key key --token-file tokens
	server=$started
	until_true 20 grep -q 'page at http' "$kind.err" || fail "no page: $(cat "$kind.err")"
	url=$(sed -n 's/.*page at \(https:[^ ]*\)\/.*/\1/p' "$kind.err")
	grpc=$(sed -n 's/.*on grpcs:\/\/[^ ]*:\([0-9]*\) .*/\1/p' "$kind.err" | head -n 1)
	"$TOP/tests/hostile/crowd.py" "$kind" "$seconds" "$server" "$url" "${grpc:?$(cat "$kind.err")}" "$token" crt || failures+=("$kind")
	sleep 1
	curl -sk -m 20 -H "Authorization: Bearer $token" "$url/metrics" >metrics || failures+=("$kind: no metrics afterwards")
	grep -E '^hearth_(rejected|http_conn|guess|slow)[^ ]* [1-9]' metrics | head -n 8
	stop "$server"
done
[ ${#failures[@]} = 0 ] || fail "the honest client, or the memory, suffers: ${failures[*]}"
