/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spends its time in the vDSO, called with a frame pointer register that points nowhere: time() and getcpu() have no frame
 * of their own there, clock_gettime() has. Only the vDSO's own tables lead back.
 */
#include "truth.h"

#include <sched.h>
#include <sys/auxv.h>

unsigned long asked(unsigned long n);
void ask(void);

__asm__(".text\n.p2align 4\n.globl asked\n.type asked, @function\n"
	"asked: .cfi_startproc\n"
	"	push %rbp\n	.cfi_adjust_cfa_offset 8\n	.cfi_offset rbp, -16\n"
	"	push %rbx\n	.cfi_adjust_cfa_offset 8\n	.cfi_offset rbx, -24\n"
	"	sub $8, %rsp\n	.cfi_adjust_cfa_offset 8\n"
	"	mov %rdi, %rbx\n	mov $12345, %ebp\n"
	"1:	call ask\n	dec %rbx\n	jnz 1b\n"
	"	add $8, %rsp\n	.cfi_adjust_cfa_offset -8\n"
	"	pop %rbx\n	.cfi_adjust_cfa_offset -8\n	pop %rbp\n	.cfi_adjust_cfa_offset -8\n	ret\n"
	".cfi_endproc\n.size asked, . - asked\n");

void ask(void)
{
	struct timespec ts;
	unsigned int cpu;

	for (int i = 0; i < 20; i++) /* cheap ones */
		truth_sink += (unsigned long)time(NULL);
	getcpu(&cpu, NULL);
	clock_gettime(CLOCK_MONOTONIC, &ts);
}

int main(int argc, char **argv)
{
	double end = now_seconds(CLOCK_MONOTONIC) + seconds_argument(argc, argv);

	if (!getauxval(AT_SYSINFO_EHDR))
		return 77;
	while (now_seconds(CLOCK_MONOTONIC) < end)
		asked(100000);
	return 0;
}
