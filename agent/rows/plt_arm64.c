/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The builder for the linker's stubs in .plt, which no table covers on arm64: four instructions, always the same, that leave
 * sp and lr alone but for the first one. The state is the code's segments. One thread.
 */
#include <errno.h>
#include <string.h>

#include "agent/rows/code/starts.h"
#include "agent/rows/row_builder.h"
#include "base/cleanup.h"

enum { INSN_BYTES = 4, STUB_INSNS = 4 };

static int plt_open(const struct row_image *image, void **ret)
{
	struct code_starts *starts;
	int r = code_starts_new(image, &starts);

	if (!r)
		*ret = starts;
	return r;
}

/* The instruction at @addr; 0 where there is none. */
static uint32_t insn_at(const struct code_starts *starts, uint64_t addr)
{
	const uint8_t *code = code_starts_bytes(starts, addr, INSN_BYTES);
	uint32_t insn = 0;

	if (code)
		memcpy(&insn, code, sizeof(insn));
	return insn;
}

/* adrp x16; ldr x17, [x16, #n]; add x16, x16, #n; br x17. The first one in .plt has pushed x16 and x30 before. */
static bool find_plt(const struct code_starts *starts, uint64_t at, struct row *row)
{
	static const struct {
		uint32_t mask, value;
	} stub[STUB_INSNS] = { { 0x9f00001f, 0x90000010 },
			       { 0xffc003ff, 0xf9400211 },
			       { 0xffc003ff, 0x91000210 },
			       { 0xffffffff, 0xd61f0220 } };
	const uint32_t push = 0xa9bf7bf0; /* stp x16, x30, [sp, #-16]! */

	for (size_t i = 0; i < ARRAY_LEN(stub); i++)
		if ((insn_at(starts, at + i * INSN_BYTES) & stub[i].mask) != stub[i].value)
			return false;
	*row = (struct row){ .start = at, .end = at + STUB_INSNS * INSN_BYTES, .cfa = ROW_CFA_REG, .cfa_reg = REG_SP };
	for (int i = 0; i < SAVED_MAX; i++)
		row->saved[i] = ROW_SAME;
	if (at >= INSN_BYTES && insn_at(starts, at - INSN_BYTES) == push) {
		row->cfa_off = 16;
		row->saved[SAVED_RA] = -8;
	}
	return true;
}

static int plt_build(void *state, uint64_t start, uint64_t end, struct row *rows, size_t max, size_t *count_ret)
{
	const uint64_t reach = STUB_INSNS * INSN_BYTES; /* what begins so far before may still be there */
	uint64_t from = start & ~(uint64_t)(INSN_BYTES - 1);

	*count_ret = 0;
	for (uint64_t at = from > reach ? from - reach : 0; at < end; at += INSN_BYTES) {
		struct row row;

		if (!find_plt(state, at, &row))
			continue;
		row.start = row.start > start ? row.start : start;
		row.end = row.end < end ? row.end : end;
		if (row.start >= row.end)
			continue;
		if (*count_ret == max)
			return -ENOSPC;
		rows[(*count_ret)++] = row;
	}
	return 0;
}

static void plt_close(void *state)
{
	code_starts_free(state);
}

const struct row_builder rows_plt = {
	.name = "call stubs",
	.open = plt_open,
	.build = plt_build,
	.close = plt_close,
};
