/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * x86-64.
 */
#ifndef HEARTH_BPF_ARCH_X86_64_H
#define HEARTH_BPF_ARCH_X86_64_H

/* DWARF's numbers (System V ABI, AMD64 supplement, figure 3.36): rax rdx rcx rbx rsi rdi rbp rsp r8..r15, and rip. */
enum { REG_FP = 6, REG_SP = 7, REG_PC = 16, USER_REGS = 17 };

#endif
