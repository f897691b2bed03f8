#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# In Docker's containers: with all capabilities and the host's pids, with the few that the documentation names, with less than
# that, without the host's pids, and with the host's /proc mounted. The daemon is one of its own, in the test's folder.
# The words of each container are shown.
. "$TOP/tests/system/lib.sh"
. "$TOP/tests/halves/table.sh"
need_bpf
PATH=$PATH:/usr/sbin
for tool in dockerd docker runc; do
	command -v $tool >/dev/null || skip "no $tool here (Debian: docker.io)"
done

daemon=
down() {
	[ -z "$daemon" ] || { kill "$daemon" 2>/dev/null && wait "$daemon" || :; }
	umount -l ./root/overlay2/*/merged 2>/dev/null || :
	for pid in "${pids[@]}"; do kill -KILL "$pid" 2>/dev/null || :; done
}
trap down EXIT
export DOCKER_HOST=unix://$PWD/docker.sock
# Without networks, and without a limit that it might not be allowed to set.
dockerd --data-root "$PWD/root" --exec-root "$PWD/exec" --pidfile "$PWD/docker.pid" -H "$DOCKER_HOST" --iptables=false --bridge=none \
	--exec-opt native.cgroupdriver=cgroupfs >dockerd.log 2>&1 </dev/null &
daemon=$!
until_true 30 docker info || skip "dockerd does not start here: $(tail -n 1 dockerd.log)"

# An image from scratch: hearth, a program, and the libraries that both ask for.
mkdir -p image/{tmp,proc,sys,dev,etc,usr/bin} out names
cp "$HEARTH" image/usr/bin/hearth
cp "$TRUTH/c_chain" image/usr/bin/inside
for file in $(ldd "$HEARTH" "$TRUTH/c_chain" | grep -oE '/[^ ]+' | grep -v ':$' | sort -u); do
	mkdir -p "image$(dirname "$file")"
	cp -L "$file" "image$file"
done
tar -C image -c . | docker import - hearth-test >/dev/null || fail "docker import"

# run OPTION... -- COMMAND...: a container that may run anywhere (fewer files and processes than Docker's own default)
run() {
	local options=()
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	shift
	docker run --rm --network none --ulimit nofile=10000:10000 --ulimit nproc=4096:4096 -v "$PWD/out:/out" -v "$PWD/names:/var/cache/hearth" "${options[@]}" hearth-test "$@"
}
run -- /usr/bin/hearth version >version 2>&1 || skip "containers do not start here: $(tail -n 1 version)"

# A program in a container of its own, and one on the host.
docker run -d --rm --name inside --network none --ulimit nofile=10000:10000 --ulimit nproc=4096:4096 hearth-test /usr/bin/inside 170 >/dev/null
cp "$TRUTH/recurse400" outside
start outside.out ./outside 170

caps() {
	local cap
	printf -- '--cap-drop ALL'
	for cap; do printf -- ' --cap-add %s' "$cap"; done
}
seven="SYS_ADMIN SYS_PTRACE SYSLOG DAC_READ_SEARCH SETUID SETGID CHOWN"
chain='main;f01;f02;.*;f33;leaf'
outside='^outside.*;main;.*down;down;.*;leaf'

# record NAME OPTION...: hearth record in a container; what it says is shown and in NAME.err. It records longer where 5 s were too
# few for both programs: a busy machine gives them, and the reading of their tables, little time.
record() {
	local name=$1 seconds
	shift
	for seconds in 5 30; do
		echo "--- $name, $seconds s: docker run $*"
		rm -f "out/$name.otlp"
		run "$@" -- /usr/bin/hearth record -F 99 -d $seconds --drain-timeout 30s -o "/out/$name.otlp" >"$name.err" 2>&1 ||
			fail "$name: $(cat "$name.err")"
		sed 's/^/    /' "$name.err"
		"$HEARTH" report "out/$name.otlp" --by process --format folded >"$name.folded"
		! grep -qE "^inside.*;$chain" "$name.folded" || { [ "$name" != own ] && ! grep -qE "$outside" "$name.folded"; } || break
	done
	grep -qE "^inside.*;$chain" "$name.folded" || fail "$name: no stack of the program in a container: $(cut -c 1-200 "$name.folded" | grep "^inside\|not in" | head)"
	"$HEARTH" report "out/$name.otlp" --by process | head -n 8 | cut -c 1-110 | sed 's/^/    /'
}
whole() {
	grep -qE "$outside" "$1.folded" || fail "$1: no stack of the host's program"
	! grep -q 'not in /proc' "$1.folded" || fail "$1: something is not in /proc"
}

record all --cap-add ALL --cap-drop SYS_RESOURCE --security-opt seccomp=unconfined --pid host
whole all

# shellcheck disable=SC2046,SC2086 # words
record seven $(caps $seven) --pid host
whole seven
! grep -q CAP_ seven.err || fail "seven: a capability is missing"
# shellcheck disable=SC2046,SC2086
run $(caps $seven) --pid host -- /usr/bin/hearth check >check 2>&1 || fail "check with seven: $(cat check)"
grep -q '^yes  *capabilities' check || fail "check with seven: $(cat check)"

# shellcheck disable=SC2046,SC2086
record four $(caps ${seven% SETUID*}) --pid host
whole four
grep -q 'CAP_SETUID or CAP_SETGID is missing' four.err || fail "four: nothing is said"

# Without the host's pids, beside the program in its container's namespace.
# shellcheck disable=SC2046,SC2086
record own $(caps $seven) --pid container:inside
grep -q 'a pid namespace of its own' own.err || fail "own: no hint"
grep -q '^\[not in /proc\]' own.folded || fail "own: nothing is outside"
! grep -qE '^outside|;down;' own.folded || fail "own: names from outside"

# And with the host's /proc.
# shellcheck disable=SC2046,SC2086
record mounted $(caps $seven) -v /proc:/host/proc:ro -e HOST_PROC=/host/proc
whole mounted

# Docker's file names the container, from the host.
test -e host || { mkdir -p host/var/lib && ln -s "$PWD/root" host/var/lib/docker; }
inside=$(docker inspect -f '{{.State.Pid}}' inside)
"$HEARTH" record -q -F 99 -d 2 --symbols off --rootfs "$PWD/host" -p "$inside" -o named.otlp 2>named.err || fail "named: $(cat named.err)"
"$HEARTH" report --format print named.otlp >named
for line in 'container.name: inside' 'container.image.name: hearth-test' 'container.image.tag: latest' 'service.name: inside'; do
	grep -qx "  $line" named || fail "named: no $line: $(grep -E 'container|service' named)"
done

docker kill inside >/dev/null

# The two halves in a container, under the engine's own filter of system calls, which is one more of each process; as the kernel has
# them from outside (docs/halves.md).   in_table ENGINE TO-START TO-ASK TO-REMOVE
in_table() {
	local pid
	echo "--- hearth run, $1, seven capabilities"
	mkdir -p "state-$1"
	# shellcheck disable=SC2046,SC2086 # words
	$2 -d --name halves --network none $(caps $seven) --pid host --ulimit nofile=10000:10000 --ulimit nproc=4096:4096 -v "$PWD/state-$1:/state" \
		hearth-test /usr/bin/hearth run -F 99 --http-address 127.0.0.1:0 --store /state/store >started 2>&1 || fail "$1: $(cat started)"
	pid=$($3 '{{.State.Pid}}' halves)
	has_backend() { pgrep -P "$(pgrep -P "$pid" -x hearth-keeper)" -x hearth-backend; }
	until_true 30 has_backend || fail "$1: no second half: $("$TOP/tools/process-table" "$pid")"
	table "$pid"
	of_seven
	for name in hearth hearth-open hearth-proc hearth-keeper hearth-elf; do
		awk -v name=$name '$1 == name && $4 < 2 { exit 1 }' processes || fail "$1: $name is not under its filter"
	done
	[ "$(stat -c %u "state-$1/store")" = "$(awk '$1 == "hearth-backend" { print $2 }' processes)" ] || fail "$1: whose store? $(ls -ln "state-$1")"
	$4 halves >/dev/null
}
in_table docker "docker run --rm" "docker inspect -f" "docker kill"
if command -v podman >/dev/null; then
	mkdir -p podman/{root,run,tmp}
	podman="podman --root $PWD/podman/root --runroot $PWD/podman/run --tmpdir $PWD/podman/tmp --cgroup-manager cgroupfs --runtime runc --events-backend none --storage-driver vfs"
	tar -C image -c . | $podman import -q - hearth-test >/dev/null || fail "podman import"
	in_table podman "$podman run" "$podman inspect -f" "$podman rm -f"
else
	left_out podman "no podman here"
fi
echo "all as it should be"
