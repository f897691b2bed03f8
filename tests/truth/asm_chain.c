/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hand-written functions without a word of call frame information, each with a frame of another kind: pushed registers, a
 * frame pointer, stored registers with rbp in use for something else, a realigned stack, two paths, no size.
 */
#include "truth.h"

unsigned long leaf(unsigned long x);
unsigned long pushed(unsigned long x);

FRAME unsigned long leaf(unsigned long x)
{
	return spin(x);
}

#define FUNCTION(name, body) ".globl " #name "\n.type " #name ", @function\n" #name ":\n" body
#define SIZED(name)	     ".size " #name ", . - " #name "\n"

__asm__(".text\n.p2align 4\n" FUNCTION(
	pushed, "push %rbx\n push %r12\n push %rbp\n sub $32, %rsp\n xor %ebp, %ebp\n mov %rdi, %rbx\n"
		"call framed\n add %rbx, %rax\n add $32, %rsp\n pop %rbp\n pop %r12\n pop %rbx\n ret\n") SIZED(pushed)
		FUNCTION(
			framed,
			"push %rbp\n mov %rsp, %rbp\n lea 8(%rdi), %rax\n and $127, %rax\n sub %rax, %rsp\n and $-16, %rsp\n"
			"call stored\n leave\n ret\n") SIZED(framed)
			FUNCTION(stored,
				 "sub $56, %rsp\n mov %rbp, 40(%rsp)\n mov %rbx, 32(%rsp)\n mov $12345, %ebp\n mov %rdi, "
				 "%rbx\n"
				 "call realigned\n xor %rbx, %rax\n mov 32(%rsp), %rbx\n mov 40(%rsp), %rbp\n add $56, "
				 "%rsp\n ret\n") SIZED(stored) FUNCTION(realigned,
									"mov %rsp, %rax\n push %rbp\n push %r15\n sub $96, "
									"%rsp\n and $-64, %rsp\n mov %rax, 80(%rsp)\n"
									"xor %ebp, %ebp\n call forked\n mov 80(%rsp), "
									"%rsi\n mov -16(%rsi), %r15\n mov -8(%rsi), %rbp\n"
									"lea (%rsi), %rsp\n ret\n") SIZED(realigned)
				FUNCTION(forked, "test $1, %dil\n jz 1f\n push %rdi\n call unsized\n pop %rdi\n ret\n"
						 "1: sub $24, %rsp\n call unsized\n add $24, %rsp\n ret\n") SIZED(forked)
					FUNCTION(unsized, "push %rdi\n call leaf\n pop %rdi\n add %rdi, %rax\n ret\n"));

int main(int argc, char **argv)
{
	puts("chain main pushed framed stored realigned forked unsized leaf");
	RUN_CHAIN(pushed, seconds_argument(argc, argv));
	return 0;
}
