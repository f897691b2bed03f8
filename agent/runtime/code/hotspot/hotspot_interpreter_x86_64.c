/* SPDX-License-Identifier: Apache-2.0 */
/*
 * x86-64's interpreter (src/hotspot/cpu/x86/frame_x86.hpp: return address at rbp + 8, sender_sp -8, last_sp -16, Method*
 * -24), and how instructions change a frame of it. A method is entered with the caller's sp in r13 and the return address on
 * the stack; then that is in a register, then on the stack again.
 */
#include "agent/rows/code/insn_x86_64.h"
#include "agent/runtime/code/hotspot/hotspot_cpu.h"
#include "base/cleanup.h"

enum { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8, R9, R10, R11, R12, R13, R14, R15, NO_REG = CODELET_NO_REG };
enum { SENDER_SP = CODELET_SENDER_SP, METHOD = -24 };

/* DWARF's numbers of the processor's. */
static const uint8_t dwarf[] = { 0, 2, 1, 3, REG_SP, REG_FP, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15 };

static const struct codelet_state whole = { .frame = CODELET_WHOLE,
					    .sender_reg = NO_REG,
					    .ra_reg = NO_REG,
					    .method_reg = NO_REG,
					    .ra_at = CODELET_NOWHERE,
					    .sender_at = CODELET_NOWHERE };
static const struct codelet_state entered = {
	.frame = CODELET_NONE, .sender_reg = R13, .ra_reg = NO_REG, .method_reg = RBX, .sender_at = CODELET_NOWHERE
};

struct decoded {
	ZydisDecodedInstruction insn;
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
};

static int reg_of(const ZydisDecodedOperand *op)
{
	ZydisRegister whole_reg;

	if (op->type != ZYDIS_OPERAND_TYPE_REGISTER)
		return NO_REG;
	whole_reg = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, op->reg.value);
	return whole_reg >= ZYDIS_REGISTER_RAX && whole_reg <= ZYDIS_REGISTER_R15 ? (int)(whole_reg - ZYDIS_REGISTER_RAX)
										  : NO_REG;
}

/* sp moves by @by bytes. */
static void move_sp(struct codelet_state *s, int64_t by)
{
	if (s->frame == CODELET_POINTER) {
		s->pushed = (int16_t)(s->pushed - by);
		s->has_sender = s->pushed >= -SENDER_SP;
		if (s->pushed >= -METHOD)
			*s = whole;
		else if (s->pushed < 0)
			s->frame = CODELET_UNKNOWN;
		return;
	}
	if (by < -4096 || by > 4096) {
		s->ra_at = s->sender_at = CODELET_NOWHERE;
		return;
	}
	if (s->ra_at != CODELET_NOWHERE)
		s->ra_at = (int16_t)(s->ra_at - by);
	if (s->sender_at != CODELET_NOWHERE)
		s->sender_at = (int16_t)(s->sender_at - by);
}

/* Register @reg has another value. */
static void forget(struct codelet_state *s, int reg)
{
	if (reg == s->sender_reg)
		s->sender_reg = NO_REG;
	if (reg == s->ra_reg)
		s->ra_reg = NO_REG;
	if (reg == s->method_reg)
		s->method_reg = NO_REG;
	if (reg == RSP)
		s->ra_at = s->sender_at = CODELET_NOWHERE;
	if (reg == RBP && s->frame == CODELET_POINTER)
		s->frame = CODELET_UNKNOWN;
}

static void forget_written(struct codelet_state *s, const struct decoded *d)
{
	for (int i = 0; i < d->insn.operand_count; i++)
		if (d->op[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE && reg_of(&d->op[i]) != NO_REG &&
		    (reg_of(&d->op[i]) != RSP || i < d->insn.operand_count_visible))
			forget(s, reg_of(&d->op[i]));
}

static void do_push(struct codelet_state *s, int reg)
{
	move_sp(s, -8);
	if (s->frame == CODELET_NONE && reg != NO_REG && reg == s->ra_reg)
		s->ra_at = 0;
}

static void do_pop(struct codelet_state *s, int reg)
{
	bool is_ra = s->frame == CODELET_NONE && s->ra_at == 0;

	move_sp(s, 8);
	if (reg != NO_REG)
		forget(s, reg);
	if (is_ra && reg != NO_REG) {
		s->ra_reg = (int8_t)reg;
		s->ra_at = CODELET_NOWHERE;
	}
}

static bool is_word_at_fp(const ZydisDecodedOperand *op, int64_t offset)
{
	return op->type == ZYDIS_OPERAND_TYPE_MEMORY && op->mem.base == ZYDIS_REGISTER_RBP &&
	       op->mem.index == ZYDIS_REGISTER_NONE && op->mem.disp.value == offset && op->size == 64;
}

static void do_mov(struct codelet_state *s, const struct decoded *d)
{
	int to = reg_of(&d->op[0]), from = reg_of(&d->op[1]);
	struct codelet_state before = *s;

	if (to == RBP && from == RSP && s->frame == CODELET_NONE) { /* the caller's rbp was pushed right before */
		s->frame = s->ra_at == 8 ? CODELET_POINTER : CODELET_UNKNOWN;
		s->pushed = 0;
		s->has_sender = false;
		return;
	}
	forget_written(s, d);
	if (to == NO_REG)
		return;
	if (to == RSP && from != NO_REG && from == before.sender_reg) {
		s->sender_at = 0;
	} else if (from != NO_REG && from == before.sender_reg && s->sender_reg == NO_REG) {
		s->sender_reg = (int8_t)to;
	} else if (from != NO_REG && from == before.ra_reg && s->ra_reg == NO_REG) {
		s->ra_reg = (int8_t)to;
	} else if (s->frame == CODELET_WHOLE && is_word_at_fp(&d->op[1], SENDER_SP)) {
		s->sender_reg = (int8_t)to;
	}
}

static void do_leave(struct codelet_state *s)
{
	if (s->frame != CODELET_WHOLE || s->sender_reg == NO_REG) {
		s->frame = CODELET_UNKNOWN;
		return;
	}
	s->frame = CODELET_NONE;
	s->ra_at = 0;
}

static void do_call(struct codelet_state *s)
{
	static const int8_t lost[] = { RAX, RCX, RDX, RSI, RDI, R8, R9, R10, R11 };

	for (size_t i = 0; i < ARRAY_LEN(lost); i++)
		forget(s, lost[i]);
}

/* Takes @s behind the instruction. */
static void step(struct codelet_state *s, const struct decoded *d)
{
	int sign = d->insn.mnemonic == ZYDIS_MNEMONIC_ADD ? 1 : -1;

	if (s->frame == CODELET_UNKNOWN)
		return;
	switch (d->insn.mnemonic) {
	case ZYDIS_MNEMONIC_PUSH:
		do_push(s, reg_of(&d->op[0]));
		break;
	case ZYDIS_MNEMONIC_PUSHFQ:
		do_push(s, NO_REG);
		break;
	case ZYDIS_MNEMONIC_POP:
		do_pop(s, reg_of(&d->op[0]));
		break;
	case ZYDIS_MNEMONIC_POPFQ:
		do_pop(s, NO_REG);
		break;
	case ZYDIS_MNEMONIC_MOV:
		do_mov(s, d);
		break;
	case ZYDIS_MNEMONIC_LEAVE:
		do_leave(s);
		break;
	case ZYDIS_MNEMONIC_ADD:
	case ZYDIS_MNEMONIC_SUB:
		if (reg_of(&d->op[0]) == RSP && d->op[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
			move_sp(s, sign * d->op[1].imm.value.s);
		else
			forget_written(s, d);
		break;
	case ZYDIS_MNEMONIC_CALL:
		do_call(s);
		break;
	default:
		forget_written(s, d);
	}
}

/* --- paths --- */

/* Where the instruction at @off may go but on; UINT64_MAX: nowhere. */
static uint64_t target_of(const struct decoded *d, uint64_t off)
{
	const ZydisDecodedOperand *op = &d->op[0];

	if (d->insn.meta.branch_type == ZYDIS_BRANCH_TYPE_NONE || d->insn.meta.category == ZYDIS_CATEGORY_CALL ||
	    op->type != ZYDIS_OPERAND_TYPE_IMMEDIATE || !op->imm.is_relative)
		return UINT64_MAX;
	return off + d->insn.length + op->imm.value.u;
}

static bool ends_path(const struct decoded *d)
{
	return d->insn.meta.category == ZYDIS_CATEGORY_UNCOND_BR || d->insn.meta.category == ZYDIS_CATEGORY_RET ||
	       d->insn.mnemonic == ZYDIS_MNEMONIC_HLT || d->insn.mnemonic == ZYDIS_MNEMONIC_UD2 ||
	       d->insn.mnemonic == ZYDIS_MNEMONIC_INT3;
}

bool hotspot_codelet_step(const uint8_t *code, size_t len, uint64_t off, struct codelet_state *state,
			  struct codelet_step *ret)
{
	struct decoded d;

	if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(insn_decoder(), code + off, len - off, &d.insn, d.op)))
		return false;
	step(state, &d);
	*ret = (struct codelet_step){ .bytes = d.insn.length,
				      .to = target_of(&d, off),
				      .goes_on = !ends_path(&d),
				      .is_call = d.insn.meta.category == ZYDIS_CATEGORY_CALL };
	return true;
}

/* --- the interpreter --- */

struct codelet_state hotspot_codelet_begin(const struct hotspot *s, bool is_entry)
{
	(void)s; /* the same in all versions */
	return is_entry ? entered : whole;
}

uint8_t hotspot_dwarf_reg(int reg)
{
	return dwarf[reg & 15];
}

struct hotspot_interpreter hotspot_interpreter_of(const struct hotspot *s)
{
	enum { NO_MIRROR = 8 }; /* bcp is one word higher */

	return (struct hotspot_interpreter){
		.method = METHOD, .bcp = s->major <= NO_MIRROR ? -56 : -64, .method_reg = dwarf[RBX], .bcp_reg = dwarf[R13]
	};
}
