/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code sampled at every one of its instructions: between step_on and step_off the processor traps behind each instruction,
 * and the handler burns there, so that what it interrupted stands below it in every sample, with an exact pc. Only code
 * between step_from and step_to is worth time; the default is everything.
 */
#ifndef STEP_H
#define STEP_H

#include "turns.h"

static int step_us = 1500; /* a period and a half of 997 Hz */
static uint64_t step_from, step_to = UINT64_MAX;

__attribute__((noinline)) static void on_trap(int signal, siginfo_t *info, void *context)
{
	uint64_t pc = (uint64_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];

	(void)signal;
	(void)info;
	if (pc >= step_from && pc < step_to)
		burn(step_us);
}

/* The trap flag on and off; functions, so that their changes of the stack pointer are in their tables. */
__asm__(".text\n.p2align 4\n.globl step_on\n.type step_on, "
	"@function\nstep_on:\n.cfi_startproc\npushf\n.cfi_adjust_cfa_offset 8\n"
	"orq $0x100, (%rsp)\npopf\n.cfi_adjust_cfa_offset -8\nret\n.cfi_endproc\n.size step_on, . - step_on\n"
	".globl step_off\n.type step_off, @function\nstep_off:\n.cfi_startproc\npushf\n.cfi_adjust_cfa_offset 8\n"
	"andq $~0x100, (%rsp)\npopf\n.cfi_adjust_cfa_offset -8\nret\n.cfi_endproc\n.size step_off, . - step_off\n");
#ifdef __cplusplus
extern "C" {
#endif
void step_on(void);
void step_off(void);
#ifdef __cplusplus
}
#endif

INLINE void step_begin(int flags)
{
	handle(SIGTRAP, on_trap, flags);
}

#endif
