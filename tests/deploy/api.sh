#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Sourced: a real API server with etcd on loopback, out of a folder with `kube-apiserver` in it; nothing else of Kubernetes.
#   api_start BINARIES FOLDER PORT      sets api_url, kubeconfig (of an administrator, whose token is admintoken) and api_pids
# shellcheck shell=bash

api_start() {
	local binaries=$1 folder=$2 port=$3
	api_port=$port
	mkdir -p "$folder"
	[ -x "$binaries/kube-apiserver" ] && command -v etcd >/dev/null && command -v openssl >/dev/null || return 77
	openssl genrsa -out "$folder/sa.key" 2048 2>/dev/null
	echo 'admintoken,admin,1,system:masters' >"$folder/tokens.csv"
	etcd --data-dir "$folder/etcd" --listen-client-urls "http://127.0.0.1:$((port + 1))" --advertise-client-urls "http://127.0.0.1:$((port + 1))" \
		--listen-peer-urls "http://127.0.0.1:$((port + 2))" --unsafe-no-fsync >"$folder/etcd.log" 2>&1 &
	api_pids=("$!")
	api_command=("$binaries/kube-apiserver" --etcd-servers "http://127.0.0.1:$((port + 1))" --bind-address 127.0.0.1 --secure-port "$port"
		--cert-dir certs --authorization-mode RBAC --service-account-issuer https://kubernetes.default --service-account-key-file sa.key
		--service-account-signing-key-file sa.key --token-auth-file tokens.csv --service-cluster-ip-range 10.0.0.0/24
		--allow-privileged=true --disable-admission-plugins ServiceAccount)
	kubeconfig_folder=$folder
	api_serve
	api_kubeconfig "$folder" "$port"
	for _ in $(seq 120); do
		[ "$(curl -sk -o /dev/null -w '%{http_code}' -H 'Authorization: Bearer admintoken' "$api_url/readyz")" = 200 ] && return 0
		sleep 0.5
	done
	tail -n 5 "$folder/api.log" >&2
	return 1
}

# api_kubeconfig FOLDER PORT: of an administrator of the server there
api_kubeconfig() {
	api_url=https://127.0.0.1:$2 kubeconfig=$1/kubeconfig
	cat >"$kubeconfig" <<-END
		apiVersion: v1
		kind: Config
		current-context: test
		clusters: [{ name: test, cluster: { server: "$api_url", insecure-skip-tls-verify: true } }]
		users: [{ name: admin, user: { token: admintoken } }]
		contexts: [{ name: test, context: { cluster: test, user: admin } }]
	END
}

# The server alone, again where it was ended: api_pids[1] is its process.
api_serve() {
	(cd "$kubeconfig_folder" && exec "${api_command[@]}" >>api.log 2>&1) &
	api_pids[1]=$!
}

# etcd forgets all versions but the last.
api_compact() {
	local at=(etcdctl --endpoints "http://127.0.0.1:$((api_port + 1))") version
	version=$(ETCDCTL_API=3 "${at[@]}" get / --prefix --limit 1 -w json | sed -n 's/.*"revision":\([0-9]*\).*/\1/p')
	[ -n "$version" ] && ETCDCTL_API=3 "${at[@]}" compact "$version" >/dev/null
}

api_stop() {
	[ ${#api_pids[@]} = 0 ] || kill "${api_pids[@]}" 2>/dev/null || :
	wait "${api_pids[@]}" 2>/dev/null || :
	api_pids=()
}
api_pids=()
