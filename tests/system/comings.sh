#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Files and processes that come and go, below one recording: each program's samples are judged one by one (tests/comings).
# Alone: it takes every CPU, for files and processes that are soon gone.
. "$TOP/tests/system/lib.sh"
need_bpf
"$TOP/tests/comings/build.sh" .

ms=1200
running=()

# go NAME COMMAND...: in the background; what it prints is the truth
go() {
	local name=$1
	shift
	start "$name.truth" "$@"
	running+=("$started")
}

# truth COMM NAME [EXECUTABLE]: what a build of part.c does under that name
truth() { echo "chain $1 ${3:-$1} main $2_outer $2_inner $2_leaf" >>parts.truth; }

# finish: until all that were started have ended
finish() {
	local pid status
	for pid in "${running[@]}"; do
		status=0
		wait "$pid" || status=$?
		[ $status = 0 ] || fail "a program ended with status $status: $(cat ./*.err)"
	done
	running=()
}

# A program and its copy in the upper layer of an overlay, where the kernel has one. The layers are on two file systems, so that
# inode numbers are not those of the layers' files. Tried before the recording: the trial ends within a millisecond, and its
# mounts with it.
mkdir -p layers/lower layers/top merged
cp lower layers/lower/app
# shellcheck disable=SC2016 # the inner shell's
in_overlay='mount -t tmpfs none layers/top && mkdir layers/top/upper layers/top/work &&
	mount -t overlay -o xino=on,lowerdir=layers/lower,upperdir=layers/top/upper,workdir=layers/top/work none merged &&
	{ merged/app "$0" & sleep 0.3; cp upper merged/new && mv merged/new merged/app && merged/app "$0"; wait $!; }'
has_overlay=
if grep -qw overlay /proc/filesystems && unshare --mount sh -c "$in_overlay" 1 >/dev/null 2>&1; then
	has_overlay=1
fi

# What runs already when the recording begins: a program and one whose file is gone, a thread without its leader, moved code.
truth removed removed
go removed ./removed 5000
go orphan ./orphan 5
go huge1 ./hugetext 4500 mremap
go huge2 ./hugetext 4500 mmap
sleep 0.5
rm removed
# The others on the machine are none of its business, and a loaded machine makes no difference.
start_record all.otlp -F 499 --report-interval 1s --ring-bytes 16M -p "$$,$(IFS=, && echo "${running[*]}")"
finish

# A program whose file is another one by now, and that one; a chain of programs; a shell that becomes a program.
truth replaced_old oldone replaced
truth replaced_new newone replaced
mv replaced_old replaced
go old ./replaced $((ms * 2))
sleep 0.2
mv replaced_new replaced
go new ./replaced $ms
truth chain_one partone
truth chain_two parttwo
truth chain_six partsix
go chain ./chain_one 500 ./chain_two 500 ./chain_six 500
go shell sh -c 'exec ./chain_one 300'
finish

# One path, three files: outside, in a mount namespace, below another root.
mkdir -p box "jail$PWD/box"
cp outside box/app
cp jailed "jail$PWD/box/app"
truth outside outside app
truth inside inside app
truth jailed jailed app
go outside box/app $ms
# shellcheck disable=SC2016 # the inner shell's
go inside unshare --mount --pid --fork sh -c 'mount -t tmpfs none box && cp inside box/app && exec box/app "$0"' $ms
go jailed chroot jail "$PWD/box/app" $ms
finish

go swarm ./swarm 3 ./mote mote 1
go orphan2 ./orphan 2
finish
go reopen ./reopen 5
go reuse ./reuse 4
finish
go huge3 ./hugetext $ms mremap
go huge4 ./hugetext $ms mmap
finish
go crowded ./crowded 4
truth memory memory memfd:program
go memfd ./memfd $ms ./libm.so ./memory
finish

if [ -n "$has_overlay" ]; then
	truth lower lower app
	truth upper upper app
	go overlay unshare --mount sh -c "$in_overlay" $ms
else
	echo "no overlay file system here: not tested"
fi
finish

# A file system that does not answer when hearth opens its file: the program and its neighbours are sampled all the same.
mkdir hung
# shellcheck disable=SC2016 # the inner shell's
start hanging.out unshare --mount --pid --fork --kill-child sh -c '"$0/hanging_fs.py" hung hanging & until [ -x hung/program ]; do sleep 0.1; done
	hung/program 2500; echo ended; wait' "$TOP/tests/comings"
server=$started
go swarm2 ./swarm 3 ./atom atom 1
finish
until_true 20 grep -q ended hanging.out || fail "the program of the hanging file system did not end"
stop "$recorder"
kill "$server" # ends what hangs in it
cat record.out.err
accounted record.out.err
"$HEARTH" report all.otlp --format print >printed
"$TOP/tests/comings/judge.py" printed ./*.truth
grep -q "hung/program: its file system does not answer\|map_files/.*does not answer" record.out.err ||
	fail "the hanging file system was not noticed"
n=$("$HEARTH" report all.otlp --format folded | awk -F'[; ]' '$1 == "hanging" { n += $NF } END { print n + 0 }')
echo "a program of the hanging file system: $n samples"
[ "$n" -ge 10 ] || fail "the program of the hanging file system has only $n samples"
