/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call frame programs as compilers write them, read without libdw: a function's rows in one pass, where libdw runs its
 * program from the start for each address, into structures that it allocates. Tables of other kinds are left to libdw.
 * Nothing in a table is trusted. No state; one thread a call.
 */
#ifndef HEARTH_AGENT_ROWS_CFI_PROGRAM_H
#define HEARTH_AGENT_ROWS_CFI_PROGRAM_H

#include <stddef.h>
#include <stdint.h>

#include "agent/rows/rows.h"

/* The loaded bytes that hold .eh_frame. */
struct cfi_bytes {
	const uint8_t *data; /* NULL: there are none */
	uint64_t addr, len;
};

/*
 * The rows of the function whose entry (FDE) stands at address @entry and which begins at @function, as far as they touch
 * [@start, @end), cut there. 0 with *@stop_ret where the function ends; -ENOENT: the entry is not of the common kind, or not
 * of a function that begins at @start or before; -ENODATA: the function ends before @start; -ENOSPC: more than @max.
 */
int cfi_program_rows(const struct cfi_bytes *bytes, uint64_t entry, uint64_t function, uint64_t start, uint64_t end,
		     struct row *rows, size_t max, size_t *count_ret, uint64_t *stop_ret);

#endif
