#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The image in docker and podman: loaded, started with the capabilities that docs/containers.md names, and its stacks judged. Daemons are own ones,
# with their folders in a temporary place.
#   usage: tests/packages/containers.sh BUILD IMAGE.tar
set -euo pipefail
build=$(realpath "${1:?usage: containers.sh BUILD IMAGE.tar}")
image=$(realpath "$2")
cd "$(dirname "$0")/../.."
[ "$(id -u)" = 0 ] || { echo "  left out: containers: needs root"; exit 0; }
work=$(mktemp -d /var/tmp/hearth-containers.XXXXXX)
daemon=''
finish() {
	if [ -n "$daemon" ]; then
		kill "$daemon" 2>/dev/null || :
		wait "$daemon" 2>/dev/null || :
	fi
	umount "$work"/docker/* "$work"/podman/* 2>/dev/null || :
	rm -rf --one-file-system "$work"
}
trap finish EXIT
fail() {
	echo "FAILED: $*"
	exit 1
}
caps=(--cap-drop ALL)
for name in SYS_ADMIN SYS_PTRACE SYSLOG DAC_READ_SEARCH SETUID SETGID CHOWN; do caps+=(--cap-add "$name"); done
# Limits that a daemon without CAP_SYS_RESOURCE may set.
limits=(--ulimit nofile=10000:10000 --ulimit nproc=1000:1000)

# judged RUN...: RUN with hearth's arguments behind records this machine's programs
judged() {
	local name pids=() list
	rm -rf "$work/told" "$work/out"
	mkdir -p "$work/told" "$work/out"
	for name in c_chain cpp_chain; do
		nice "$build/truth/$name" 7 >"$work/told/$name" &
		pids+=("$!")
	done
	list=$(IFS=,; echo "${pids[*]}")
	"$@" record -F 499 -d 2 -p "$list" -o /out/x.otlp 2>"$work/err" || fail "$1: $(cat "$work/err")"
	wait "${pids[@]}"
	grep -v "^hearth: sampling" "$work/err" | sed 's/^/    /'
	PATH=$build:$PATH tests/truth/check.py --known tests/truth/known --least 20 --slack 2 "$work/out/x.otlp" "$work"/told/* | sed 's/^/  /' ||
		fail "stacks are not true in $1"
}

if command -v dockerd >/dev/null && command -v docker >/dev/null; then
	echo "image, docker"
	dockerd --data-root "$work/docker" --exec-root "$work/docker-exec" --pidfile "$work/docker.pid" --iptables=false --bridge=none \
		--storage-driver=overlay2 --exec-opt native.cgroupdriver=cgroupfs -H "unix://$work/docker.sock" >"$work/dockerd.log" 2>&1 &
	daemon=$!
	docker=(docker -H "unix://$work/docker.sock")
	for _ in $(seq 100); do "${docker[@]}" info >/dev/null 2>&1 && break || sleep 0.2; done
	"${docker[@]}" info >/dev/null 2>&1 || fail "dockerd: $(tail -n 3 "$work/dockerd.log")"
	# Older ones read no OCI layouts: podman or skopeo would turn it into theirs; its layer is all there is in it.
	if ! "${docker[@]}" load -q -i "$image" >"$work/log" 2>&1; then
		echo "    this docker reads no OCI layouts: its root is imported"
		mkdir "$work/root"
		python3 tests/packages/image.py "$image" "$work/root" "$(dpkg --print-architecture)" >/dev/null
		tar -C "$work/root" -c . | "${docker[@]}" import -c 'ENTRYPOINT ["/opt/hearth/bin/hearth"]' - hearth:test >/dev/null
	else
		"${docker[@]}" tag "$(sed -n 's/^Loaded image\( ID\)\?: //p' "$work/log" | head -n 1)" hearth:test
	fi
	judged "${docker[@]}" run --rm --pid=host --network none "${caps[@]}" "${limits[@]}" --security-opt seccomp=unconfined -v "$work/out:/out" hearth:test
	kill "$daemon"
	wait "$daemon" 2>/dev/null || :
	daemon=''
else
	echo "  left out: docker"
fi
if command -v podman >/dev/null; then
	echo "image, podman"
	podman=(podman --root "$work/podman" --runroot "$work/podman-run" --tmpdir "$work/podman-tmp" --cgroup-manager cgroupfs --runtime runc --events-backend none)
	name=$("${podman[@]}" load -q -i "$image" 2>"$work/err" | sed -n 's/^Loaded image[^:]*: *//p' | head -n 1)
	[ -n "$name" ] || fail "podman load: $(cat "$work/err")"
	[ "$("${podman[@]}" image inspect -f '{{index .Labels "org.opencontainers.image.title"}}' "$name")" = hearth ] || fail "podman: labels"
	judged "${podman[@]}" run --rm --pid=host --network none "${caps[@]}" "${limits[@]}" --security-opt seccomp=unconfined -v "$work/out:/out" "$name"
	"${podman[@]}" rmi -f "$name" >/dev/null 2>&1 || :
else
	echo "  left out: podman"
fi
