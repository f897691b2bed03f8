/* SPDX-License-Identifier: Apache-2.0 */
/* The row builder for a program's entry point. */
#ifndef HEARTH_AGENT_ROWS_ENTRY_H
#define HEARTH_AGENT_ROWS_ENTRY_H

#include <stddef.h>
#include <stdint.h>

#include "agent/rows.h"

/*
 * Code at the entry point (@entry, ELF address) that no table covers is the outermost frame: the dynamic linker's start code
 * has no call frame information. Adds such rows of [@start, @end) to the @count sorted ones of @rows (room for @max).
 * Returns the count.
 */
size_t rows_add_entry(uint64_t entry, uint64_t start, uint64_t end, struct row *rows, size_t count, size_t max);

#endif
