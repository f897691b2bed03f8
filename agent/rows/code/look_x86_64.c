/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Judges x86-64 code by the look of its bytes: where functions may begin, what refers to them, whether they keep a frame
 * pointer. Instructions are decoded only where their bytes may as well be the middle of others. Declared in
 * agent/rows/code/state.h; arm64's functions are in state_arm64.c, as its instructions have one length. Leaf module, no
 * state of its own.
 */
#include <string.h>

#include "agent/rows/code/insn_x86_64.h"
#include "agent/rows/code/state.h"

/* What an indirect call or jump may go to, where the compiler guards those. */
static const uint8_t endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };

static bool is_endbr64(const uint8_t *code, uint64_t len)
{
	return len >= sizeof(endbr64) && memcmp(code, endbr64, sizeof(endbr64)) == 0;
}

bool code_may_follow(const uint8_t *code, uint64_t off)
{
	/* ret, int3, nop and the end of longer ones (and of calls forward), short and near jump, call backward */
	if (off < 5 || (off & 15) == 0)
		return true;
	return code[off - 1] == 0xc3 || code[off - 1] == 0xcc || code[off - 1] == 0x90 || code[off - 1] == 0x00 ||
	       code[off - 2] == 0xeb || code[off - 5] == 0xe9 || (code[off - 5] == 0xe8 && code[off - 1] == 0xff);
}

static int32_t read_s32(const uint8_t *at)
{
	int32_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

/* The end of some instruction and a nop with a distance behind it (0f 1f 40 00) look like mov reg, imm32. In a program that
 * is loaded low the number is an address of its code. */
static bool is_nop(uint32_t number)
{
	return (number & 0xff00ffff) == 0x1f0f;
}

/* call rel32, lea reg, [rip+rel32] (behind its REX.W prefix) and, in code that is not relocated, mov reg, imm32 in both
 * forms. */
static bool find_reference(const uint8_t *segment, uint64_t addr, uint64_t at, uint64_t *target)
{
	const uint8_t *code = segment + at;

	if (code[0] == 0xe8)
		*target = addr + at + 5 + (uint64_t)read_s32(code + 1);
	else if (code[0] == 0x8d && (code[1] & 0xc7) == 0x05 && at && (code[-1] & 0xf8) == 0x48)
		*target = addr + at + 6 + (uint64_t)read_s32(code + 2);
	else if ((code[0] & 0xf8) == 0xb8 && addr >= CODE_LEAST_FIXED_ADDR)
		*target = (uint32_t)read_s32(code + 1);
	else if (code[0] == 0xc7 && (code[1] & 0xf8) == 0xc0 && addr >= CODE_LEAST_FIXED_ADDR)
		*target = (uint32_t)read_s32(code + 2);
	else
		return false;
	return *target > UINT32_MAX || !is_nop((uint32_t)*target);
}

uint64_t code_next_reference(const uint8_t *segment, uint64_t addr, uint64_t at, uint64_t end, uint64_t *target)
{
	/* Every byte of a file comes by: most are ruled out by their value alone. */
	static const bool may_refer[256] = { [0x8d] = true, [0xb8 ... 0xbf] = true, [0xc7] = true, [0xe8] = true };

	while (at < end && !(may_refer[segment[at]] && find_reference(segment, addr, at, target)))
		at++;
	return at;
}

/* The frame that `push rbp; mov rbp, rsp` makes. */
size_t code_prologue_bytes(const uint8_t *code, size_t len, struct row *frame)
{
	size_t at = is_endbr64(code, len) ? sizeof(endbr64) : 0;

	if (len < at + 4 || code[at] != 0x55 ||
	    (memcmp(&code[at + 1], "\x48\x89\xe5", 3) && memcmp(&code[at + 1], "\x48\x8b\xec", 3)))
		return 0;
	*frame = (struct row){ .cfa = ROW_CFA_REG, .cfa_reg = REG_FP, .cfa_off = 16 };
	for (int s = 0; s < SAVED_MAX; s++)
		frame->saved[s] = s == SAVED_FP ? -16 : s == SAVED_RA ? -8 : ROW_SAME;
	return at + 4;
}

bool code_ends_frame(const uint8_t *code)
{
	return (code[0] == 0x5d || code[0] == 0xc9) && (code[1] == 0xc3 || code[1] == 0xc2); /* pop rbp or leave; ret */
}

/* Does a path end with the instruction before @code[@off]: ret, a jump or ud? */
static bool ends_path(const uint8_t *code, uint64_t off)
{
	const uint8_t *at = code + off;

	if (off < 5)
		return true;
	return at[-1] == 0xc3 || at[-3] == 0xc2 || at[-2] == 0xeb || at[-5] == 0xe9 || (at[-2] == 0x0f && at[-1] == 0x0b) ||
	       (at[-4] == 0x0f && at[-3] == 0xb9);
}

/* jmp *disp(rip), which calls from one file to another go through */
static bool is_stub(const uint8_t *code, uint64_t len)
{
	return len > 6 && code[0] == 0xff && code[1] == 0x25;
}

bool code_begins_function(const uint8_t *code, uint64_t off, uint64_t len)
{
	enum { TRAP = 0xcc, MOST = 15 };
	uint64_t traps = 0;
	struct row frame;

	if (off % CODE_FUNCTION_ALIGN || off + 2 > len || code[off] == TRAP || (code[off] == 0x0f && code[off + 1] == 0x0b))
		return false;
	while (traps < MOST && traps < off && code[off - traps - 1] == TRAP)
		traps++;
	if (traps < off && code[off - traps - 1] == 0xcd) /* 0xcccccccd is what divisions by 5 multiply with */
		traps = 0;
	if (!off || traps > 1 || is_endbr64(code + off, len - off) || code_prologue_bytes(code + off, len - off, &frame))
		return true;
	return (is_stub(code + off, len - off) || (traps && ends_path(code, off - traps))) && insn_may_begin(code, off, len);
}
