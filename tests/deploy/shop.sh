#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Sourced after api.sh, as root with podman, kubectl and busybox: a real container, and what the API server knows of it.
#   shop_begin NAME           a folder for the test, work; with the script ends what was started: hearth, relay, the container, the server.
#                             It skips, and says so, where something is missing
#   shop_container FOLDER     one that is busy, below FOLDER: sets id and pid
#   shop_objects NODE         a Deployment `cart` with its ReplicaSet in the namespace shop; the manifests' account
#   shop_pod NAME             a pod of it on NODE, with the container in its status
#   shop_token FOLDER         a token of the manifests' account, and the server's certificate, as the kubelet writes them
#   fail MESSAGE              says it and ends the script
# shellcheck shell=bash
podman=() hearth='' relay=''

fail() {
	echo "FAILED: $*"
	exit 1
}

shop_begin() {
	shop_needs
	work=$(mktemp -d "/var/tmp/hearth-$1.XXXXXX")
	chmod 755 "$work"
	trap shop_finish EXIT
}

shop_finish() {
	[ -z "$hearth" ] || kill -KILL "$hearth" 2>/dev/null || :
	[ -z "$relay" ] || kill "$relay" 2>/dev/null || :
	shop_end
	api_stop
	rm -rf --one-file-system "$work" 2>/dev/null || :
}

shop_needs() {
	[ "$(id -u)" = 0 ] && command -v podman >/dev/null && command -v kubectl >/dev/null && command -v busybox >/dev/null && return
	echo "needs root, podman, kubectl and busybox"
	exit 77
}

shop_container() {
	local folder=$1
	podman=(podman --root "$folder/podman" --runroot "$folder/podman-run" --tmpdir "$folder/podman-tmp" --cgroup-manager cgroupfs --runtime runc
		--events-backend none)
	mkdir -p "$folder/root/bin"
	cp "$(command -v busybox)" "$folder/root/bin/busybox"
	ln -s busybox "$folder/root/bin/sh"
	tar -C "$folder/root" -c . | "${podman[@]}" import -q - worker:1 >/dev/null
	id=$("${podman[@]}" run -d --network none --ulimit nofile=10000:10000 --ulimit nproc=1000:1000 worker:1 /bin/sh -c 'while :; do :; done')
	pid=$("${podman[@]}" inspect -f '{{.State.Pid}}' "$id")
}

shop_end() {
	[ ${#podman[@]} -gt 0 ] || return 0
	"${podman[@]}" kill --all >/dev/null 2>&1 || :
	"${podman[@]}" rm --all --force >/dev/null 2>&1 || :
	umount "${podman[2]}"/* 2>/dev/null || :
}

shop_objects() {
	shop_node=$1
	kubectl create namespace hearth >/dev/null
	kubectl kustomize deploy/kubernetes/base | kubectl apply -f - >/dev/null
	kubectl create namespace shop >/dev/null
	kubectl label namespace shop team=blue >/dev/null
	local template='{ metadata: { labels: { app: cart } }, spec: { containers: [{ name: app, image: "cart:7" }] } }' deployment
	kubectl -n shop apply -f - >/dev/null <<-END
		apiVersion: apps/v1
		kind: Deployment
		metadata: { name: cart, labels: { tier: back } }
		spec: { selector: { matchLabels: { app: cart } }, template: $template }
	END
	deployment=$(kubectl -n shop get deployment cart -o 'jsonpath={.metadata.uid}')
	kubectl -n shop apply -f - >/dev/null <<-END
		apiVersion: apps/v1
		kind: ReplicaSet
		metadata: { name: cart-5d9, ownerReferences: [{ apiVersion: apps/v1, kind: Deployment, name: cart, uid: $deployment, controller: true }] }
		spec: { selector: { matchLabels: { app: cart } }, template: $template }
	END
	shop_set=$(kubectl -n shop get replicaset cart-5d9 -o 'jsonpath={.metadata.uid}')
}

shop_pod() {
	kubectl -n shop apply -f - >/dev/null <<-END
		apiVersion: v1
		kind: Pod
		metadata:
		  name: $1
		  labels: { app: cart, tier: back, app.kubernetes.io/version: v7.1 }
		  annotations: { resource.opentelemetry.io/deployment.environment.name: staging }
		  ownerReferences: [{ apiVersion: apps/v1, kind: ReplicaSet, name: cart-5d9, uid: $shop_set, controller: true }]
		spec: { nodeName: $shop_node, automountServiceAccountToken: false, containers: [{ name: app, image: "cart:7" }] }
	END
	kubectl -n shop patch pod "$1" --subresource=status --type=merge -p "{\"status\":{\"phase\":\"Running\",\"startTime\":\"2026-01-02T03:04:05Z\",\"podIP\":\"10.9.8.7\",\"podIPs\":[{\"ip\":\"10.9.8.7\"}],\"containerStatuses\":[{\"name\":\"app\",\"image\":\"cart:7\",\"imageID\":\"cart@sha256:$(printf x | sha256sum | cut -c 1-64)\",\"ready\":true,\"restartCount\":0,\"containerID\":\"containerd://$id\"}]}}" >/dev/null
}

shop_token() {
	mkdir -p "$1"
	chmod 755 "$1"
	kubectl -n hearth create token hearth --duration 10m >"$1/.token"
	chmod 600 "$1/.token" # as the kubelet does where a pod's user is root
	mv "$1/.token" "$1/token"
	cat "$kubeconfig_folder/certs/apiserver.crt" >"$1/ca.crt"
	printf hearth >"$1/namespace"
}
