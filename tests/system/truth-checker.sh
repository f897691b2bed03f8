#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The judge of the truth programs judges made-up stacks: what is right passes and each kind of wrong stack fails.
. "$TOP/tests/system/lib.sh"

printf 'chain main outer inner leaf\n' >prog
printf 'chain t0_start t0_leaf\nchain t1_start t1_leaf\n' >threads
printf 'chain main ns::run<int> ns::run<int>::{lambda#1}::operator() <ns::A_as_ns::B>::go ns::leaf\n' >named

# judge WANTED LINES PROGRAM: folded LINES, 100 samples each, must give exit status WANTED
judge() {
	local status=0
	sed 's/$/ 100/' >folded <<<"$2"
	"$TOP/tests/truth/check.py" folded "$3" >verdict || status=$?
	[ $status = "$1" ] || fail "status $status instead of $1 for: $2: $(cat verdict)"
}

right='prog;_start;__libc_start_main;libc.so.6+0x27249;main;outer;inner;leaf'
judge 0 "$right" prog
judge 0 'prog;_start;__libc_start_call_main;main;outer;inner;leaf' prog
judge 0 'threads;libc.so.6+0x1094c1;libc.so.6+0x89133;t1_start;t1_leaf' threads
judge 0 'threads;clone3;start_thread;t0_start;t0_leaf' threads
judge 0 'named;_start;main;int ns::run<int>(long);ns::run<int>(long)::{lambda(long)#1}::operator()(long) const;<ns::A as ns::B>::go::h0123456789abcdef;ns::leaf::<u32, u8>' named
judge 0 "$(yes "$right" | head -n 9)
prog;ld-linux-x86-64.so.2+0x1a2b0;ld-linux-x86-64.so.2+0x9010" prog
judge 0 "$(yes "$right" | head -n 9)
prog;_start;__libc_start_main;main;clock_gettime" prog

judge 1 "$right
prog;_start;__libc_start_main;main;clock_gettime" prog                       # too much aside
judge 1 'prog;_start;main;leaf' prog                                         # two frames left out
judge 1 'prog;main;clock_gettime' prog
judge 1 'prog;main;outer;inner;leaf' prog                                    # no root
judge 1 'prog;_start;outer;inner;leaf' prog                                  # main is missing
judge 1 'prog;_start;main;outer;leaf' prog                                   # a gap
judge 1 'prog;_start;main;inner;outer;leaf' prog                             # wrong order
judge 1 'prog;_start;main;outer;main;outer;inner' prog                       # no leaf
judge 1 'prog;_start;main;outer;prog+0x1149;inner;leaf' prog                 # a frame without a name
judge 1 'prog;_start;main;outer;inner;leaf;no_such_kernel_function' prog     # more than the truth
judge 1 'prog;_start;elsewhere;main;outer;inner;leaf' prog                   # a stranger below main
judge 1 'threads;libc.so.6+0x1094c1;t1_start;t1_leaf' threads                # half a root
judge 1 'threads;clone3;start_thread;t0_start;t1_leaf' threads               # two chains mixed
judge 1 'prog;leaf' prog
judge 1 'prog' prog
judge 1 'other;_start;main;outer;inner;leaf' prog                            # no sample at all
judge 1 "$(yes "$right" | head -n 90; yes 'prog;leaf' | head -n 10)" prog    # 90 %
