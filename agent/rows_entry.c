/* SPDX-License-Identifier: Apache-2.0 */
/* Gaps at the entry point become root rows. No state. */
#include <string.h>

#include "agent/rows_entry.h"

enum { ENTRY_CODE_BYTES = 128 }; /* glibc's _start and _dl_start_user together are about 80 */

static size_t insert_root(struct row *rows, size_t count, size_t at, uint64_t start, uint64_t end)
{
	memmove(&rows[at + 1], &rows[at], (count - at) * sizeof(*rows));
	memset(&rows[at], 0, sizeof(rows[at]));
	rows[at].start = start;
	rows[at].end = end;
	rows[at].cfa = ROW_CFA_ROOT;
	return count + 1;
}

size_t rows_add_entry(uint64_t entry, uint64_t start, uint64_t end, struct row *rows, size_t count, size_t max)
{
	uint64_t at = entry > start ? entry : start, stop = entry + ENTRY_CODE_BYTES < end ? entry + ENTRY_CODE_BYTES : end;

	for (size_t i = 0; at < stop && count < max; i++) {
		uint64_t gap_end;

		if (i < count && rows[i].end <= at)
			continue;
		gap_end = i < count && rows[i].start < stop ? rows[i].start : stop;
		if (at < gap_end)
			return insert_root(rows, count, i, at, gap_end); /* only the first gap: what follows is other code */
		return count;						 /* the entry point itself is covered */
	}
	return count;
}
