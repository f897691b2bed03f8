/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of any shape into blocks: four bytes a row (gap, length, rule, offset). Whatever they are, the parts are well formed
 * and the kernel's search finds in them, at every address, what the row there says.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/walk/blocks.h"
#include "tests/unit/agent/stack_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BLOCK = 16, MAX_ROWS = 2 * CODE_BLOCK_BYTES };

static size_t make_rows(const uint8_t *data, size_t size, struct row *rows)
{
	uint64_t at = BLOCK * CODE_BLOCK_BYTES - 16;
	size_t n = 0;

	for (; size >= 4 && n < MAX_ROWS; size -= 4, data += 4) {
		struct row *row = &rows[n++];

		memset(row, 0, sizeof(*row));
		row->start = at + data[0] % 8;
		row->end = at = row->start + 1 + data[1] % 32;
		row->cfa = data[2] % (ROW_CFA_EXPR + 1);
		row->cfa_reg = data[2] >> 4;
		row->cfa_off = (int8_t)data[3] * (data[2] & 8 ? 1 << 20 : 8);
		for (int i = 0; i < SAVED_MAX; i++)
			row->saved[i] = data[3] & 1 << i ? ROW_SAME : -8 * (i + 1);
		if (!(data[3] & 128))
			row->saved[SAVED_RA] = -8;
	}
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct unwind_block parts[MAX_BLOCK_PARTS];
	static struct row rows[MAX_ROWS];
	size_t count = make_rows(data, size, rows);
	uint32_t n = blocks_pack(1, BLOCK, rows, count, parts), part = 0;

	if (n < 1 || n > MAX_BLOCK_PARTS || parts[n - 1].end != CODE_BLOCK_BYTES)
		abort();
	for (uint32_t i = 0; i < n; i++)
		if (parts[i].part != i || !parts[i].row_cnt || parts[i].row_cnt > BLOCK_ROWS)
			abort();
	for (uint32_t off = 0; off < CODE_BLOCK_BYTES; off++) {
		uint64_t addr = BLOCK * CODE_BLOCK_BYTES + off, expected = ROW(0, RULE_NONE, 0, 0, 0);

		for (size_t i = 0; i < count; i++)
			if (addr >= rows[i].start && addr < rows[i].end)
				expected = block_pack_row(&rows[i], 0);
		while (off >= parts[part].end)
			part++;
		if (ROW_BODY(unwind_search(parts[part].rows, parts[part].row_cnt, off)) != ROW_BODY(expected))
			abort();
	}
	return 0;
}
