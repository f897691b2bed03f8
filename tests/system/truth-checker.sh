#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The judge of the truth programs judges made-up stacks: what is right passes and each kind of wrong stack fails.
. "$TOP/tests/system/lib.sh"

# A program to look addresses up in, and a stripped one beside what it was before.
mkdir symbols
printf '%s\n' 'int main(void) { return 0; } int outer(void) { return 1; } int inner(void) { return 2; } int leaf(void) { return 3; }' \
	'int stranger(void) { return 4; }' >prog.c
gcc -O0 -no-pie -fno-pie -o prog prog.c
cp prog symbols/stripped
strip -o stripped prog
declare -A addresses
while read -r value _ name; do
	addresses[$name]=$value
done < <(nm --defined-only prog)
cat >prog.told <<'X'
chain main outer inner leaf
calls inner memset
X
for program in prog stripped; do
	mkdir "told_$program"
	cp prog.told "told_$program/$program"
done
mkdir told
printf 'chain t0_start t0_leaf\nchain t1_start t1_leaf\n' >told/threads
printf 'chain main ns::run<int> ns::run<int>::{lambda#1}::operator() <ns::A_as_ns::B>::go ns::leaf\n' >told/named
printf 'chain main.outer main.(*T).leaf\ncalls * runtime.*\n' >told/go
printf 'chain main outer outer leaf\nfull 0\n' >told/deep

# stacks COUNT PROGRAM END FRAME...: lines for the judge. A frame of the program is a name (PROG/name by its address), one of
# another file is LIBRARY:name, of the kernel k:name.
stacks() {
	local count=$1 program=$2 end=$3 frame
	shift 3
	printf '%s\t%s\t%s' "$count" "$PWD/$program" "$end"
	for frame; do
		case $frame in
		k:*) printf '\tkernel||%s' "${frame#k:}" ;;
		lib*:* | ld*:*) printf '\t/lib/%s.so.6|0x10|%s' "${frame%%:*}" "${frame#*:}" ;;
		+*) printf '\t%s/%s|0x%s|' "$PWD" "$program" "$(address "${frame#+}")" ;;
		*=*) printf '\t%s/%s|0x%s|%s' "$PWD" "$program" "$(address "${frame%%=*}")" "${frame#*=}" ;;
		*) printf '\t%s/%s|0x%s|%s' "$PWD" "$program" "$(address "$frame")" "$frame" ;;
		esac
	done
	echo
}

address() {
	echo "${addresses[$1]}"
}

# judged WANTED PROGRAM: the lines on standard input must give exit status WANTED
judged() {
	local status=0
	cat >case.stacks
	"$TOP/tests/truth/check.py" case.stacks "told_$2/$2" >verdict || status=$?
	[ $status = "$1" ] || fail "status $status instead of $1 for: $(cat case.stacks): $(cat verdict)"
}

root='_start libc:__libc_start_main libc:'
right() { # PROGRAM COUNT
	stacks "${2:-100}" "$1" - $root main outer inner leaf
}
one() { # WANTED FRAME...: one such stack among enough that are right
	local wanted=$1
	shift
	{
		right prog
		stacks 1 prog - "$@"
	} | judged "$wanted" prog
}

right prog | judged 0 prog
one 0 $root main outer inner leaf k:asm_sysvec_apic_timer_interrupt
one 0 $root main                                             # on the way to the leaf, or back
one 0 $root main outer inner
one 0 $root main outer inner libc:memset
one 0 $root main outer inner ld-linux-x86-64:                # which looks memset up
one 0 ld-linux-x86-64:_dl_start ld-linux-x86-64:             # before it all
one 0 $root libc:exit libc:_IO_cleanup                       # and after
one 0 k:do_syscall_64 k:__x64_sys_execve

one 1 main outer inner leaf                                  # no root
one 1 _start libc:__libc_start_main main outer inner leaf    # half a root
one 1 $root outer inner leaf                                 # main is missing
one 1 $root main outer leaf                                  # a gap
one 1 $root main inner                                       # a gap in what would be a way back
one 1 $root main inner outer leaf                            # wrong order
one 1 $root main main outer inner leaf                       # doubled
one 1 $root main outer outer inner leaf
one 1 $root main outer stranger inner leaf                   # a stranger in the chain
one 1 $root stranger main outer inner leaf                   # below it
one 1 $root main outer inner leaf stranger                   # above it
one 1 $root main outer inner leaf libc:memset                # which leaf does not call
one 1 $root main outer libc:memset
one 1 $root libc:memset                                      # its caller is missing
one 1 $root main outer inner libc:memset leaf                # the chain goes on behind a library
one 1 $root main k:do_syscall_64 outer inner leaf            # the kernel amidst
one 1 $root main outer inner=outer                           # a wrong name for the address
one 1 $root main outer +inner                                # no name where there is one
one 1 leaf
one 1 k:do_syscall_64                                        # no user part, and no reason for it
{
	right prog
	stacks 1 prog "no rule" inner leaf
} | judged 1 prog # truncated
grep -q '1 truncated (no rule)' verdict || fail "truncated stacks are not counted apart: $(cat verdict)"
for unwinding in "0 inner libgcc_s:_Unwind_RaiseException libgcc_s:" "1 libgcc_s:_Unwind_RaiseException libgcc_s:" \
	"1 inner libgcc_s:_Unwind_RaiseException libc:memset" "1 outer inner libgcc_s:_Unwind_RaiseException libgcc_s:"; do
	{
		right prog
		stacks 1 prog "no mapping" ${unwinding#? }
	} | judged "${unwinding%% *}" prog # a landing pad stands where the return address stood
done
{
	right prog
	stacks 1 prog "copy limit" $root main outer inner leaf
} | judged 1 prog # truncated by its own word
right prog 10 | judged 1 prog                                    # too few
stacks 100 other - $root main outer inner leaf | judged 1 prog # none at all
{
	right prog 60
	stacks 40 prog - $root main outer inner
} | judged 1 prog # too few at full depth
{
	right prog 60
	stacks 40 prog - ld-linux-x86-64:
} | judged 1 prog # too many outside
{
	right prog 99
	stacks 1 prog - $root main outer inner leaf | sed 's/libc.so.6|0x10|$/libc.so.6|0x11|/; s/libc.so.6|0x10|\t/libc.so.6|0x11|\t/'
} | judged 1 prog # another root

{
	right prog
	stacks 100 prog - $root main outer
} >swept
echo 'full 10' >>told_prog/prog
judged 0 prog <swept
echo sweep >>told_prog/prog
judged 0 prog <swept # half of the functions were seen as the innermost
sed -i 's/main outer inner leaf/main outer stranger inner leaf/' told_prog/prog
{
	stacks 100 prog - $root main outer stranger inner leaf
	stacks 100 prog - $root main outer stranger inner leaf k:schedule
	stacks 100 prog - $root main
} | judged 1 prog # main, the leaf, but nothing between

# Without names, by the addresses that the symbols file knows.
stacks 100 stripped - +_start libc:__libc_start_main libc: +main +outer +inner +leaf | judged 0 stripped
stacks 100 stripped - +_start libc:__libc_start_main libc: +main +outer +leaf | judged 1 stripped
stacks 100 stripped - +_start libc:__libc_start_main libc: main=outer outer inner leaf | judged 1 stripped

# Names alone: threads, mangled names, goroutines, recursion.
by_name() { # WANTED PROGRAM FRAME...
	local wanted=$1 program=$2 status=0 frame
	shift 2
	{
		printf '100\t/elsewhere/%s\t-' "$program"
		for frame; do
			printf '\t%s|0x10|%s' "$([ "${frame#libc:}" = "$frame" ] && echo "/nowhere/$program" || echo /lib/libc.so.6)" "${frame#libc:}"
		done
		echo
	} >case.stacks
	"$TOP/tests/truth/check.py" --only-names case.stacks "told/$program" >verdict || status=$?
	[ $status = "$wanted" ] || fail "status $status instead of $wanted for: $(cat case.stacks): $(cat verdict)"
}
by_name 0 threads libc: libc: t1_start t1_leaf
by_name 0 threads libc:clone3 libc:start_thread t0_start t0_leaf
by_name 1 threads libc: t1_start t1_leaf                     # half a root
by_name 1 threads libc:clone3 libc:start_thread t0_start t1_leaf # two chains mixed
by_name 0 named _start libc:__libc_start_main libc: main 'int ns::run<int>(long)' \
	'ns::run<int>(long)::{lambda(long)#1}::operator()(long) const' '<ns::A as ns::B>::go::h0123456789abcdef' 'ns::leaf::<u32, u8>'
by_name 0 go runtime.goexit.abi0 main.outer 'main.(*T).leaf' runtime.asyncPreempt
by_name 1 go main.outer 'main.(*T).leaf'
by_name 1 go runtime.goexit 'main.(*T).leaf'
by_name 0 deep _start libc:__libc_start_main libc: main outer outer leaf
by_name 0 deep _start libc:__libc_start_main libc: main outer
by_name 1 deep _start libc:__libc_start_main libc: main outer leaf
