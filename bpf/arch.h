/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What depends on the CPU, for the kernel half and for what user space shares with it: one header a CPU, of the same names.
 * What only user space needs to know of a CPU stands in agent/cpu.h. A header gives, for both halves:
 *
 *   REG_PC, REG_SP, REG_FP, REG_RA, USER_REGS  registers of a sample, by DWARF's numbers
 *   CPU_HAS_LR          a call leaves the return address in a register (REG_RA), not on the stack
 *   CPU_USER_BITS       of a user address
 *   SIGNAL_*            where registers and alternate stack stand in the kernel's signal frame, from the stack pointer of
 * its trampoline ROW_CFA, ROW_RA, ROW_RA_IN_LR, ROW_FRAME_POINTER what of a packed row differs; the rest is in bpf/event.h
 *   CPU_HAS_VSYSCALL    there is a page of the kernel's that programs call, VSYSCALL_PAGE; its row is ROW_VSYSCALL
 *
 * and for the kernel half (to be included behind the helpers):
 *
 *   cpu_in_user         did the sample interrupt user space?
 *   cpu_sample_regs     the registers of a sample that did; false: of a program of another width
 *   cpu_thread_pointer  what the C library finds a thread's own data by, or 0
 *   cpu_go_g            the struct g of Go's runtime, where the thread runs Go code; or anything
 *   cpu_entry_regs      those with which a thread that is in the kernel left user space; the same
 */
#ifndef HEARTH_BPF_ARCH_H
#define HEARTH_BPF_ARCH_H

#include <linux/types.h>

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

#if defined(__TARGET_ARCH_arm64) || (!defined(__bpf__) && defined(__aarch64__))
#include "bpf/arch_arm64.h"
#else
#include "bpf/arch_x86_64.h"
#endif

#endif
