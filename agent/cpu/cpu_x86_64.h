/* SPDX-License-Identifier: Apache-2.0 */
/* x86-64; see agent/cpu/cpu.h. */
#ifndef HEARTH_AGENT_CPU_CPU_X86_64_H
#define HEARTH_AGENT_CPU_CPU_X86_64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define CPU_NAME	"x86-64"
#define CPU_MACHINE	"x86_64"
#define CPU_ELF_MACHINE EM_X86_64
#define CPU_RELATIVE	R_X86_64_RELATIVE
enum { CPU_MIN_KERNEL = 5010, CPU_GENERAL_REGS = 16 };
#define CPU_MIN_KERNEL_TEXT "5.10"

/* DWARF numbers of the registers that matter by name, besides those of bpf/arch.h. */
enum { DWARF_RDX = 1, DWARF_RBX = 3, DWARF_R12 = 12, DWARF_R15 = 15 };

enum row_saved { SAVED_RBX, SAVED_FP, SAVED_R12, SAVED_R13, SAVED_R14, SAVED_R15, SAVED_RA, SAVED_MAX };

#define ROW_SAVED_REGS                                                                                              \
	{                                                                                                           \
		[SAVED_RBX] = DWARF_RBX, [SAVED_FP] = REG_FP, [SAVED_R12] = DWARF_R12, [SAVED_R13] = DWARF_R12 + 1, \
		[SAVED_R14] = DWARF_R15 - 1, [SAVED_R15] = DWARF_R15, [SAVED_RA] = REG_RA,                          \
	}

#define CPU_CALLEE_SAVED (REG_BIT(DWARF_RBX) | REG_BIT(REG_FP) | REG_BIT(REG_SP) | 0xfull << DWARF_R12 | REG_BIT(REG_PC))

#define CPU_SIGNAL_PLACES                                                \
	{                                                                \
		13, 12, 14, 11, 9, 8, 10, 15, 0, 1, 2, 3, 4, 5, 6, 7, 16 \
	}

enum { CPU_CODE_ALIGN = 1, CPU_NOP = 0x90, CPU_TRAP = 0xcc };

#define CPU_SIGRETURN /* mov $15, %rax; syscall */          \
	{                                                   \
		0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 \
	}

#define CPU_ROW_BUILDERS &rows_v8,

/* The bits of a return address that are not a signature: all of them. */
static inline uint64_t cpu_code_mask(void)
{
	return ~0ull;
}

static inline bool cpu_calls(const uint8_t *code, size_t len_bytes, uint64_t addr, uint64_t target)
{
	for (size_t i = 0; i + 5 <= len_bytes; i++) {
		int32_t offset;

		memcpy(&offset, &code[i + 1], sizeof(offset));
		if (code[i] == 0xe8 && addr + i + 5 + (uint64_t)(int64_t)offset == target)
			return true;
	}
	return false;
}

/* Not needed on x86-64, where nmi_uaccess_okay is a function. */
static inline bool cpu_loads_before_call(const uint8_t *code, size_t len_bytes, uint64_t addr, uint32_t offset,
					 uint64_t target)
{
	(void)code, (void)len_bytes, (void)addr, (void)offset, (void)target;
	return false;
}

#endif
