/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A chain through a function whose frame only its call frame information knows: it realigns the stack, keeps the old stack
 * pointer in it by a way that no reader of instructions follows, and uses rbp for something else. Built so that the compiler
 * puts that information into .debug_frame alone, which tests/system/debug-files.sh then moves away.
 */
#include "truth.h"

unsigned long leaf(unsigned long x);
unsigned long realigned(unsigned long x);
FRAME unsigned long caller(unsigned long x);

FRAME unsigned long leaf(unsigned long x)
{
	return spin(x);
}

__asm__(".text\n.p2align 4\n.globl realigned\n.type realigned, @function\n"
	"realigned: .cfi_startproc\n"
	"	mov %rsp, %rax\n	not %rax\n	not %rax\n	.cfi_def_cfa rax, 8\n"
	"	push %rbp\n	.cfi_offset rbp, -16\n"
	"	sub $96, %rsp\n	and $-64, %rsp\n	mov %rax, 80(%rsp)\n"
	/* CFA = *(rsp + 80) + 8 */
	"	.cfi_escape 0x0f, 6, 0x77, 0xd0, 0, 0x06, 0x23, 8\n"
	"	xor %ebp, %ebp\n	call leaf\n"
	"	mov 80(%rsp), %rsi\n	mov -8(%rsi), %rbp\n	.cfi_def_cfa rsi, 8\n	.cfi_restore rbp\n"
	"	mov %rsi, %rsp\n	.cfi_def_cfa rsp, 8\n	ret\n"
	".cfi_endproc\n.size realigned, . - realigned\n");

FRAME unsigned long caller(unsigned long x)
{
	truth_sink += realigned(x + 1) ^ x;
	return truth_sink;
}

int main(int argc, char **argv)
{
	double end = now_seconds(CLOCK_MONOTONIC) + seconds_argument(argc, argv);

	puts("chain main caller realigned leaf");
	truth_told();
	while (now_seconds(CLOCK_MONOTONIC) < end)
		truth_sink += caller(truth_sink + SALT);
	return 0;
}
