/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of the template interpreter's codelets. Frames there have a frame pointer, and beside the return address and the
 * caller's rbp a third word: the caller's sp (sender_sp), as arguments are popped with the frame
 * (src/hotspot/cpu/x86/frame_x86.hpp: return address at rbp + 8, sender_sp -8, last_sp -16, Method* -24).
 *
 * Codelets that methods are entered by begin without a frame: the caller's sp is in a register (r13), the return address on
 * the stack, then in a register, then on the stack again. Codelets that leave a method give the frame up first: the caller's
 * sp is in the register that it was read into. So the state of an instruction is where these two are; it is followed along
 * all paths.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/rows/code/insn_x86_64.h"
#include "agent/runtime/code/hotspot/hotspot_state.h"
#include "base/cleanup.h"

enum { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8, R9, R10, R11, R12, R13, R14, R15, NO_REG = -1 };
enum { SENDER_SP = -8, METHOD = -24, NOT_ON_STACK = INT16_MIN, MOST_INSNS = 65536 };

/* DWARF's numbers of the processor's. */
static const uint8_t dwarf[] = { 0, 2, 1, 3, REG_SP, REG_FP, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15 };

enum frame {
	FRAME_WHOLE,   /* all words are in place */
	FRAME_POINTER, /* rbp is set up; sp is @pushed bytes below it */
	FRAME_NONE,    /* rbp is the caller's */
	FRAME_UNKNOWN, /* something is lost */
};

struct state {
	uint8_t frame;	   /* enum frame */
	int8_t sender_reg; /* register with the caller's sp; NO_REG */
	int8_t ra_reg;	   /* register with the return address; NO_REG */
	int8_t method_reg; /* register with the Method* of the frame in the making; NO_REG */
	int16_t ra_at;	   /* FRAME_NONE: the return address stands at sp + this; NOT_ON_STACK */
	int16_t sender_at; /* the caller's sp is sp + this; NOT_ON_STACK: not known */
	int16_t pushed;	   /* FRAME_POINTER */
};

struct walk {
	const uint8_t *code;
	size_t len;
	uint64_t addr;
	struct state *states; /* by offset */
	uint8_t *lengths;     /* of the instruction there; 0: no path led there */
	uint32_t *todo;
	size_t todo_cnt, todo_cap;
};

static const struct state whole = { .frame = FRAME_WHOLE,
				    .sender_reg = NO_REG,
				    .ra_reg = NO_REG,
				    .method_reg = NO_REG,
				    .ra_at = NOT_ON_STACK,
				    .sender_at = NOT_ON_STACK };
static const struct state entered = {
	.frame = FRAME_NONE, .sender_reg = R13, .ra_reg = NO_REG, .method_reg = RBX, .sender_at = NOT_ON_STACK
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
static void move_sp(struct state *s, int64_t by)
{
	if (s->frame == FRAME_POINTER) {
		s->pushed = (int16_t)(s->pushed - by);
		if (s->pushed >= -METHOD)
			*s = whole;
		else if (s->pushed < 0)
			s->frame = FRAME_UNKNOWN;
		return;
	}
	if (by < -4096 || by > 4096) {
		s->ra_at = s->sender_at = NOT_ON_STACK;
		return;
	}
	if (s->ra_at != NOT_ON_STACK)
		s->ra_at = (int16_t)(s->ra_at - by);
	if (s->sender_at != NOT_ON_STACK)
		s->sender_at = (int16_t)(s->sender_at - by);
}

/* Register @reg has another value. */
static void forget(struct state *s, int reg)
{
	if (reg == s->sender_reg)
		s->sender_reg = NO_REG;
	if (reg == s->ra_reg)
		s->ra_reg = NO_REG;
	if (reg == s->method_reg)
		s->method_reg = NO_REG;
	if (reg == RSP)
		s->ra_at = s->sender_at = NOT_ON_STACK;
	if (reg == RBP && s->frame == FRAME_POINTER)
		s->frame = FRAME_UNKNOWN;
}

static void forget_written(struct state *s, const struct decoded *d)
{
	for (int i = 0; i < d->insn.operand_count; i++)
		if (d->op[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE && reg_of(&d->op[i]) != NO_REG &&
		    (reg_of(&d->op[i]) != RSP || i < d->insn.operand_count_visible))
			forget(s, reg_of(&d->op[i]));
}

static void do_push(struct state *s, int reg)
{
	move_sp(s, -8);
	if (s->frame == FRAME_NONE && reg != NO_REG && reg == s->ra_reg)
		s->ra_at = 0;
}

static void do_pop(struct state *s, int reg)
{
	bool is_ra = s->frame == FRAME_NONE && s->ra_at == 0;

	move_sp(s, 8);
	if (reg != NO_REG)
		forget(s, reg);
	if (is_ra && reg != NO_REG) {
		s->ra_reg = (int8_t)reg;
		s->ra_at = NOT_ON_STACK;
	}
}

static bool is_word_at_fp(const ZydisDecodedOperand *op, int64_t offset)
{
	return op->type == ZYDIS_OPERAND_TYPE_MEMORY && op->mem.base == ZYDIS_REGISTER_RBP &&
	       op->mem.index == ZYDIS_REGISTER_NONE && op->mem.disp.value == offset && op->size == 64;
}

static void do_mov(struct state *s, const struct decoded *d)
{
	int to = reg_of(&d->op[0]), from = reg_of(&d->op[1]);
	struct state before = *s;

	if (to == RBP && from == RSP && s->frame == FRAME_NONE) { /* the caller's rbp was pushed right before */
		s->frame = s->ra_at == 8 ? FRAME_POINTER : FRAME_UNKNOWN;
		s->pushed = 0;
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
	} else if (s->frame == FRAME_WHOLE && is_word_at_fp(&d->op[1], SENDER_SP)) {
		s->sender_reg = (int8_t)to;
	}
}

static void do_leave(struct state *s)
{
	if (s->frame != FRAME_WHOLE || s->sender_reg == NO_REG) {
		s->frame = FRAME_UNKNOWN;
		return;
	}
	s->frame = FRAME_NONE;
	s->ra_at = 0;
}

static void do_call(struct state *s)
{
	static const int8_t lost[] = { RAX, RCX, RDX, RSI, RDI, R8, R9, R10, R11 };

	for (size_t i = 0; i < ARRAY_LEN(lost); i++)
		forget(s, lost[i]);
}

/* Takes @s behind the instruction. */
static void step(struct state *s, const struct decoded *d)
{
	int sign = d->insn.mnemonic == ZYDIS_MNEMONIC_ADD ? 1 : -1;

	if (s->frame == FRAME_UNKNOWN)
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

static void arrive(struct walk *w, uint64_t off, const struct state *s)
{
	if (off >= w->len || w->lengths[off] || w->todo_cnt == w->todo_cap)
		return;
	w->states[off] = *s;
	w->todo[w->todo_cnt++] = (uint32_t)off;
}

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

static void follow(struct walk *w, uint64_t off)
{
	struct state s = w->states[off];

	while (off < w->len && !w->lengths[off]) {
		struct decoded d;
		uint64_t target;

		if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(insn_decoder(), w->code + off, w->len - off, &d.insn, d.op)))
			return;
		w->states[off] = s;
		w->lengths[off] = d.insn.length;
		step(&s, &d);
		target = target_of(&d, off);
		if (target != UINT64_MAX)
			arrive(w, target, &s);
		if (ends_path(&d))
			return;
		off += d.insn.length;
	}
}

static void follow_all(struct walk *w, uint64_t from, const struct state *s)
{
	arrive(w, from, s);
	while (w->todo_cnt)
		follow(w, w->todo[--w->todo_cnt]);
}

/* --- rows --- */

static struct row row_of(const struct state *s)
{
	struct row r = { .cfa = ROW_CFA_REG };

	for (int i = 0; i < SAVED_MAX; i++)
		r.saved[i] = ROW_SAME;
	if (s->frame == FRAME_UNKNOWN) {
		r.cfa = ROW_CFA_NONE;
		memset(r.saved, 0, sizeof(r.saved));
		return r;
	}
	r.capture = s->frame == FRAME_WHOLE ? CAPTURE_FRAME : s->method_reg == RBX ? CAPTURE_ENTRY : 0;
	if (s->frame != FRAME_NONE) {
		r.saved[SAVED_RA] = ROW_AT_FP + 8;
		r.saved[SAVED_FP] = ROW_AT_FP;
	}
	if (s->frame == FRAME_WHOLE || (s->frame == FRAME_POINTER && s->pushed >= -SENDER_SP)) {
		r.cfa = ROW_CFA_DEREF;
		r.cfa_reg = REG_FP;
		r.cfa_off = SENDER_SP;
		return r;
	}
	if (s->frame == FRAME_NONE)
		r.saved[SAVED_RA] = s->ra_at != NOT_ON_STACK ? ROW_AT_SP + s->ra_at : ROW_IN_REG + dwarf[s->ra_reg & 15];
	if (s->sender_reg != NO_REG) {
		r.cfa_reg = dwarf[s->sender_reg];
	} else if (s->sender_at != NOT_ON_STACK) {
		r.cfa_reg = REG_SP;
		r.cfa_off = s->sender_at;
	} else {
		r.cfa = ROW_CFA_NONE;
	}
	if (s->frame == FRAME_NONE && s->ra_at == NOT_ON_STACK && s->ra_reg == NO_REG)
		r.cfa = ROW_CFA_NONE;
	return r;
}

static bool same_rules(const struct row *a, const struct row *b)
{
	return a->cfa == b->cfa && a->cfa_reg == b->cfa_reg && a->cfa_off == b->cfa_off && a->capture == b->capture &&
	       memcmp(a->saved, b->saved, sizeof(a->saved)) == 0;
}

/* Code that no path led to runs in a frame: whoever jumps there has one. */
static size_t collect(const struct walk *w, struct row *rows)
{
	size_t n = 0;

	for (uint64_t off = 0; off < w->len;) {
		uint64_t bytes = w->lengths[off];
		struct row r = row_of(bytes ? &w->states[off] : &whole);

		if (!bytes)
			bytes = 1;
		r.start = w->addr + off;
		r.end = r.start + bytes;
		off += bytes;
		if (n && same_rules(&rows[n - 1], &r))
			rows[n - 1].end = r.end;
		else
			rows[n++] = r;
	}
	return n;
}

int hotspot_interpreter_rows(const uint8_t *code, size_t len, uint64_t addr, bool is_entry, struct row **ret,
			     size_t *count_ret)
{
	struct walk w = { .code = code, .len = len, .addr = addr, .todo_cap = len };
	int error = 0;

	w.states = calloc(len + 1, sizeof(*w.states));
	w.lengths = calloc(len + 1, sizeof(*w.lengths));
	w.todo = calloc(len + 1, sizeof(*w.todo));
	*ret = calloc(len + 1, sizeof(**ret));
	if (!w.states || !w.lengths || !w.todo || !*ret) {
		free(*ret);
		error = -ENOMEM;
	} else {
		follow_all(&w, 0, is_entry ? &entered : &whole);
		*count_ret = collect(&w, *ret);
	}
	free(w.states);
	free(w.lengths);
	free(w.todo);
	return error;
}
