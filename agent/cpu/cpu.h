/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names that depend on the CPU and that only user space needs; bpf/arch.h has the names of both halves. Each CPU has one
 * header, which defines the same names:
 *
 *   CPU_NAME, CPU_MACHINE  as the user and as the kernel call it
 *   CPU_ELF_MACHINE        e_machine of its files
 *   CPU_RELATIVE           the type of relocation that puts an address of the file itself into its data
 *   CPU_MIN_KERNEL         version * 1000 + patch level of the oldest kernel that will do; CPU_MIN_KERNEL_TEXT for the user
 *   CPU_GENERAL_REGS       general registers, the stack pointer among them
 *   enum row_saved, ROW_SAVED_REGS   registers that a row says something about (agent/rows/rows.h), and their DWARF numbers
 *   CPU_CALLEE_SAVED       bits of the registers that a caller may expect to find again
 *   CPU_SIGNAL_PLACES      for each register its number in the kernel's signal frame, behind SIGNAL_REGS
 *   CPU_SIGRETURN          the bytes of the code that signal handlers return to
 *   CPU_CODE_ALIGN         bytes; CPU_NOP, CPU_TRAP: what fills gaps, where that is 1
 *   cpu_calls()            does the code that stands at @addr call @target?
 *   cpu_loads_before_call()  does it look at the word at @offset of something shortly before?
 *   CPU_ROW_BUILDERS       builders for this CPU only, asked before the others (agent/rows/row_builder.h)
 *   cpu_code_mask()        the bits of a return address that are not a pointer authentication signature
 */
#ifndef HEARTH_AGENT_CPU_CPU_H
#define HEARTH_AGENT_CPU_CPU_H

#include <stdint.h>

#include "bpf/arch.h"

#define REG_BIT(reg) (1ull << (reg))

#if defined(__aarch64__)
#include "agent/cpu/cpu_arm64.h"
#else
#include "agent/cpu/cpu_x86_64.h"
#endif

#endif
