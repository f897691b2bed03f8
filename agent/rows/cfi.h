/* SPDX-License-Identifier: Apache-2.0 */
/* The code that the builders over call frame tables share: it turns libdw's rules into rows. */
#ifndef HEARTH_AGENT_ROWS_CFI_H
#define HEARTH_AGENT_ROWS_CFI_H

#include <elfutils/libdw.h>

#include "agent/rows/cfi_program.h"
#include "agent/rows/row_builder.h"

/* The search table of .eh_frame_hdr: two words an entry, a function's start and where its FDE stands, sorted by the first.
 */
struct cfi_starts {
	const uint8_t *table;
	size_t count;  /* 0: there is no table */
	uint64_t base; /* the address that both words are relative to */
	struct cfi_bytes frame;
};

enum { CFI_START_BYTES = 8 };

/* These work as struct row_builder's build and eval. With @starts a gap is crossed at once, without them byte by byte. */
int rows_cfi_build(Dwarf_CFI *cfi, const struct cfi_starts *starts, uint64_t start, uint64_t end, struct row *rows,
		   size_t max, size_t *count_ret);
int rows_cfi_eval(Dwarf_CFI *cfi, uint64_t addr, const struct row_regs *in, row_read_fn read, void *arg,
		  struct row_regs *out);

#endif
