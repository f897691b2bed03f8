/* SPDX-License-Identifier: Apache-2.0 */
/* The row of a state of x86-64: by which register the CFA is found, and where the caller's registers are. */
#include <string.h>

#include "agent/rows/code/state_x86_64.h"
#include "base/cleanup.h"

/* rbp was saved where it then points: nothing that a called function does to the stack can make it wrong. */
bool code_state_has_frame(const struct code_state *s)
{
	return s->reg[RBP] == -16 && s->slot[SAVED_FP] == -16;
}

static bool find_cfa(const struct code_state *s, struct row *row)
{
	static const struct {
		int8_t reg;
		uint8_t dwarf;
	} order[] = { { RSP, REG_SP }, { RBP, REG_FP }, { RBX, DWARF_RBX }, { R12, 12 }, { R13, 13 }, { R14, 14 },
		      { R15, 15 },     { R10, 10 },	{ R11, 11 },	    { RAX, 0 },	 { RCX, 2 },  { RDX, 1 },
		      { RSI, 4 },      { RDI, 5 },	{ R8, 8 },	    { R9, 9 } };
	int base = code_is_aligned(s->reg[RBP]) ? RBP : RSP;

	if (code_is_place(s->cfa_slot) && code_is_aligned(s->reg[base]) && !code_is_offset(s->reg[RBP])) {
		row->cfa = ROW_CFA_DEREF;
		row->cfa_reg = base == RBP ? REG_FP : REG_SP;
		row->cfa_off = s->cfa_slot - s->reg[base];
		row->cfa_off2 = -s->cfa_slot_value;
		return true;
	}
	for (size_t i = code_state_has_frame(s); i < ARRAY_LEN(order); i++) {
		if (!code_is_offset(s->reg[order[i].reg]))
			continue;
		row->cfa = ROW_CFA_REG;
		row->cfa_reg = order[i].dwarf;
		row->cfa_off = -s->reg[order[i].reg];
		return true;
	}
	return false;
}

/* Converts a place to the form of row.saved. Places in the realigned part can only be told from rbp. */
static int32_t row_place(const struct code_state *s, int32_t slot)
{
	int64_t from_fp = (int64_t)slot - s->reg[RBP];

	if (code_is_offset(slot))
		return slot;
	if (code_is_aligned(slot) && code_is_aligned(s->reg[RBP]) && from_fp >= -ROW_AT_FP_REACH &&
	    from_fp <= ROW_AT_FP_REACH)
		return ROW_AT_FP + (int32_t)from_fp;
	return ROW_SAME;
}

/* The DWARF numbers of the registers by the processor's numbers. */
static const uint8_t dwarf_regs[CODE_REGS] = { 0, 2, 1, DWARF_RBX, REG_SP, REG_FP, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15 };

/*
 * The return address is in a register, to be pushed again when the arguments below it are others. It is found there; where
 * rsp is in relation to the caller's nobody may know: the caller goes on by its frame pointer.
 */
static bool returns_by_register(const struct code_state *s, struct row *row)
{
	bool is_measured = find_cfa(s, row) && row->cfa == ROW_CFA_REG;
	int reg = 0;

	while (reg < CODE_REGS && s->reg[reg] != CODE_RETURN)
		reg++;
	if (reg == CODE_REGS)
		return false;
	if (!is_measured)
		*row = (struct row){ .cfa = ROW_CFA_REG, .cfa_reg = REG_SP };
	for (int i = 0; i < CODE_SAVED; i++)
		row->saved[i] = is_measured ? row_place(s, s->slot[i]) : ROW_SAME;
	row->saved[SAVED_RA] = ROW_IN_REG + dwarf_regs[reg];
	return row->saved[SAVED_FP] != ROW_SAME || s->reg[RBP] == CODE_ENTRY;
}

/*
 * Nothing is known from the function's start. V8's code takes arguments away that others have pushed, and moves its own
 * return address to make room for more: a frame pointer's frame is one all the same, and without any the return address is
 * where it was when the function began.
 */
static bool guess_row(const struct code_state *s, struct row *row)
{
	bool has_frame = code_is_place(s->slot[SAVED_FP]) && s->slot[SAVED_FP] == s->reg[RBP];

	if (!has_frame && (!s->makes_room || s->reg[RBP] != CODE_ENTRY))
		return false;
	*row = (struct row){ .cfa = ROW_CFA_REG, .cfa_reg = has_frame ? REG_FP : REG_SP, .cfa_off = has_frame ? 16 : 8 };
	for (int i = 0; i < SAVED_MAX; i++)
		row->saved[i] = i == SAVED_RA ? -8 : i == SAVED_FP && has_frame ? -16 : ROW_SAME;
	return true;
}

bool code_state_row(const struct code_state *s, bool fp_only, struct row *row)
{
	memset(row, 0, sizeof(*row));
	if (s->reg[RBP] == CODE_OUTMOST && !code_is_place(s->slot[SAVED_FP])) {
		row->cfa = ROW_CFA_ROOT;
		return true;
	}
	if (s->no_return || (fp_only && !code_state_has_frame(s)) || !find_cfa(s, row))
		return guess_row(s, row) || (!fp_only && returns_by_register(s, row));
	row->is_behind_syscall = s->reg[RAX] == CODE_RESULT;
	for (int i = 0; i < CODE_SAVED; i++)
		row->saved[i] = row_place(s, s->slot[i]);
	row->saved[SAVED_RA] = -8;
	/* A caller's frame pointer that is neither in place nor saved would be taken from what this function put there. */
	return row->saved[SAVED_FP] != ROW_SAME || s->reg[RBP] == CODE_ENTRY;
}
