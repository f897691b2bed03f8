/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions of x86-64 that tell where a method of HotSpot is entered and whom it calls. */
#include <string.h>

#include "agent/runtime/code/hotspot/hotspot_cpu.h"
#include "base/cleanup.h"

uint32_t hotspot_call_bytes(const uint8_t *code, uint64_t end, uint64_t addr, uint64_t *target)
{
	enum { CALL = 0xe8, CALL_BYTES = 5 };
	int32_t offset;

	*target = 0;
	if (end < CALL_BYTES || code[end - CALL_BYTES] != CALL)
		return 0;
	memcpy(&offset, code + end - sizeof(offset), sizeof(offset));
	*target = addr + end + (uint64_t)(int64_t)offset;
	return CALL_BYTES;
}

/* There is a jump over the first 5 bytes of the instruction at the entry, the stack bang or `sub rsp, imm32`, both of 7
 * bytes (src/hotspot/cpu/x86/nativeInst_x86.cpp, patch_verified_entry). */
uint32_t hotspot_patched_bytes(const uint8_t *code, size_t len, bool *is_bare)
{
	enum { JMP = 0xe9, PUSH_RBP = 0x55, PATCHED = 7 };

	if (len <= PATCHED || code[0] != JMP)
		return 0;
	*is_bare = code[PATCHED] == PUSH_RBP;
	return PATCHED;
}

uint64_t hotspot_trampoline_target(const uint8_t *code, size_t len)
{
	(void)code, (void)len; /* calls reach all code */
	return 0;
}

/* push rbp; mov rbp, rsp */
bool hotspot_makes_frame(const uint8_t *code, size_t len)
{
	static const uint8_t prologues[][4] = { { 0x55, 0x48, 0x8b, 0xec }, { 0x55, 0x48, 0x89, 0xe5 } };

	for (size_t i = 0; i < ARRAY_LEN(prologues) && len >= sizeof(prologues[0]); i++)
		if (memcmp(code, prologues[i], sizeof(prologues[i])) == 0)
			return true;
	return false;
}

bool hotspot_begins_in_frame(const uint8_t *code, size_t len)
{
	(void)code, (void)len;
	return false;
}

/* The return address is copied below the arguments meanwhile. */
uint32_t hotspot_adapter_row(const struct hotspot *s, const uint8_t *code, size_t len, struct row *row)
{
	(void)s, (void)code, (void)len, (void)row;
	return 0;
}

/* mov rsp, [r15 + JavaThread's _cont_entry]; push rax (src/hotspot/cpu/x86/stubGenerator_x86_64.cpp, generate_cont_thaw) */
uint64_t hotspot_find_barrier(const uint8_t *code, uint64_t len, uint64_t from, uint32_t *bytes)
{
	enum { MOV_BYTES = 7, PUSH_RAX = 0x50 };
	static const uint8_t mov[] = { 0x49, 0x8b, 0xa7 };

	*bytes = MOV_BYTES;
	for (uint64_t i = from; i + MOV_BYTES < len; i++)
		if (!memcmp(code + i, mov, sizeof(mov)) && code[i + MOV_BYTES] == PUSH_RAX)
			return i;
	return len;
}

uint32_t hotspot_drops_return_bytes(const uint8_t *code, uint64_t len)
{
	enum { POP_RCX = 0x59 };

	return len && code[0] == POP_RCX;
}
