/* SPDX-License-Identifier: Apache-2.0 */
/* arm64; see agent/cpu/cpu.h. */
#ifndef HEARTH_AGENT_CPU_CPU_ARM64_H
#define HEARTH_AGENT_CPU_CPU_ARM64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>

#define CPU_NAME	"arm64"
#define CPU_MACHINE	"aarch64"
#define CPU_ELF_MACHINE EM_AARCH64
#define CPU_RELATIVE	R_AARCH64_RELATIVE
enum { CPU_MIN_KERNEL = 6001, CPU_GENERAL_REGS = 32 };
#define CPU_MIN_KERNEL_TEXT "6.1"

enum row_saved {
	SAVED_X19,
	SAVED_X20,
	SAVED_X21,
	SAVED_X22,
	SAVED_X23,
	SAVED_X24,
	SAVED_X25,
	SAVED_X26,
	SAVED_X27,
	SAVED_X28,
	SAVED_FP,
	SAVED_RA,
	SAVED_MAX,
};

#define ROW_SAVED_REGS                                                 \
	{                                                              \
		19, 20, 21, 22, 23, 24, 25, 26, 27, 28, REG_FP, REG_RA \
	}

/* lr is not among them: the caller goes on at the address that lr held, with another value in lr. */
#define CPU_CALLEE_SAVED (0x7ffull << 19 | REG_BIT(REG_SP) | REG_BIT(REG_PC))

#define CPU_SIGNAL_PLACES                                                                                                 \
	{                                                                                                                 \
		0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, \
			29, 30, 31, 32                                                                                    \
	}

#define CPU_ROW_BUILDERS &rows_plt,

enum { CPU_CODE_ALIGN = 4, CPU_NOP = 0, CPU_TRAP = 0 };

#define CPU_SIGRETURN /* mov x8, #139; svc #0 */               \
	{                                                      \
		0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4 \
	}

/*
 * The bits of a return address that are not its pointer authentication signature: the bits of a user address. The signature
 * has the bits above them (arch/arm64/include/asm/pointer_auth.h). The kernel puts the program's start data at the top of
 * the address space, so the address of those data has the highest such bit.
 */
static inline uint64_t cpu_code_mask(void)
{
	return ~0ull >> __builtin_clzll(getauxval(AT_RANDOM) | 1);
}

static inline uint32_t cpu_insn(const uint8_t *code)
{
	uint32_t insn;

	memcpy(&insn, code, sizeof(insn));
	return insn;
}

static inline bool cpu_calls(const uint8_t *code, size_t len_bytes, uint64_t addr, uint64_t target)
{
	for (size_t i = 0; i + 4 <= len_bytes; i += 4) {
		uint32_t insn = cpu_insn(&code[i]); /* bl */

		if (insn >> 26 == 0x25 && addr + i + (uint64_t)((int64_t)((int32_t)(insn << 6) >> 6) * 4) == target)
			return true;
	}
	return false;
}

static inline bool cpu_loads_before_call(const uint8_t *code, size_t len_bytes, uint64_t addr, uint32_t offset,
					 uint64_t target)
{
	enum { NEAR = 8 * 4 };

	for (size_t i = 0; i + NEAR <= len_bytes; i += 4)
		if ((cpu_insn(&code[i]) & 0xfffffc00) == (0xb9400000 | offset / 4 << 10) && /* ldr w, [x, #offset] */
		    cpu_calls(&code[i], NEAR, addr + i, target))
			return true;
	return false;
}

#endif
