#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Collectors behind proxies: a name that only the proxy knows, over HTTP, a tunnel (TLS, gRPC with and without it) and SOCKS5, as
# http_proxy and its like or --collector-proxy say; and past the proxy where no_proxy says so. All that was sent
# arrived, by the right way. Needs no BPF.
. "$TOP/tests/system/lib.sh"
unset http_proxy https_proxy all_proxy no_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY

openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout key -out cert -days 2 -subj /CN=collector \
	-addext subjectAltName=DNS:collector.test 2>openssl.log || fail "openssl makes no certificate: $(cat openssl.log)"

# listening FILE WORD: the port behind WORD://127.0.0.1: in FILE
listening() {
	until_true 10 grep -q "$2://127" "$1" || fail "does not listen: $(cat "$1")"
	sed -nE "s|.*$2://127[^ ]*:([0-9]+).*|\1|p" "$1" | head -n 1
}

start plain "$HEARTH" serve --page-name collector.test --http-address 127.0.0.1:0 --grpc-address 127.0.0.1:0 --sink file=plain.framed
start tls "$HEARTH" serve --page-name collector.test --http-address 127.0.0.1:0 --grpc-address 127.0.0.1:0 --sink file=tls.framed --tls-cert cert --tls-key key
start proxy python3 -u "$TOP/tests/system/proxy.py"
until_true 10 grep -q '^port' proxy || fail "the proxy did not start: $(cat proxy.err)"
proxy=127.0.0.1:$(sed -n 's/^port //p' proxy)
http=$(listening plain.err http) grpc=$(listening plain.err grpc) https=$(listening tls.err https) grpcs=$(listening tls.err grpcs)

for events in 1 2 3; do
	python3 - $events >request.$events <<-'PYTHON'
		import sys
		def field(number, data):
		    return bytes([number << 3 | 2, len(data)]) + data
		sample = field(5, b"".join((1758603335000000000 + i).to_bytes(8, "little") for i in range(int(sys.argv[1]))))
		tables = b"".join(field(table, b"") for table in (1, 2, 3, 4, 5, 6, 7))
		sys.stdout.buffer.write(field(1, field(2, field(2, field(2, sample)))) + field(2, tables))
	PYTHON
done

# arrived FILE: events in it, counted from its bytes
arrived() {
	PYTHONPATH=$TOP/tests/unit/sinks python3 - "$1" <<-'PYTHON'
		import sys
		from collector import count_events
		total = 0
		with open(sys.argv[1], "rb") as f:
		    while head := f.read(4):
		        total += count_events(f.read(int.from_bytes(head, "big")))
		print(total)
	PYTHON
}

# ships NAME SERVER ASKED URL [VARIABLE=VALUE | --OPTION VALUE]...: three requests go to URL, which is SERVER's; the proxy is asked
# for ASKED, or, where that is "", for nothing
ships() {
	local name=$1 server=$2 asked=$3 url=$4 before lines forwarder here
	local variables=() options=()
	shift 4
	while [ $# -gt 0 ]; do
		case $1 in
		--*) options+=("$1" "$2") && shift 2 ;;
		*) variables+=("$1") && shift ;;
		esac
	done
	before=$(arrived "$server.framed")
	lines=$(wc -l <proxy)
	start "$name" env "${variables[@]}" "$HEARTH" serve --http-address 127.0.0.1:0 --grpc-address off --collector "$url" \
		--collector-ca cert "${options[@]}"
	forwarder=$started
	here=$(listening "$name.err" http)
	for events in 1 2 3; do
		curl -fsS -m 20 -H 'Content-Type: application/x-protobuf' --data-binary @request.$events \
			"http://127.0.0.1:$here/v1development/profiles" || fail "$name: not taken: $(cat "$name.err" proxy)"
	done
	stop "$forwarder"
	[ "$(arrived "$server.framed")" = $((before + 6)) ] || fail "$name: $(($(arrived "$server.framed") - before)) of 6 events arrived"
	[ "$(tail -n "+$((lines + 1))" proxy | sort -u)" = "$asked" ] || fail "$name: the proxy was asked for: $(cat proxy)"
	echo "ok $name"
}

path=v1development/profiles dead=http://127.0.0.1:1
ships http plain "POST http://collector.test:$http/$path" "http://collector.test:$http" "http_proxy=http://$proxy"
ships option plain "POST http://collector.test:$http/$path" "http://collector.test:$http" --collector-proxy "http://$proxy" http_proxy=$dead
ships https tls "CONNECT collector.test:$https" "https://collector.test:$https" "https_proxy=http://$proxy" http_proxy=$dead
ships h2c plain "CONNECT collector.test:$grpc" "grpc://collector.test:$grpc" "http_proxy=http://$proxy" https_proxy=$dead
ships grpcs tls "CONNECT collector.test:$grpcs" "grpcs://collector.test:$grpcs" "https_proxy=http://$proxy" http_proxy=$dead
ships socks-http plain "SOCKS5 collector.test:$http" "http://collector.test:$http" "all_proxy=socks5h://$proxy"
ships socks-https tls "SOCKS5 collector.test:$https" "https://collector.test:$https" "all_proxy=socks5h://$proxy"
ships socks-h2c plain "SOCKS5 collector.test:$grpc" "grpc://collector.test:$grpc" "all_proxy=socks5h://$proxy"
ships no-proxy plain "" "http://127.0.0.1:$http" "http_proxy=$dead" "no_proxy=example.org,127.0.0.1"
ships no-proxy-grpc plain "" "grpc://127.0.0.1:$grpc" "http_proxy=$dead" "all_proxy=socks5h://127.0.0.1:1" "no_proxy=127.0.0.0/8"
