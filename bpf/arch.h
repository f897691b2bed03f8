/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The names that depend on the CPU, for the kernel half and for the code that user space shares with it. Each CPU has one
 * header, which defines the same names. agent/cpu/cpu.h has the names that only user space needs. A header gives, for both
 * halves:
 *
 *   REG_PC, REG_SP, REG_FP, REG_RA, USER_REGS  registers of a sample, by DWARF's numbers
 *   CPU_HAS_LR          a call leaves the return address in a register (REG_RA), not on the stack
 *   CPU_USER_BITS       how many bits a user address has
 *   SIGNAL_*            where registers and alternate stack stand in the kernel's signal frame, from the stack pointer of
 * its trampoline ROW_CFA, ROW_RA, ROW_RA_IN_LR, ROW_FRAME_POINTER what of a packed row differs; the rest is in bpf/event.h
 *   CPU_HAS_VSYSCALL    there is a page of the kernel's that programs call, VSYSCALL_PAGE; its row is ROW_VSYSCALL
 *
 * and for the kernel half (to be included behind the helpers):
 *
 *   cpu_in_user         did the sample interrupt user space?
 *   cpu_sample_regs     the registers of such a sample; false: the program has another width (32-bit)
 *   cpu_thread_pointer  the pointer by which the C library finds a thread's own data, or 0
 *   cpu_go_g            the struct g of Go's runtime if the thread runs Go code; else any value
 *   cpu_entry_regs      the registers with which a thread that is in the kernel left user space; false as above
 *   cpu_entry_syscall   the number of the system call that it left by; -1: by none
 *   RUNS_AGAIN          the tracepoint that a thread passes when an interrupt comes that it sent to itself
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
