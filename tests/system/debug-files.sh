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
program . dbg_id
by_id dbg_id dbg_id ''
program . dbg_link $no_id
by_link dbg_link dbg_link .
program . dbg_link_dot $no_id
by_link dbg_link_dot dbg_link_dot .debug
program . dbg_link_far $no_id
by_link dbg_link_far dbg_link_far "/usr/lib/debug$here"
program jail dbg_jail_id
by_id dbg_jail_id jail/dbg_jail_id jail
program jail/bin dbg_jail_link $no_id
by_link dbg_jail_link jail/bin/dbg_jail_link jail/usr/lib/debug/bin
program jail dbg_jail_our_id
by_id dbg_jail_our_id jail/dbg_jail_our_id ''
ldd jail/dbg_jail_id | grep -o '/[^ ]*' | while read -r library; do cp -L --parents "$library" jail; done
# What must not be believed: nothing there, another build under the same id, another checksum, a link out of the chroot.
program . dbg_absent
program . dbg_other_build
by_id dbg_absent dbg_other_build ''
program . dbg_other_sum $no_id
by_link dbg_other_sum dbg_other_sum .
printf x >>dbg_other_sum.debug
program jail/bin dbg_out_of_jail $no_id
by_link dbg_out_of_jail jail/bin/dbg_out_of_jail "$here/outside"
ln -s "$here/outside/dbg_out_of_jail.debug" jail/bin/dbg_out_of_jail.debug

good=(dbg_id dbg_link dbg_link_dot dbg_link_far dbg_jail_id dbg_jail_link dbg_jail_our_id)
bad=(dbg_absent dbg_other_build dbg_other_sum dbg_out_of_jail)
start_record all.otlp -F 499 -p $$ # and its children
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
judge --only-names --min 95 --least 50 all.otlp "${good[@]/#/said/}"
for name in "${bad[@]}"; do
	n=$(awk -v comm="$name" -F';' '$1 == comm && !/main/ && /leaf/ { sub(/.* /, ""); sum += $0 } END { print sum + 0 }' folded)
	whole=$(awk -v comm="$name" -F';' '$1 == comm && /main.*leaf/ { sub(/.* /, ""); sum += $0 } END { print sum + 0 }' folded)
	echo "$name: $n samples cut, $whole whole"
	[ "$n" -ge 50 ] && [ "$whole" = 0 ] || fail "$name: a debug file was believed that is not its own, or there is no sample"
done
