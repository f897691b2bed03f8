/* SPDX-License-Identifier: Apache-2.0 */
/* Packing: pure functions, tested without a kernel. */
#include <string.h>

#include "agent/walk/blocks.h"

static int fits_s16(int64_t v)
{
	return v >= INT16_MIN && v <= INT16_MAX;
}

/* The place where the frame pointer was saved, in the packed row's form; false when there is no form for it. */
static bool pack_fp(int32_t saved, int16_t *ret)
{
	if (row_is_in_reg(saved) || row_is_at_sp(saved))
		return false;
	*ret = saved == ROW_SAME ? 0 : saved == ROW_AT_FP ? ROW_FP_AT_FP : (int16_t)(saved / 8);
	return saved == ROW_SAME || saved == ROW_AT_FP ||
	       (saved && saved % 8 == 0 && saved / 8 > ROW_FP_AT_FP && saved / 8 <= INT16_MAX);
}

static bool pack_pair(int64_t low, int64_t high, uint32_t *ret)
{
	*ret = ROW_PAIR(low, high);
	return fits_s16(low) && fits_s16(high);
}

/* The places of the CFA and the return address, as the upper half of a packed row; false when there is no form for them. */
static bool pack_places(const struct row *row, uint32_t *ret)
{
	int32_t ra = row->saved[SAVED_RA];

	if (!CPU_HAS_LR) {
		*ret = (uint32_t)row->cfa_off;
		return ra == -8;
	}
	if (ra == ROW_SAME)
		return row->cfa_off % 8 == 0 && pack_pair(row->cfa_off / 8, 0, ret);
	return row->cfa_off % 8 == 0 && ra % 8 == 0 && ra && !row_is_at_fp(ra) && pack_pair(row->cfa_off / 8, ra / 8, ret);
}

uint64_t block_pack_row(const struct row *row, uint16_t start)
{
	uint32_t base = row->cfa_reg == REG_FP ? BASE_FP : BASE_SP;
	uint32_t places;
	int16_t fp;

	if (row->is_end)
		return ROW(start, RULE_ROOT, ROOT_OF_RETURNS, 0, 0);
	if (row->is_guess) /* until user space knows better */
		return ROW(start, RULE_USER, 0, 0, 0);
	switch ((enum row_cfa)row->cfa) {
	case ROW_CFA_NONE:
		return ROW(start, RULE_NONE, 0, 0, 0);
	case ROW_CFA_ROOT:
		return ROW(start, RULE_ROOT, 0, 0, 0);
	case ROW_CFA_SIGNAL:
		return ROW(start, RULE_SIGNAL, 0, 0, 0);
	case ROW_CFA_TAGGED:
	case ROW_CFA_EXPR:
	case ROW_CFA_UNASKED:
		return ROW(start, RULE_USER, 0, 0, 0);
	case ROW_CFA_REG:
	case ROW_CFA_DEREF:
		if (row->cfa_reg != REG_FP && row->cfa_reg != REG_SP)
			return ROW(start, RULE_USER, 0, 0, 0);
		break;
	case ROW_CFA_PLT:
	case ROW_CFA_SCHED:
		break;
	}
	if (row->cfa == ROW_CFA_DEREF && row->cfa_reg == REG_FP && row->saved[SAVED_RA] == ROW_AT_FP + 8 &&
	    row->saved[SAVED_FP] == ROW_AT_FP && pack_pair(row->cfa_off, row->cfa_off2, &places))
		return ROW(start, RULE_FRAME, FRAME_DEREF, row->capture, places);
	if (row->capture && row->cfa == ROW_CFA_REG && row->cfa_reg == REG_FP &&
	    row->saved[SAVED_RA] == row->saved[SAVED_FP] + 8 && row->saved[SAVED_FP] == -row->cfa_off &&
	    pack_pair(row->cfa_off, 0, &places))
		return ROW(start, RULE_FRAME, FRAME_PLAIN, row->capture, places);
	if (row->capture || row->is_signal_frame || !pack_fp(row->saved[SAVED_FP], &fp) || !pack_places(row, &places))
		return ROW(start, RULE_USER, 0, 0, 0);
	if (row->cfa == ROW_CFA_REG)
		return ROW(start, RULE_CFA, base, fp, places);
	if (row->cfa == ROW_CFA_SCHED && row->cfa_reg <= SCHED_RETURNS_DEPTH)
		return ROW(start, RULE_SCHED, row->cfa_reg, fp, places);
	if (row->cfa == ROW_CFA_SCHED)
		return ROW(start, RULE_USER, 0, 0, 0);
	if (CPU_HAS_LR) /* its rows have no room for the others */
		return ROW(start, RULE_USER, 0, 0, 0);
	if (row->cfa == ROW_CFA_PLT)
		return ROW(start, RULE_PLT, 0, fp, places);
	if (!pack_pair(row->cfa_off, row->cfa_off2, &places))
		return ROW(start, RULE_USER, 0, 0, 0);
	return ROW(start, RULE_DEREF, base, fp, places);
}

/* Appends @packed unless it says what the row before it says. Returns the new count. */
static uint32_t add_row(uint64_t *all, uint32_t count, uint64_t packed)
{
	if (count && ROW_BODY(all[count - 1]) == ROW_BODY(packed))
		return count;
	all[count] = packed;
	return count + 1;
}

uint32_t blocks_pack(uint32_t file, uint64_t block, const struct row *rows, size_t count, struct unwind_block *parts)
{
	uint64_t all[2 * CODE_BLOCK_BYTES], base = block * CODE_BLOCK_BYTES, at = base;
	uint32_t n = 0, part = 0;

	for (size_t i = 0; i < count; i++) {
		const struct row *row = &rows[i];
		uint64_t start = row->start > base ? row->start : base;
		uint64_t end = row->end < base + CODE_BLOCK_BYTES ? row->end : base + CODE_BLOCK_BYTES;

		if (start >= end || start < at)
			continue;
		if (start > at)
			n = add_row(all, n, ROW(at - base, RULE_NONE, 0, 0, 0));
		n = add_row(all, n, block_pack_row(row, (uint16_t)(start - base)));
		at = end;
	}
	if (at < base + CODE_BLOCK_BYTES)
		n = add_row(all, n, ROW(at - base, RULE_NONE, 0, 0, 0));
	for (uint32_t i = 0; i < n; i += BLOCK_ROWS, part++) {
		struct unwind_block *b = &parts[part];
		uint32_t left = n - i, take = left < BLOCK_ROWS ? left : BLOCK_ROWS;

		memset(b, 0, sizeof(*b));
		b->file = file;
		b->block = (uint32_t)block;
		b->part = (uint16_t)part;
		b->end = (uint16_t)(left > BLOCK_ROWS ? ROW_START(all[i + BLOCK_ROWS]) : CODE_BLOCK_BYTES);
		b->row_cnt = take;
		memcpy(b->rows, &all[i], take * sizeof(*all));
	}
	return part;
}
