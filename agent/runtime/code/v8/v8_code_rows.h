/* SPDX-License-Identifier: Apache-2.0 */
/* Unwind rows of code that V8 made. */
#ifndef HEARTH_AGENT_RUNTIME_CODE_V8_V8_CODE_ROWS_H
#define HEARTH_AGENT_RUNTIME_CODE_V8_V8_CODE_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "agent/rows/row.h"

/*
 * Makes the rows of the @len bytes @code, whose first one has the address @start: sorted, disjoint, *@ret to be freed. Rows
 * of frames that stand have the capture @capture. 0 or -ENOMEM.
 */
int v8_code_rows(uint64_t start, const uint8_t *code, size_t len, uint8_t capture, struct row **ret, size_t *count_ret);

#endif
