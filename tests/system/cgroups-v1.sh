#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# --cgroup and --container in the trees of control groups of version 1, on hosts that have any: which processes are sampled.
. "$TOP/tests/system/lib.sh"
need_bpf

# of_type v1|named: where such a tree is mounted
of_type() {
	awk -v want="$1" '$3 == "cgroup" && ($4 ~ /name=/ ? "named" : "v1") == want && $4 !~ /cpuset/ { print $2; exit }' /proc/mounts
}
tree=$(of_type v1)
if [ -z "$tree" ]; then
	# A controller that version 2 does not use, if the kernel has version 1 at all.
	mkdir tree
	mount -t cgroup -o net_prio none tree 2>/dev/null || mount -t cgroup -o freezer none tree 2>/dev/null || skip "no control groups of version 1 here"
	tree=$PWD/tree
fi
group=$tree/hearth-v1-$$ id=$(printf '%064x' $$)
mkdir "$group" || skip "no control groups of version 1 that can be written to"
mkdir "$group/below" "$group/$id"
# shellcheck disable=SC2064
trap "for pid in \"\${pids[@]}\"; do kill -KILL \"\$pid\" 2>/dev/null || :; done; sleep 0.2
	rmdir '$group/below' '$group/$id' '$group' || :; [ ! -d tree ] || umount tree" EXIT

start one.out dash -c 'while :; do :; done'
one=$started
start two.out dash -c 'while :; do :; done'
two=$started
start other.out dash -c 'while :; do :; done'
other=$started
echo "$one" >"$group/below/cgroup.procs"
echo "$two" >"$group/$id/cgroup.procs"

# sees WHAT PID... -- OPTION...: exactly these processes are sampled
sees() {
	local want got what=$1
	shift
	want=$(while [ "$1" != -- ]; do echo "$1"; shift; done | sort)
	while [ "$1" != -- ]; do shift; done
	shift
	"$HEARTH" record -q -F 499 -d 0.5 -o x.otlp --symbols off "$@" 2>err || fail "$what: $(cat err)"
	"$HEARTH" convert x.otlp x.perf.txt 2>/dev/null || fail "convert"
	got=$(perl -ne 'print "$1\n" if /^\S.*?\s+(\d+)\/\d+\s+\[\d+\]/' x.perf.txt | sort -u)
	[ "$got" = "$want" ] || fail "$what: $got, not $want"
	echo "ok $what"
}
sees 'a path with its mount' "$one" "$two" -- -G "$group"
sees 'a path without it' "$one" -- -G "hearth-v1-$$/below"
sees 'a container' "$two" -- --container "$id"
sees 'two of them' "$one" "$two" -- --container "$id" -G "$group/below"

status=0
"$HEARTH" record -q -d 0.1 -G "hearth-v1-$$/nothing" -o no.otlp 2>err || status=$?
[ $status != 0 ] && grep -q "control group.*hearth-v1-$$/nothing" err || fail "a group that is not there: $(cat err)"
named=$(of_type named)
if [ -n "$named" ]; then
	status=0
	"$HEARTH" record -q -d 0.1 -G "$named" -o no.otlp 2>err || status=$?
	[ $status != 0 ] && grep -q "below $named have no controller" err || fail "a tree without controllers: $(cat err)"
fi
for pid in $one $two; do echo "$pid" >"$tree/cgroup.procs"; done
