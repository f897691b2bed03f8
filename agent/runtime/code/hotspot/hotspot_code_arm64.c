/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions of arm64 that tell where a method of HotSpot is entered and whom it calls. */
#include <string.h>

#include "agent/runtime/code/hotspot/hotspot_cpu.h"

enum { INSN_BYTES = 4 };

static bool is_bl(uint32_t insn)
{
	return (insn & 0xfc000000) == 0x94000000;
}

static bool is_br(uint32_t insn)
{
	return (insn & 0xfffffc1f) == 0xd61f0000;
}

uint32_t hotspot_call_bytes(const uint8_t *code, uint64_t end, uint64_t addr, uint64_t *target)
{
	enum { BLR = 0xd63f0000 };
	uint32_t insn;

	*target = 0;
	if (end < INSN_BYTES || end % INSN_BYTES)
		return 0;
	end -= INSN_BYTES;
	insn = cpu_insn(code + end);
	if (is_bl(insn))
		*target = addr + end + (uint64_t)((int64_t)((int32_t)(insn << 6) >> 6) * INSN_BYTES);
	return is_bl(insn) || (insn & 0xfffffc1f) == BLR ? INSN_BYTES : 0;
}

/* The entry is a nop that becomes a jump, or an instruction that traps where no jump reaches
 * (src/hotspot/cpu/aarch64/nativeInst_aarch64.cpp, patch_verified_entry). */
uint32_t hotspot_patched_bytes(const uint8_t *code, size_t len, bool *is_bare)
{
	enum { DCPS1_DEAD = 0xd4bbd5a1 };
	uint32_t insn = len > INSN_BYTES ? cpu_insn(code) : 0;

	*is_bare = true;
	return (insn & 0xfc000000) == 0x14000000 || insn == DCPS1_DEAD ? INSN_BYTES : 0;
}

/* ldr x8, .+8; br x8; and the address (src/hotspot/cpu/aarch64/nativeInst_aarch64.hpp, NativeCallTrampolineStub) */
uint64_t hotspot_trampoline_target(const uint8_t *code, size_t len)
{
	enum { LDR_X8 = 0x58000048, BR_X8 = 0xd61f0100, DATA = 8 };
	uint64_t target = 0;

	if (len >= DATA + sizeof(target) && cpu_insn(code) == LDR_X8 && cpu_insn(code + INSN_BYTES) == BR_X8)
		memcpy(&target, code + DATA, sizeof(target));
	return target;
}

/* stp x29, x30, [sp, #-16]!; mov x29, sp */
bool hotspot_makes_frame(const uint8_t *code, size_t len)
{
	enum { STP = 0xa9bf7bfd, MOV = 0x910003fd };

	return len >= 2 * INSN_BYTES && cpu_insn(code) == STP && cpu_insn(code + INSN_BYTES) == MOV;
}

/* ldr or str of [x29, #8], before a pair is written at sp, and any jump (C1's forward_exception, c1_Runtime1_aarch64.cpp) */
bool hotspot_begins_in_frame(const uint8_t *code, size_t len)
{
	enum { MOST = 16 * INSN_BYTES, AT_RA = 0xf90007a0, STP_SP = 0xa90003e0 };

	for (size_t off = 0; off + INSN_BYTES <= len && off < MOST; off += INSN_BYTES) {
		uint32_t insn = cpu_insn(code + off);

		if ((insn & 0xffbfffe0) == AT_RA)
			return true;
		if ((insn & 0xfe4003e0) == (STP_SP & 0xfe4003e0) || (insn & 0x1c000000) == 0x14000000)
			return false;
	}
	return false;
}

uint32_t hotspot_adapter_row(const struct hotspot *s, const uint8_t *code, size_t len, struct row *row)
{
	struct codelet_state entered = hotspot_codelet_begin(s, true);
	uint32_t bytes = 0;

	*row = (struct row){ .cfa = ROW_CFA_REG, .cfa_reg = hotspot_dwarf_reg(entered.sender_reg) };
	for (int i = 0; i < SAVED_MAX; i++)
		row->saved[i] = ROW_SAME;
	while (bytes + INSN_BYTES <= len && !is_br(cpu_insn(code + bytes)))
		bytes += INSN_BYTES;
	return bytes + INSN_BYTES <= len ? bytes + INSN_BYTES : 0;
}

/* Not tried on this CPU. */
uint64_t hotspot_find_barrier(const uint8_t *code, uint64_t len, uint64_t from, uint32_t *bytes)
{
	(void)code, (void)from;
	*bytes = 0;
	return len;
}

uint32_t hotspot_drops_return_bytes(const uint8_t *code, uint64_t len)
{
	(void)code, (void)len;
	return 0;
}
