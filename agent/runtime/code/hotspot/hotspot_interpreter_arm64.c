/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arm64's interpreter (src/hotspot/cpu/aarch64/frame_aarch64.hpp: return address at x29 + 8, sender_sp -8, last_sp -16,
 * Method* -24), and how instructions change a frame of it. A method is entered with the caller's sp in a register and the
 * return address in lr; its frame is written by and by, and x29 set when the pair that it is to point at has been saved.
 *
 * agent/rows/code/state.h has registers as offsets from one place. Here each register is a place of its own before the
 * instruction, so that behind it those that have kept their value are told, and copies of others, whatever the instruction
 * is.
 */
#include "agent/rows/code/state.h"
#include "agent/runtime/code/hotspot/hotspot_cpu.h"

enum {
	X12 = 12,
	X13 = 13,
	X19 = 19,
	X22 = 22,
	FP = 29,
	LR = 30,
	SP = 31,
	NO_REG = CODELET_NO_REG,
	NOWHERE = CODELET_NOWHERE
};
enum { METHOD = -24, INSN_BYTES = 4, SPACING = 1 << 20 };

static uint32_t bits(uint32_t insn, unsigned low, unsigned high)
{
	return insn << (31 - high) >> (31 - high + low);
}

static int32_t sbits(uint32_t insn, unsigned low, unsigned high)
{
	return (int32_t)(insn << (31 - high)) >> (31 - high + low);
}

/* --- registers --- */

static int32_t place_of(int reg)
{
	return reg * SPACING;
}

/* Is @value the register @reg plus *@off? */
static bool is_from(int32_t value, int reg, int32_t *off)
{
	*off = code_is_offset(value) ? value - place_of(reg) : SPACING;
	return *off > -SPACING / 2 && *off < SPACING / 2;
}

static bool is_kept(const struct code_state *after, int reg)
{
	return after->reg[reg] == place_of(reg);
}

/* The last register, but for sp, that has the value of @reg now; NO_REG: none. */
static int8_t where_is(const struct code_state *after, int reg)
{
	for (int8_t r = LR; reg != NO_REG && r >= 0; r--)
		if (r != reg && after->reg[r] == place_of(reg))
			return r;
	return (int8_t)(reg != NO_REG && is_kept(after, reg) ? reg : NO_REG);
}

static int16_t moved(int16_t at, int32_t by)
{
	int32_t place = at - by;

	return at == NOWHERE || place <= INT16_MIN || place > INT16_MAX ? NOWHERE : (int16_t)place;
}

/* --- memory --- */

/* A load or store of one or two registers of 8 bytes. */
struct access {
	bool is_load;
	int count, regs[2], base;
	int32_t off; /* from the base as it was before */
};

/* ldp, stp, ldr, str, ldur, stur, and those that move the base. False: it is another instruction. */
static bool read_access(uint32_t insn, struct access *a)
{
	enum { POST = 1, BY_REGISTER = 2 };
	uint32_t mode;

	*a = (struct access){ .is_load = bits(insn, 22, 22), .count = 1, .base = (int)bits(insn, 5, 9) };
	a->regs[0] = (int)bits(insn, 0, 4);
	if ((insn & 0xfe000000) == 0xa8000000) {
		a->count = 2;
		a->regs[1] = (int)bits(insn, 10, 14);
		mode = bits(insn, 23, 24) == POST ? POST : 0;
		a->off = sbits(insn, 15, 21) * 8;
	} else if ((insn & 0xff800000) == 0xf9000000) {
		mode = 0;
		a->off = (int32_t)bits(insn, 10, 21) * 8;
	} else if ((insn & 0xffa00000) == 0xf8000000) {
		mode = bits(insn, 10, 11);
		a->off = sbits(insn, 12, 20);
	} else {
		return false;
	}
	if (mode == POST)
		a->off = 0;
	return mode != BY_REGISTER;
}

/* The register @reg is written to @at from sp as it was before. */
static void note_store(struct codelet_state *s, int reg, int32_t at, bool is_pair_of_fp)
{
	if (at <= INT16_MIN || at > INT16_MAX)
		return;
	if (s->fp_at != NOWHERE && at == s->fp_at)
		s->fp_at = NOWHERE;
	if (reg == FP && is_pair_of_fp)
		s->fp_at = (int16_t)at;
	if (s->frame == CODELET_NONE) {
		if (s->ra_at != NOWHERE && at == s->ra_at)
			s->ra_at = NOWHERE;
		if (reg == s->ra_reg)
			s->ra_at = (int16_t)at;
		if (reg == s->method_reg)
			s->method_at = (int16_t)at;
		if (reg == s->sender_reg)
			s->sender_slot_at = (int16_t)at;
	} else if (s->frame == CODELET_POINTER && s->frame_at != NOWHERE) {
		s->has_sender |= at - s->frame_at == CODELET_SENDER_SP && reg == s->sender_reg;
		if (at - s->frame_at == METHOD && reg == s->method_reg)
			s->method_at = (int16_t)at;
	}
}

static void do_stores(struct codelet_state *s, const struct access *a)
{
	int32_t base;

	if (a->base == SP)
		base = 0;
	else if (a->base == FP && s->frame != CODELET_NONE && s->frame_at != NOWHERE)
		base = s->frame_at;
	else
		return;
	for (int i = 0; i < a->count; i++)
		note_store(s, a->regs[i], base + a->off + 8 * i, a->count == 2 && a->regs[0] == FP && a->regs[1] == LR);
}

/* The register that gets the word at @off from @base; NO_REG. */
static int8_t loaded(const struct access *a, int base, int32_t off)
{
	for (int i = 0; i < a->count; i++)
		if (a->is_load && a->base == base && a->off + 8 * i == off && a->regs[i] != SP)
			return (int8_t)a->regs[i];
	return NO_REG;
}

/* ldp x29, x30, [sp], #16, where sp is at the frame: it is given up. */
static bool gives_up(const struct codelet_state *s, const struct access *a)
{
	return a->is_load && a->count == 2 && a->base == SP && a->regs[0] == FP && a->regs[1] == LR &&
	       s->frame != CODELET_NONE && s->frame_at != NOWHERE && a->off == s->frame_at;
}

/* --- the frame --- */

static void lose(struct codelet_state *s)
{
	s->frame = CODELET_UNKNOWN;
}

/* sp moves, or gets another value. */
static void move_sp(struct codelet_state *s, const struct code_state *after, uint32_t insn)
{
	bool is_aligned_copy = (insn & 0xfffffc1f) == 0x927cec1f; /* and sp, xn, #-16: the caller's was a multiple */
	int32_t by;

	if (is_kept(after, SP))
		return;
	if (is_from(after->reg[SP], SP, &by)) {
		s->ra_at = moved(s->ra_at, by);
		if (s->ra_at < 0) /* popped */
			s->ra_at = NOWHERE;
		s->sender_at = moved(s->sender_at, by);
		s->frame_at = moved(s->frame_at, by);
		s->fp_at = moved(s->fp_at, by);
		s->method_at = moved(s->method_at, by);
		s->sender_slot_at = moved(s->sender_slot_at, by);
		return;
	}
	s->ra_at = s->sender_at = s->frame_at = s->fp_at = s->method_at = s->sender_slot_at = NOWHERE;
	if (s->frame != CODELET_NONE && is_from(after->reg[SP], FP, &by))
		s->frame_at = moved(0, by);
	else if (s->sender_reg != NO_REG && is_from(after->reg[SP], s->sender_reg, &by))
		s->sender_at = moved(0, by);
	else if (s->sender_reg != NO_REG && is_aligned_copy && (int)bits(insn, 5, 9) == s->sender_reg)
		s->sender_at = 0;
}

/* x29 has another value. */
static void change_fp(struct codelet_state *s, const struct code_state *after)
{
	int32_t at;

	if (!is_from(after->reg[FP], SP, &at) || s->fp_at == NOWHERE || at != s->fp_at ||
	    (s->frame != CODELET_WHOLE && (s->frame != CODELET_NONE || s->ra_at != at + 8))) {
		lose(s);
		return;
	}
	s->frame_at = (int16_t)at;
	if (s->frame == CODELET_WHOLE) {
		s->frame = CODELET_INNER;
		return;
	}
	s->frame = CODELET_POINTER;
	s->has_sender = s->sender_slot_at == at + CODELET_SENDER_SP;
}

static void leave(struct codelet_state *s)
{
	s->ra_at = s->sender_at = s->frame_at = s->fp_at = s->method_at = s->sender_slot_at = NOWHERE;
	if (s->frame == CODELET_INNER) {
		s->frame = CODELET_WHOLE;
		s->sender_reg = NO_REG;
	} else if (s->sender_reg == NO_REG) {
		lose(s);
	} else {
		s->frame = CODELET_NONE;
		s->ra_reg = LR;
		s->method_reg = NO_REG;
	}
}

/* All words that others look at are in place. */
static void finish(struct codelet_state *s)
{
	if (s->frame != CODELET_POINTER || !s->has_sender || s->frame_at == NOWHERE || s->method_at != s->frame_at + METHOD)
		return;
	s->frame = CODELET_WHOLE;
	s->ra_reg = s->sender_reg = s->method_reg = NO_REG;
}

static void take(struct codelet_state *s, const struct code_state *after, uint32_t insn)
{
	int8_t sender = NO_REG, ra = NO_REG;
	struct access a;

	if (!read_access(insn, &a))
		a.count = 0;
	if (gives_up(s, &a)) {
		leave(s);
		return;
	}
	if (s->frame == CODELET_WHOLE)
		sender = loaded(&a, FP, CODELET_SENDER_SP);
	if (s->frame == CODELET_NONE)
		ra = loaded(&a, SP, s->ra_at);
	if (!a.is_load)
		do_stores(s, &a);
	move_sp(s, after, insn);
	if (!is_kept(after, FP))
		change_fp(s, after);
	s->sender_reg = sender != NO_REG ? sender : where_is(after, s->sender_reg);
	s->ra_reg = ra != NO_REG ? ra : where_is(after, s->ra_reg);
	if (s->method_reg != NO_REG && !is_kept(after, s->method_reg))
		s->method_reg = NO_REG;
	finish(s);
}

bool hotspot_codelet_step(const uint8_t *code, size_t len, uint64_t off, struct codelet_state *state,
			  struct codelet_step *ret)
{
	struct code_state regs = code_state_entry;
	struct code_step step;

	for (int i = 0; i < CODE_REGS; i++)
		regs.reg[i] = place_of(i);
	if (off % INSN_BYTES || code_state_step(code + off, len - off, off, &regs, &step))
		return false;
	if (state->frame != CODELET_UNKNOWN)
		take(state, &regs, cpu_insn(code + off));
	*ret = (struct codelet_step){ .bytes = step.length_bytes,
				      .to = step.has_target ? step.target : UINT64_MAX,
				      .goes_on = step.goes_on,
				      .is_call = step.is_call };
	return true;
}

/* --- the interpreter --- */

static int8_t sender_reg_of(const struct hotspot *s)
{
	enum { SINCE = 19 }; /* r19_sender_sp of src/hotspot/cpu/aarch64/register_aarch64.hpp */

	return s->major >= SINCE ? X19 : X13;
}

struct codelet_state hotspot_codelet_begin(const struct hotspot *s, bool is_entry)
{
	struct codelet_state state = { .frame = CODELET_WHOLE,
				       .sender_reg = NO_REG,
				       .ra_reg = NO_REG,
				       .method_reg = NO_REG,
				       .ra_at = NOWHERE,
				       .sender_at = NOWHERE,
				       .frame_at = NOWHERE,
				       .fp_at = NOWHERE,
				       .method_at = NOWHERE,
				       .sender_slot_at = NOWHERE };

	if (!is_entry)
		return state;
	state.frame = CODELET_NONE;
	state.sender_reg = sender_reg_of(s);
	state.ra_reg = LR;
	state.method_reg = X12;
	return state;
}

uint8_t hotspot_dwarf_reg(int reg)
{
	return (uint8_t)(reg & 31);
}

struct hotspot_interpreter hotspot_interpreter_of(const struct hotspot *s)
{
	enum { NO_MIRROR = 8 }; /* nor a padding: bcp is two words higher */

	return (struct hotspot_interpreter){
		.method = METHOD, .bcp = s->major <= NO_MIRROR ? -56 : -72, .method_reg = X12, .bcp_reg = X22
	};
}
