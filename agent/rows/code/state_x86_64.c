/* SPDX-License-Identifier: Apache-2.0 */
/*
 * x86-64's instructions as changes of what is known about a frame: which registers point into it and how far from the CFA,
 * and where the caller's registers were saved. Whatever is not understood makes its destination unknown, so knowledge is
 * only ever lost, never made up; memory is taken to change only where an instruction names a place in the frame. Most are
 * plain ones (plain_x86_64.h), all others are decoded by Zydis. state_row_x86_64.c makes rows of states.
 */
#include <errno.h>
#include <string.h>

#include "agent/rows/code/insn_x86_64.h"
#include "agent/rows/code/plain_x86_64.h"
#include "agent/rows/code/state_x86_64.h"
#include "base/cleanup.h"

#define U CODE_UNKNOWN
#define E CODE_ENTRY
const struct code_state code_state_entry = {
	.reg = { U, U, U, E, -8, E, U, U, U, U, U, U, E, E, E, E },
	.slot = { U, U, U, U, U, U },
	.cfa_slot = U,
	.return_slot = U,
	.kept_rsp = U,
	.compared = NO_REG,
};
static const struct code_state in_frame = {
	.reg = { U, U, U, U, U, -16, U, U, U, U, U, U, U, U, U, U }, /* rbp */
	.slot = { [SAVED_RBX] = U, [SAVED_FP] = -16, [SAVED_R12] = U, [SAVED_R13] = U, [SAVED_R14] = U, [SAVED_R15] = U },
	.cfa_slot = U,
	.return_slot = U,
	.kept_rsp = U,
	.compared = NO_REG,
};
const struct code_state *const code_state_in_frame = &in_frame;
#undef U
#undef E

static const int8_t saved_regs[CODE_SAVED] = {
	[SAVED_RBX] = RBX, [SAVED_FP] = RBP, [SAVED_R12] = R12, [SAVED_R13] = R13, [SAVED_R14] = R14, [SAVED_R15] = R15
};

/* --- values --- */

/* The number of the general register that @reg is or is a part of. */
static int reg_number(ZydisRegister reg)
{
	ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);

	return whole >= ZYDIS_REGISTER_RAX && whole <= ZYDIS_REGISTER_R15 ? (int)(whole - ZYDIS_REGISTER_RAX) : NO_REG;
}

/* The same for all 64 bits of it only. */
static int whole_reg(const ZydisDecodedOperand *operand)
{
	if (operand->type != ZYDIS_OPERAND_TYPE_REGISTER || operand->reg.value < ZYDIS_REGISTER_RAX ||
	    operand->reg.value > ZYDIS_REGISTER_R15)
		return NO_REG;
	return (int)(operand->reg.value - ZYDIS_REGISTER_RAX);
}

/* --- the frame --- */

/* Forgets what is saved in [from, to) of the frame; both from one origin. */
static void drop_slots(struct code_state *s, int64_t from, int64_t to)
{
	for (int i = 0; i < CODE_SAVED; i++)
		if (code_is_place(s->slot[i]) && s->slot[i] + 8 > from && s->slot[i] < to)
			s->slot[i] = CODE_UNKNOWN;
	if (code_is_place(s->cfa_slot) && s->cfa_slot + 8 > from && s->cfa_slot < to)
		s->cfa_slot = CODE_UNKNOWN;
	if (code_is_offset(s->return_slot) && s->return_slot + 8 > from && s->return_slot < to)
		s->return_slot = CODE_UNKNOWN;
}

/* The memory below @sp may be overwritten at any time. */
static void drop_below(struct code_state *s, int32_t sp)
{
	if (code_is_place(sp))
		drop_slots(s, (code_is_aligned(sp) ? CODE_ALIGNED : 0) - CODE_MAX_OFFSET - 8, sp);
}

/* The distance of rsp from the CFA is no longer known. Unless places are still told from an older one it is an origin now.
 */
static void lose_rsp(struct code_state *s)
{
	s->reg[RSP] = CODE_UNKNOWN;
	for (int i = 0; i < CODE_REGS; i++)
		if (code_is_aligned(s->reg[i]))
			return;
	drop_below(s, CODE_ALIGNED + CODE_MAX_OFFSET);
	s->reg[RSP] = CODE_ALIGNED;
}

static void set_reg(struct code_state *s, int reg, int32_t value)
{
	if (reg == RSP && !code_is_place(value)) {
		lose_rsp(s);
		return;
	}
	s->reg[reg] = value;
	if (reg != RSP)
		return;
	s->has_pushed = s->may_be_popped = false;
	drop_below(s, value);
	if (code_is_offset(value)) /* the realigned part is below it */
		drop_below(s, CODE_ALIGNED + CODE_MAX_OFFSET);
}

static void move_rsp(struct code_state *s, int64_t by)
{
	bool may_be_popped = s->may_be_popped;

	set_reg(s, RSP, code_shifted(s->reg[RSP], by));
	s->may_be_popped = may_be_popped;
}

/* A place in memory, as far as it is known to be in the frame, or CODE_UNKNOWN. */
static int32_t place_at(const struct code_state *s, int base, int64_t displacement)
{
	return code_shifted(s->reg[base], displacement);
}

static int32_t place_of(const struct code_state *s, const ZydisDecodedOperand *operand)
{
	int base = reg_number(operand->mem.base);

	if (base == NO_REG || operand->mem.index != ZYDIS_REGISTER_NONE || operand->mem.segment == ZYDIS_REGISTER_FS ||
	    operand->mem.segment == ZYDIS_REGISTER_GS)
		return CODE_UNKNOWN;
	return place_at(s, base, operand->mem.disp.value);
}

/*
 * The return address stands at @place now, where a function that takes its arguments away, or has others for the one it ends
 * with, has moved it: from here on the frame is as if it had been called there.
 */
static void begin_frame_again(struct code_state *s, int32_t place)
{
	int64_t by = code_is_offset(place) ? -8 - (int64_t)place : INT64_MAX;

	for (int i = 0; i < CODE_REGS; i++)
		if (code_is_offset(s->reg[i]))
			s->reg[i] = code_shifted(s->reg[i], by);
	for (int i = 0; i < CODE_SAVED; i++)
		if (code_is_offset(s->slot[i]))
			s->slot[i] = code_shifted(s->slot[i], by);
	s->cfa_slot = CODE_UNKNOWN;
	s->return_slot = CODE_UNKNOWN;
	s->no_return = false;
}

/* @reg (NO_REG: something else) is written to @place. */
static void store(struct code_state *s, int32_t place, int64_t bytes, int reg)
{
	if (!code_is_place(place))
		return;
	drop_slots(s, place, place + bytes);
	if (code_is_offset(place) && place < 0 && place + bytes > -8) {
		int32_t moved_to = s->return_slot;

		s->no_return = true;
		if (code_is_offset(moved_to)) {
			begin_frame_again(s, moved_to);
			place = code_shifted(place, -8 - moved_to);
		}
	}
	if (reg != NO_REG && s->reg[reg] == CODE_RETURN && bytes == 8 && code_is_offset(place))
		s->return_slot = place;
	if (bytes != 8 || place % 8 != 0 || reg == NO_REG)
		return;
	for (int i = 0; i < CODE_SAVED; i++)
		if (saved_regs[i] == reg && s->reg[reg] == CODE_ENTRY && !code_is_place(s->slot[i]))
			s->slot[i] = place;
	if (code_is_aligned(place) && !code_is_place(s->cfa_slot) && reg != RSP && code_is_offset(s->reg[reg])) {
		s->cfa_slot = place;
		s->cfa_slot_value = s->reg[reg];
	}
}

/* Returns the value that @reg has after it was read from @place. */
static int32_t load(const struct code_state *s, int32_t place, int reg)
{
	if (code_is_place(place) && place == s->cfa_slot)
		return s->cfa_slot_value;
	if (place == -8 && !s->no_return)
		return CODE_RETURN;
	for (int i = 0; i < CODE_SAVED && code_is_place(place); i++)
		if (saved_regs[i] == reg && s->slot[i] == place)
			return CODE_ENTRY;
	return CODE_UNKNOWN;
}

static void push_value(struct code_state *s, int reg, int32_t value, int64_t bytes)
{
	move_rsp(s, -bytes);
	s->has_pushed = true;
	store(s, place_at(s, RSP, 0), bytes, reg);
	if (value != CODE_RETURN || bytes != 8)
		return;
	if (code_is_place(s->reg[RBP]) && s->slot[SAVED_FP] == s->reg[RBP]) { /* made for the function that it returns to */
		s->reg[RBP] = CODE_ENTRY;
		s->slot[SAVED_FP] = CODE_UNKNOWN;
	}
	begin_frame_again(s, s->reg[RSP]);
	s->reg[RSP] = -8;
}

static void push(struct code_state *s, int reg, int64_t bytes)
{
	push_value(s, reg, reg == NO_REG ? CODE_UNKNOWN : s->reg[reg], bytes);
}

static void pop(struct code_state *s, int reg, int64_t bytes)
{
	int32_t value = reg == NO_REG ? CODE_UNKNOWN : load(s, place_at(s, RSP, 0), reg);

	move_rsp(s, bytes);
	if (reg != NO_REG)
		set_reg(s, reg, bytes == 8 ? value : CODE_UNKNOWN);
}

/* --- instructions --- */

struct decoded {
	ZydisDecodedInstruction insn;
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
};

/* Whatever it writes is unknown afterwards. */
static void forget_written(struct code_state *s, const struct decoded *d)
{
	for (int i = 0; i < d->insn.operand_count; i++) {
		const ZydisDecodedOperand *op = &d->op[i];
		int reg = op->type == ZYDIS_OPERAND_TYPE_REGISTER ? reg_number(op->reg.value) : NO_REG;

		if (!(op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			continue;
		if (reg != NO_REG)
			set_reg(s, reg, CODE_UNKNOWN);
		else if (op->type == ZYDIS_OPERAND_TYPE_MEMORY)
			store(s, place_of(s, op), op->size / 8, NO_REG);
	}
}

/*
 * rsp becomes something unknown. If it was just saved outside of the frame, this is a coroutine's switch: the code that it
 * goes to was left by the same code at the same depth, and the frame there looks like the one that it leaves.
 */
static int32_t switched_rsp(const struct code_state *s)
{
	return code_is_offset(s->kept_rsp) && s->kept_rsp == s->reg[RSP] ? s->kept_rsp : CODE_UNKNOWN;
}

static void do_mov(struct code_state *s, const struct decoded *d)
{
	int to = whole_reg(&d->op[0]), from = whole_reg(&d->op[1]);
	int32_t value = CODE_UNKNOWN;

	if (d->op[0].type == ZYDIS_OPERAND_TYPE_MEMORY) {
		int32_t place = place_of(s, &d->op[0]);

		store(s, place, d->op[0].size / 8, from);
		if (from == RSP && !code_is_place(place))
			s->kept_rsp = s->reg[RSP];
	} else if (to != NO_REG && (from != NO_REG || d->op[1].type == ZYDIS_OPERAND_TYPE_MEMORY)) {
		if (to == from)
			return;
		if (from == NO_REG)
			value = load(s, place_of(s, &d->op[1]), to);
		else if (code_is_place(s->reg[from]))
			value = s->reg[from];
		set_reg(s, to, to == RSP && value == CODE_UNKNOWN ? switched_rsp(s) : value);
	} else {
		forget_written(s, d);
	}
}

static void do_lea(struct code_state *s, const struct decoded *d)
{
	int to = whole_reg(&d->op[0]);

	if (to != NO_REG && d->insn.address_width == 64)
		set_reg(s, to, place_of(s, &d->op[1]));
	else
		forget_written(s, d);
}

/* add and sub (@sign -1) */
static void do_add(struct code_state *s, const struct decoded *d, int sign)
{
	int reg = whole_reg(&d->op[0]);

	s->makes_room |= reg == RSP && whole_reg(&d->op[1]) != NO_REG && s->reg[RSP] == -8;
	if (reg == NO_REG || d->op[1].type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
		forget_written(s, d);
	else if (reg == RSP)
		move_rsp(s, sign * d->op[1].imm.value.s);
	else
		set_reg(s, reg, code_shifted(s->reg[reg], sign * d->op[1].imm.value.s));
}

static void do_enter(struct code_state *s, const struct decoded *d)
{
	bool is_flat = d->op[1].imm.value.u == 0;

	push(s, RBP, 8);
	set_reg(s, RBP, is_flat ? s->reg[RSP] : CODE_UNKNOWN);
	set_reg(s, RSP, is_flat ? code_shifted(s->reg[RSP], -(int64_t)d->op[0].imm.value.u) : CODE_UNKNOWN);
}

static void do_call(struct code_state *s, struct code_step *step, uint64_t next)
{
	static const int8_t lost[] = { RAX, RCX, RDX, RSI, RDI, R8, R9, R10, R11 };

	if (step->has_target && step->target == next) { /* only to learn its own address */
		step->has_target = false;
		push(s, NO_REG, 8);
		return;
	}
	step->is_call = true;
	step->call_target = step->has_target ? step->target : 0;
	step->has_target = false;
	s->may_be_popped |= s->has_pushed && code_state_has_frame(s); /* V8's functions take their arguments away */
	for (size_t i = 0; i < ARRAY_LEN(lost); i++)
		s->reg[lost[i]] = CODE_UNKNOWN;
	drop_below(s, s->reg[RSP]);
}

static void do_xor(struct code_state *s, const struct decoded *d)
{
	bool is_zeroing = d->op[0].type == ZYDIS_OPERAND_TYPE_REGISTER && d->op[1].type == ZYDIS_OPERAND_TYPE_REGISTER &&
			  d->op[0].reg.value == d->op[1].reg.value && d->op[0].size >= 32;

	forget_written(s, d);
	if (is_zeroing && s->has_syscall && reg_number(d->op[0].reg.value) == RBP)
		set_reg(s, RBP, CODE_OUTMOST);
}

static void do_cmp(struct code_state *s, const struct decoded *d)
{
	int a = whole_reg(&d->op[0]), b = whole_reg(&d->op[1]);

	if (a == RSP || b == RSP)
		s->compared = a == RSP ? b : a;
}

/* Jumps, calls and what ends a path. False: something else. */
static bool step_branch(struct code_state *s, const struct decoded *d, uint64_t next, struct code_step *step)
{
	const ZydisDecodedOperand *op = &d->op[0];

	if (d->insn.meta.branch_type != ZYDIS_BRANCH_TYPE_NONE && op->type == ZYDIS_OPERAND_TYPE_IMMEDIATE &&
	    op->imm.is_relative) {
		step->has_target = true;
		step->target = next + op->imm.value.u;
	}
	switch (d->insn.meta.category) {
	case ZYDIS_CATEGORY_CALL:
		do_call(s, step, next);
		return true;
	case ZYDIS_CATEGORY_UNCOND_BR:
		step->goes_on = d->insn.mnemonic == ZYDIS_MNEMONIC_XABORT;
		step->is_indirect_jump = !step->has_target && !step->goes_on;
		return true;
	case ZYDIS_CATEGORY_COND_BR:
		if (d->insn.mnemonic == ZYDIS_MNEMONIC_XBEGIN || d->insn.mnemonic == ZYDIS_MNEMONIC_LOOP)
			forget_written(s, d);
		return true;
	case ZYDIS_CATEGORY_RET:
		step->goes_on = false;
		step->is_contradiction = code_is_offset(s->reg[RSP]) && s->reg[RSP] != -8;
		return true;
	default:
		return false;
	}
}

static void do_push(struct code_state *s, const struct decoded *d, int64_t width)
{
	/* Perhaps the return address, for what the code ends with; gcc copies it so where it realigns the stack. */
	if (d->op[0].type == ZYDIS_OPERAND_TYPE_MEMORY && code_is_offset(s->reg[RSP]))
		push_value(s, NO_REG, load(s, place_of(s, &d->op[0]), NO_REG), width);
	else
		push(s, whole_reg(&d->op[0]), width);
}

static void step_plain(struct code_state *s, const struct decoded *d, struct code_step *step)
{
	int64_t width = d->insn.operand_width == 16 ? 2 : 8;

	switch (d->insn.mnemonic) {
	case ZYDIS_MNEMONIC_PUSH:
		do_push(s, d, width);
		break;
	case ZYDIS_MNEMONIC_PUSHFQ:
		push(s, NO_REG, 8);
		break;
	case ZYDIS_MNEMONIC_POP:
		pop(s, reg_number(d->op[0].reg.value), width);
		break;
	case ZYDIS_MNEMONIC_POPFQ:
		pop(s, NO_REG, 8);
		break;
	case ZYDIS_MNEMONIC_LEAVE:
		set_reg(s, RSP, s->reg[RBP]);
		pop(s, RBP, 8);
		break;
	case ZYDIS_MNEMONIC_ENTER:
		do_enter(s, d);
		break;
	case ZYDIS_MNEMONIC_MOV:
		do_mov(s, d);
		break;
	case ZYDIS_MNEMONIC_LEA:
		do_lea(s, d);
		break;
	case ZYDIS_MNEMONIC_ADD:
		do_add(s, d, 1);
		break;
	case ZYDIS_MNEMONIC_SUB:
		do_add(s, d, -1);
		break;
	case ZYDIS_MNEMONIC_CMP:
		do_cmp(s, d);
		break;
	case ZYDIS_MNEMONIC_UD0:
	case ZYDIS_MNEMONIC_UD1:
	case ZYDIS_MNEMONIC_UD2:
	case ZYDIS_MNEMONIC_INT3:
	case ZYDIS_MNEMONIC_HLT:
		step->goes_on = false;
		step->is_trap = true;
		break;
	case ZYDIS_MNEMONIC_XOR:
		do_xor(s, d);
		break;
	case ZYDIS_MNEMONIC_SYSCALL:
		s->has_syscall = true;
		forget_written(s, d);
		s->reg[RAX] = CODE_RESULT;
		break;
	default:
		forget_written(s, d);
	}
}

static bool gives_up_frame(const struct decoded *d)
{
	return d->insn.mnemonic == ZYDIS_MNEMONIC_LEAVE ||
	       (d->insn.mnemonic == ZYDIS_MNEMONIC_MOV && whole_reg(&d->op[0]) == RSP && whole_reg(&d->op[1]) == RBP);
}

/* Below rbp, or rsp put there: rbp as its caller had it is no pointer that a function could use so. */
static bool works_below_rbp(const struct decoded *d)
{
	for (int i = 0; i < d->insn.operand_count_visible; i++)
		if (d->op[i].type == ZYDIS_OPERAND_TYPE_MEMORY && d->op[i].mem.base == ZYDIS_REGISTER_RBP &&
		    d->op[i].mem.index == ZYDIS_REGISTER_NONE && d->op[i].mem.disp.value < 0)
			return true;
	return gives_up_frame(d);
}

int state_step_by_zydis(const uint8_t *code, size_t len, uint64_t addr, struct code_state *s, struct code_step *step)
{
	int compared = s->compared;
	struct decoded d;

	if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(insn_decoder(), code, len, &d.insn, d.op)))
		return -EINVAL;
	*step = (struct code_step){ .length_bytes = d.insn.length, .goes_on = true, .equals_rsp = NO_REG };
	step->is_in_frame = s->reg[RBP] == CODE_ENTRY && works_below_rbp(&d);
	step->gives_up_frame = s->reg[RBP] == CODE_ENTRY && gives_up_frame(&d);
	s->compared = NO_REG;
	if (!step_branch(s, &d, addr + d.insn.length, step))
		step_plain(s, &d, step);
	if (d.insn.mnemonic == ZYDIS_MNEMONIC_JNZ && compared != NO_REG && code_is_place(s->reg[compared]))
		step->equals_rsp = (int8_t)compared;
	return 0;
}

static void do_plain(struct code_state *s, const struct plain *p)
{
	int32_t place = p->base == NO_REG || p->has_index ? CODE_UNKNOWN : place_at(s, p->base, p->displacement);
	int32_t value = CODE_UNKNOWN;

	switch (p->kind) {
	case PLAIN_NOTHING:
	case PLAIN_MAY_JUMP:
	case PLAIN_JUMP:
	case PLAIN_CALL:
		return;
	case PLAIN_STORE:
		store(s, place, p->bytes, p->from);
		return;
	case PLAIN_MOVE:
		if (p->to == p->from)
			return;
		value = code_is_place(s->reg[p->from]) ? s->reg[p->from] : CODE_UNKNOWN;
		break;
	case PLAIN_LOAD:
		value = load(s, place, p->to);
		break;
	case PLAIN_ADDRESS:
		value = place;
		break;
	case PLAIN_ADD:
		value = code_shifted(s->reg[p->to], p->number);
		break;
	case PLAIN_WRITE:
		break;
	}
	s->reg[p->to] = value;
}

int code_state_step(const uint8_t *code, size_t len, uint64_t addr, struct code_state *s, struct code_step *step)
{
	struct plain p;
	uint64_t next;

	/* A comparison with rsp just before makes this one a jump that says something. */
	if (s->compared != NO_REG || !plain_decode(code, len, &p))
		return state_step_by_zydis(code, len, addr, s, step);
	next = addr + p.length_bytes;
	*step = (struct code_step){ .length_bytes = p.length_bytes, .goes_on = p.kind != PLAIN_JUMP, .equals_rsp = NO_REG };
	step->is_in_frame = s->reg[RBP] == CODE_ENTRY && p.base == RBP && !p.has_index && p.displacement < 0;
	step->has_target = p.kind >= PLAIN_MAY_JUMP;
	step->target = step->has_target ? next + (uint64_t)p.number : 0;
	if (p.kind == PLAIN_CALL)
		do_call(s, step, next);
	else
		do_plain(s, &p);
	return 0;
}

void code_state_go_on(struct code_state *s, const struct code_step *step)
{
	if (step->equals_rsp != NO_REG)
		set_reg(s, RSP, s->reg[step->equals_rsp]);
}
