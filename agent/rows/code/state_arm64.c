/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arm64's instructions as changes of what is known about a frame: which registers point into it and how far from the CFA,
 * and where the caller's registers were saved. All are four bytes long, so the few that matter are read by their bits (Arm
 * Architecture Reference Manual, C4.1). Whatever is not understood makes its destination unknown, so knowledge is only ever
 * lost, never made up; memory is taken to change only where an instruction names a place in the frame.
 */
#include <errno.h>
#include <string.h>

#include "agent/rows/code/state.h"
#include "base/cleanup.h"

enum { FP = 29, LR = 30, SP = 31, NO_REG = -1 };
enum { INSN_BYTES = 4, NOP = 0xd503201f, PACIASP = 0xd503233f };

#define U CODE_UNKNOWN
#define E CODE_ENTRY
const struct code_state code_state_entry = {
	.reg = { U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, E, E, E, E, E, E, E, E, E, E, E, E, 0 },
	.slot = { U, U, U, U, U, U, U, U, U, U, U, U },
	.cfa_slot = U,
	.return_slot = U,
	.kept_rsp = U,
	.compared = NO_REG,
};
const struct code_state *const code_state_in_frame = NULL;
#undef U
#undef E

static uint32_t read_insn(const uint8_t *code)
{
	uint32_t insn;

	memcpy(&insn, code, sizeof(insn));
	return insn;
}

/* Bits @low to @high of @insn, as an unsigned and as a signed number. */
static uint32_t bits(uint32_t insn, unsigned low, unsigned high)
{
	return insn << (31 - high) >> (31 - high + low);
}

static int64_t sbits(uint32_t insn, unsigned low, unsigned high)
{
	return (int32_t)(insn << (31 - high)) >> (31 - high + low);
}

/* --- the frame --- */

/* Forgets saved registers in [from, to) of the frame. */
static void drop_slots(struct code_state *s, int64_t from, int64_t to)
{
	for (int i = 0; i < CODE_SAVED; i++)
		if (code_is_offset(s->slot[i]) && s->slot[i] + 8 > from && s->slot[i] < to)
			s->slot[i] = CODE_UNKNOWN;
	if (code_is_offset(s->cfa_slot) && s->cfa_slot + 8 > from && s->cfa_slot < to)
		s->cfa_slot = CODE_UNKNOWN;
}

static void set_reg(struct code_state *s, unsigned reg, int32_t value)
{
	s->reg[reg] = value;
	if (reg == SP && code_is_offset(value)) /* what is below may be overwritten at any time */
		drop_slots(s, INT32_MIN, value);
}

/* The number 31 means no register here. */
static void forget(struct code_state *s, unsigned reg)
{
	if (reg != SP)
		set_reg(s, reg, CODE_UNKNOWN);
}

/*
 * @reg (SP: zero, NO_REG: something else) is written to @off of the frame. A word in place of the return address that x29
 * points at is where the function returns to from now on.
 */
static void store(struct code_state *s, int32_t off, int64_t bytes, int reg)
{
	if (!code_is_offset(off) || (bytes == 8 && off == s->slot[SAVED_RA] && code_state_has_frame(s)))
		return;
	drop_slots(s, off, off + bytes);
	if (reg == FP && bytes == 8 && code_is_offset(s->reg[FP])) { /* a frame within the function's */
		s->cfa_slot = off;
		s->cfa_slot_value = s->reg[FP];
	}
	for (int i = 0; i < CODE_SAVED && bytes == 8 && off % 8 == 0; i++)
		if (row_saved_regs[i] == reg && s->reg[reg] == CODE_ENTRY && !code_is_offset(s->slot[i]))
			s->slot[i] = off;
}

/* Returns the value that @reg has after it was read from @off. */
static int32_t load(const struct code_state *s, int32_t off, unsigned reg)
{
	for (int i = 0; i < CODE_SAVED && code_is_offset(off); i++)
		if (row_saved_regs[i] == reg && s->slot[i] == off)
			return CODE_ENTRY;
	return reg == FP && code_is_offset(off) && s->cfa_slot == off ? s->cfa_slot_value : CODE_UNKNOWN;
}

/* A load or store of one or two registers of @bytes each. */
struct access {
	bool is_load, is_vector;
	int64_t bytes;
	unsigned regs[2], count;
};

static void do_access(struct code_state *s, int32_t off, const struct access *a)
{
	for (unsigned i = 0; i < a->count; i++) {
		int32_t at = code_shifted(off, (int64_t)i * a->bytes);

		if (!a->is_load)
			store(s, at, a->bytes, a->is_vector ? NO_REG : (int)a->regs[i]);
		else if (!a->is_vector && a->regs[i] != SP)
			set_reg(s, a->regs[i], a->bytes == 8 ? load(s, at, a->regs[i]) : CODE_UNKNOWN);
	}
}

/* The same at the register @base, which may change before or after. */
enum index_mode { NO_INDEX, POST_INDEX, PRE_INDEX };

static void do_indexed(struct code_state *s, unsigned base, int64_t displacement, enum index_mode mode,
		       const struct access *a)
{
	int32_t moved = code_shifted(s->reg[base], displacement);

	/* A store below the stack pointer and its new value come together. */
	if (mode == PRE_INDEX && !a->is_load)
		set_reg(s, base, moved);
	do_access(s, mode == POST_INDEX ? s->reg[base] : moved, a);
	if (mode == POST_INDEX || (mode == PRE_INDEX && a->is_load))
		set_reg(s, base, moved);
}

/* --- instructions --- */

/* ldp, stp and their kin. */
static void do_pair(struct code_state *s, uint32_t insn)
{
	static const enum index_mode modes[] = { NO_INDEX, POST_INDEX, NO_INDEX, PRE_INDEX };
	bool is_vector = bits(insn, 26, 26);
	unsigned opc = bits(insn, 30, 31);
	struct access a = {
		.is_load = bits(insn, 22, 22),
		.is_vector = is_vector,
		.bytes = is_vector  ? 4 << opc
			 : opc == 2 ? 8
				    : 4,
		.regs = { bits(insn, 0, 4), bits(insn, 10, 14) },
		.count = 2,
	};

	do_indexed(s, bits(insn, 5, 9), sbits(insn, 15, 21) * a.bytes, modes[bits(insn, 23, 24)], &a);
}

/* ldr, str and their kin: with an immediate of either kind, or a place that is not known. */
static void do_single(struct code_state *s, uint32_t insn)
{
	static const enum index_mode modes[] = { NO_INDEX, POST_INDEX, NO_INDEX, PRE_INDEX };
	bool is_vector = bits(insn, 26, 26);
	unsigned opc = bits(insn, 22, 23), size = bits(insn, 30, 31) | (is_vector && opc >= 2 ? 4 : 0);
	struct access a = {
		.is_load = is_vector ? opc & 1 : opc != 0,
		.is_vector = is_vector,
		.bytes = 1ll << (size > 4 ? 4 : size),
		.regs = { bits(insn, 0, 4) },
		.count = 1,
	};

	if (bits(insn, 24, 24)) {
		do_indexed(s, bits(insn, 5, 9), (int64_t)bits(insn, 10, 21) * a.bytes, NO_INDEX, &a);
	} else if (!bits(insn, 21, 21)) {
		do_indexed(s, bits(insn, 5, 9), sbits(insn, 12, 20), modes[bits(insn, 10, 11)], &a);
	} else { /* by a register, atomic, or with an authenticated pointer, which may write back */
		if (!is_vector)
			forget(s, bits(insn, 0, 4));
		if (bits(insn, 10, 11) == 3)
			set_reg(s, bits(insn, 5, 9), CODE_UNKNOWN);
	}
}

static void do_load_store(struct code_state *s, uint32_t insn)
{
	switch (bits(insn, 27, 29)) {
	case 5:
		do_pair(s, insn);
		break;
	case 7:
		do_single(s, insn);
		break;
	case 3: /* of a literal; tags and copies, which change their registers */
		if (!bits(insn, 26, 26))
			forget(s, bits(insn, 0, 4));
		if (bits(insn, 24, 24)) {
			set_reg(s, bits(insn, 5, 9), CODE_UNKNOWN);
			forget(s, bits(insn, 16, 20));
		}
		break;
	default: /* exclusive and ordered, compare and swap; of vectors, whose base may move */
		if (!bits(insn, 26, 26)) {
			forget(s, bits(insn, 0, 4));
			forget(s, bits(insn, 10, 14));
			forget(s, bits(insn, 16, 20));
		} else if (bits(insn, 23, 23)) {
			set_reg(s, bits(insn, 5, 9), CODE_UNKNOWN);
		}
	}
}

/* add, sub, and what else has an immediate. Register 31 is sp in add, sub and the logical ones that set no flags. */
static void do_immediate(struct code_state *s, uint32_t insn)
{
	unsigned rd = bits(insn, 0, 4), rn = bits(insn, 5, 9);
	bool sets_flags = bits(insn, 29, 29);

	if (bits(insn, 23, 25) == 2 && bits(insn, 31, 31)) {
		int64_t by = (int64_t)bits(insn, 10, 21) << (bits(insn, 22, 22) ? 12 : 0);

		if (rd != SP || !sets_flags)
			set_reg(s, rd, code_shifted(s->reg[rn], bits(insn, 30, 30) ? -by : by));
	} else if (bits(insn, 23, 25) == 4 && bits(insn, 29, 30) != 3) {
		set_reg(s, rd, CODE_UNKNOWN);
	} else if ((insn & 0xffffffe0) == 0xd2800000 && rd == FP && s->has_syscall) { /* mov x29, #0 */
		set_reg(s, rd, CODE_OUTMOST);
	} else {
		forget(s, rd);
	}
}

/* The value that @rd has after that of @rm was moved into it. The return address may be kept in another register meanwhile.
 */
static int32_t moved_value(const struct code_state *s, unsigned rd, unsigned rm)
{
	int32_t value = rm == SP ? CODE_UNKNOWN : s->reg[rm];

	if (code_is_offset(value))
		return value;
	if ((rm == LR && value == CODE_ENTRY) || value == CODE_RETURN)
		return rd == LR ? CODE_ENTRY : CODE_RETURN;
	return CODE_UNKNOWN;
}

static void do_register(struct code_state *s, uint32_t insn)
{
	unsigned rd = bits(insn, 0, 4), rm = bits(insn, 16, 20);

	if ((insn & 0xffe0ffe0) == 0xaa0003e0) { /* mov xd, xm */
		if (rd != SP && rd != rm)
			set_reg(s, rd, moved_value(s, rd, rm));
	} else if ((insn & 0x3fe00000) == 0x0b200000) { /* add, sub with an extended register: sp may be the destination */
		set_reg(s, rd, CODE_UNKNOWN);
	} else {
		forget(s, rd);
	}
}

/* Instructions on vectors that write a general register. */
static void do_vector(struct code_state *s, uint32_t insn)
{
	bool converts = (insn & 0x5f20fc00) == 0x1e200000 || (insn & 0x5f200000) == 0x1e000000;
	bool moves = (insn & 0xbfe0fc00) == 0x0e003c00 || (insn & 0xbfe0fc00) == 0x0e002c00;

	if (converts || moves)
		forget(s, bits(insn, 0, 4));
}

static void do_call(struct code_state *s, struct code_step *step)
{
	step->is_call = true;
	for (unsigned reg = 0; reg <= 18; reg++)
		s->reg[reg] = CODE_UNKNOWN;
	s->reg[LR] = CODE_UNKNOWN;
	if (code_is_offset(s->reg[SP]))
		drop_slots(s, INT32_MIN, s->reg[SP]);
}

static void do_jump(struct code_step *step, uint64_t addr, int64_t words, bool is_conditional)
{
	step->has_target = true;
	step->target = addr + (uint64_t)(words * INSN_BYTES);
	step->goes_on = is_conditional;
}

/* br, blr, ret and their signed forms. */
static void do_indirect(struct code_state *s, uint32_t insn, struct code_step *step)
{
	switch (bits(insn, 21, 23)) {
	case 1:
		do_call(s, step);
		break;
	case 2:
		step->goes_on = false;
		step->is_contradiction = code_is_offset(s->reg[SP]) && s->reg[SP] != 0;
		break;
	default:
		step->goes_on = false;
		step->is_indirect_jump = true;
	}
}

static void do_branch_or_system(struct code_state *s, uint32_t insn, uint64_t addr, struct code_step *step)
{
	if ((insn & 0xfc000000) == 0x14000000) {
		do_jump(step, addr, sbits(insn, 0, 25), false);
	} else if ((insn & 0xfc000000) == 0x94000000) {
		do_call(s, step);
		step->call_target = addr + (uint64_t)(sbits(insn, 0, 25) * INSN_BYTES);
	} else if ((insn & 0xff000000) == 0x54000000 || (insn & 0x7e000000) == 0x34000000) { /* b.cond, cbz, cbnz */
		do_jump(step, addr, sbits(insn, 5, 23), true);
	} else if ((insn & 0x7e000000) == 0x36000000) { /* tbz, tbnz */
		do_jump(step, addr, sbits(insn, 5, 18), true);
	} else if ((insn & 0xfe000000) == 0xd6000000) {
		do_indirect(s, insn, step);
	} else if ((insn & 0xffe0001f) == 0xd4000001) { /* svc */
		s->has_syscall = true;
		s->reg[0] = CODE_UNKNOWN;
	} else if ((insn & 0xff000000) == 0xd4000000) { /* brk, hlt */
		step->goes_on = false;
		step->is_trap = true;
	} else if ((insn & 0xfff00000) == 0xd5300000) { /* mrs */
		forget(s, bits(insn, 0, 4));
	}
	/* The hints among the rest sign and check lr, which for a walk stays what it was. */
}

int code_state_step(const uint8_t *code, size_t len, uint64_t addr, struct code_state *s, struct code_step *step)
{
	uint32_t insn;

	if (len < INSN_BYTES)
		return -EINVAL;
	insn = read_insn(code);
	*step = (struct code_step){ .length_bytes = INSN_BYTES, .goes_on = true };
	switch (bits(insn, 25, 28)) {
	case 0: /* udf, SME */
		if (!(insn >> 16))
			return -EINVAL;
		break;
	case 2: /* SVE: addvl and addpl move the stack pointer */
		if ((insn & 0xffa0f000) == 0x04205000)
			set_reg(s, bits(insn, 0, 4), CODE_UNKNOWN);
		else
			forget(s, bits(insn, 0, 4));
		break;
	case 8:
	case 9:
		do_immediate(s, insn);
		break;
	case 10:
	case 11:
		do_branch_or_system(s, insn, addr, step);
		break;
	case 4:
	case 6:
	case 12:
	case 14:
		do_load_store(s, insn);
		break;
	case 5:
	case 13:
		do_register(s, insn);
		break;
	case 7:
	case 15:
		do_vector(s, insn);
		break;
	default: /* not allocated */
		return -EINVAL;
	}
	return 0;
}

void code_state_go_on(struct code_state *s, const struct code_step *step)
{
	(void)s;
	(void)step;
}

/* --- functions --- */

uint32_t code_padding_bytes(const uint8_t *code, size_t len)
{
	uint32_t insn;

	if (len < INSN_BYTES)
		return len && !*code;
	insn = read_insn(code);
	return insn == NOP || insn >> 16 == 0 || (insn & 0xffe0001f) == 0xd4200000 ? INSN_BYTES : 0;
}

/* brk, hlt */
static bool is_trap(uint32_t insn)
{
	return (insn & 0xff000000) == 0xd4000000 && (insn & 0x1f) == 0;
}

uint32_t code_trap_bytes(const uint8_t *code, size_t len)
{
	return len >= INSN_BYTES && is_trap(read_insn(code)) ? INSN_BYTES : 0;
}

bool code_is_call(const uint8_t *code, size_t len)
{
	uint32_t insn = len == INSN_BYTES ? read_insn(code) : 0;

	return (insn & 0xfc000000) == 0x94000000 || (insn & 0xfee0f000) == 0xd6200000;
}

/* ret, br and b */
static bool ends_path(uint32_t insn)
{
	return ((insn & 0xfe000000) == 0xd6000000 && bits(insn, 21, 23) != 1) || (insn & 0xfc000000) == 0x14000000;
}

bool code_may_follow(const uint8_t *code, uint64_t off)
{
	return off % INSN_BYTES == 0 && (off % 16 == 0 || code_padding_bytes(code + off - INSN_BYTES, INSN_BYTES) ||
					 ends_path(read_insn(code + off - INSN_BYTES)));
}

/* stp x29, x30, [sp, #n]! */
static bool makes_frame(uint32_t insn)
{
	return (insn & 0xffc07fff) == 0xa9807bfd;
}

bool code_begins_function(const uint8_t *code, uint64_t off, uint64_t len)
{
	uint32_t before, insn;
	bool is_behind_padding;

	if (off % INSN_BYTES || off + INSN_BYTES > len || code_padding_bytes(code + off, INSN_BYTES))
		return false;
	if (!off)
		return true;
	before = read_insn(code + off - INSN_BYTES);
	is_behind_padding = code_padding_bytes(code + off - INSN_BYTES, INSN_BYTES);
	if (is_behind_padding && before != NOP && off % CODE_FUNCTION_ALIGN == 0)
		return true;
	insn = read_insn(code + off);
	return (insn == PACIASP || makes_frame(insn)) && (is_behind_padding || ends_path(before));
}

/* bl; adrp and the add that makes an address of it. */
static bool find_reference(const uint8_t *segment, uint64_t addr, uint64_t at, uint64_t *target)
{
	uint32_t insn, next;

	if ((addr + at) % INSN_BYTES)
		return false;
	insn = read_insn(segment + at);
	next = read_insn(segment + at + INSN_BYTES);
	if ((insn & 0xfc000000) == 0x94000000) {
		*target = addr + at + (uint64_t)(sbits(insn, 0, 25) * INSN_BYTES);
		return true;
	}
	if ((insn & 0x9f000000) != 0x90000000 || (next & 0xffc00000) != 0x91000000 || bits(next, 5, 9) != bits(insn, 0, 4))
		return false;
	*target = ((addr + at) & ~0xfffull) + (uint64_t)(sbits(insn, 5, 23) * 4 + bits(insn, 29, 30)) * 4096 +
		  bits(next, 10, 21);
	return true;
}

uint64_t code_next_reference(const uint8_t *segment, uint64_t addr, uint64_t at, uint64_t end, uint64_t *target)
{
	while (at < end && !find_reference(segment, addr, at, target))
		at++;
	return at;
}

/* Functions too long to follow are left to their frame pointers. */
size_t code_prologue_bytes(const uint8_t *code, size_t len, struct row *frame)
{
	(void)code;
	(void)len;
	memset(frame, 0, sizeof(*frame));
	return 0;
}

bool code_ends_frame(const uint8_t *code)
{
	(void)code;
	return false;
}

/* --- states --- */

/* x29 points at the place where it and lr were saved. */
bool code_state_has_frame(const struct code_state *s)
{
	return code_is_offset(s->reg[FP]) && s->slot[SAVED_FP] == s->reg[FP] && s->slot[SAVED_RA] == s->reg[FP] + 8;
}

/* The register that functions leave alone and that keeps the return address; 0: none. */
static unsigned return_reg(const struct code_state *s)
{
	enum { FIRST = 19 };

	for (unsigned reg = FIRST; reg < FP; reg++)
		if (s->reg[reg] == CODE_RETURN)
			return reg;
	return 0;
}

bool code_state_row(const struct code_state *s, bool fp_only, struct row *row)
{
	bool has_fp = code_state_has_frame(s), is_saved = code_is_offset(s->slot[SAVED_RA]);
	unsigned in_reg = is_saved ? 0 : return_reg(s);
	bool has_lr = is_saved || in_reg || s->reg[LR] == CODE_ENTRY;
	unsigned base = has_fp || !code_is_offset(s->reg[SP]) ? FP : SP;

	memset(row, 0, sizeof(*row));
	if (s->reg[FP] == CODE_OUTMOST && !code_is_offset(s->slot[SAVED_FP])) {
		row->cfa = ROW_CFA_ROOT;
		return true;
	}
	if ((fp_only && !has_fp) || !has_lr || !code_is_offset(s->reg[base]))
		return false;
	row->cfa = ROW_CFA_REG;
	row->cfa_reg = base == FP ? REG_FP : REG_SP;
	row->cfa_off = -s->reg[base];
	for (int i = 0; i < SAVED_MAX; i++)
		row->saved[i] = code_is_offset(s->slot[i]) ? s->slot[i] : ROW_SAME;
	if (in_reg)
		row->saved[SAVED_RA] = ROW_IN_REG + (int32_t)in_reg;
	/* A caller's frame pointer that is neither in place nor saved would be taken from what this function put there. */
	return code_is_offset(s->slot[SAVED_FP]) || s->reg[FP] == CODE_ENTRY;
}
