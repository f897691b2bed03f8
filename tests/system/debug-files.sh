#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Programs whose only unwind tables were moved into separate debug files: their stacks are complete where the debug file lies in
# one of its places (by build id, by .gnu_debuglink; ours and a chroot's), and are not where it is absent or of another build.
. "$TOP/tests/system/lib.sh"
need_bpf
if [ -z "${IN_NAMESPACE:-}" ]; then # a /usr/lib/debug of our own
	unshare -m true 2>/dev/null || skip "no mount namespaces here"
	made=$(mkdir -v /usr/lib/debug 2>/dev/null) || :
	status=0
	IN_NAMESPACE=1 unshare -m "$0" || status=$?
	[ -z "$made" ] || rmdir /usr/lib/debug
	exit $status
fi
mount -t tmpfs debug-files /usr/lib/debug

flags="-O2 -fomit-frame-pointer -g -fno-asynchronous-unwind-tables -fno-unwind-tables -rdynamic"
salt=0

# program FOLDER NAME OPTION...: FOLDER/NAME without, NAME.debug with debug information; another build each time
program() {
	local at=$1/$2
	local name=$2
	shift 2
	salt=$((salt + 1))
	mkdir -p "$(dirname "$at")"
	# shellcheck disable=SC2086 # the flags are a list
	"${CC:-gcc}" $flags "$@" -DSALT=$salt -o "$at" "$TOP/tests/truth/debug_chain.c"
	objcopy --only-keep-debug "$at" "$name.debug"
	strip "$at"
}

# by_id NAME PROGRAM ROOT: the debug file NAME.debug to where PROGRAM's build id leads
by_id() {
	local id
	id=$(readelf -n "$2" | sed -n 's/.*Build ID: //p')
	mkdir -p "$3/usr/lib/debug/.build-id/${id:0:2}"
	mv "$1.debug" "$3/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug"
}

# by_link NAME PROGRAM FOLDER: its name and checksum into PROGRAM, the file into FOLDER
by_link() {
	objcopy --add-gnu-debuglink="$1.debug" "$2"
	mkdir -p "$3"
	[ "$3" = . ] || mv "$1.debug" "$3/"
}

here=$(pwd -P)
no_id=-Wl,--build-id=none
program . id
by_id id id ''
program . link $no_id
by_link link link .
program . link_dot $no_id
by_link link_dot link_dot .debug
program . link_far $no_id
by_link link_far link_far "/usr/lib/debug$here"
program jail jail_id
by_id jail_id jail/jail_id jail
program jail/bin jail_link $no_id
by_link jail_link jail/bin/jail_link jail/usr/lib/debug/bin
program jail jail_our_id
by_id jail_our_id jail/jail_our_id ''
ldd jail/jail_id | grep -o '/[^ ]*' | while read -r library; do cp -L --parents "$library" jail; done
# What must not be believed: nothing there, another build under the same id, another checksum, a link out of the chroot.
program . absent
program . other_build
by_id absent other_build ''
program . other_sum $no_id
by_link other_sum other_sum .
printf x >>other_sum.debug
program jail/bin out_of_jail $no_id
by_link out_of_jail jail/bin/out_of_jail "$here/outside"
ln -s "$here/outside/out_of_jail.debug" jail/bin/out_of_jail.debug

good=(id link link_dot link_far jail_id jail_link jail_our_id)
bad=(absent other_build other_sum out_of_jail)
start_record all.otlp -F 499
running=()
for name in "${good[@]}" "${bad[@]}"; do
	if [ -e "$name" ]; then
		start "$name.out" "./$name" 2
	else
		start "$name.out" chroot jail "$(find jail -name "$name" -printf '/%P')" 2
	fi
	running+=("$started")
	[ ${#running[@]} -lt 2 ] || { wait "${running[@]}" && running=(); }
done
[ ${#running[@]} = 0 ] || wait "${running[@]}"
stop "$recorder"
cat record.out.err
accounted record.out.err
"$HEARTH" report all.otlp --format folded >folded
mkdir said
for name in "${good[@]}" "${bad[@]}"; do
	mv "$name.out" "said/$name"
done
# On a busy machine the first samples of a process may leave without their stack; what is not found is cut in all of them.
judge --only-names --min 95 --least 100 all.otlp "${good[@]/#/said/}"
for name in "${bad[@]}"; do
	n=$(awk -v comm="$name" -F';' '$1 == comm && !/main/ && /leaf/ { sub(/.* /, ""); sum += $0 } END { print sum + 0 }' folded)
	whole=$(awk -v comm="$name" -F';' '$1 == comm && /main.*leaf/ { sub(/.* /, ""); sum += $0 } END { print sum + 0 }' folded)
	echo "$name: $n samples cut, $whole whole"
	[ "$n" -ge 100 ] && [ "$whole" = 0 ] || fail "$name: a debug file was believed that is not its own, or there is no sample"
done
