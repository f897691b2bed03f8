/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds where functions begin by the look of the code near an address alone, for files that have no symbols and too much
 * code to search for calls. Used by agent/rows/code/starts.h.
 */
#ifndef HEARTH_AGENT_ROWS_CODE_BOUNDS_H
#define HEARTH_AGENT_ROWS_CODE_BOUNDS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The places in [@low, @high) of @code where functions begin that are nearest to @off: the last one up to it into @start,
 * the first one behind it into @end. At @low one begins, at @high one may. False when none is near.
 */
bool code_bounds_around(const uint8_t *code, uint64_t low, uint64_t off, uint64_t high, uint64_t *start, uint64_t *end);

#endif
