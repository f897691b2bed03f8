/* SPDX-License-Identifier: Apache-2.0 */
/* Looks at one place after the other, in both directions; at most REACH_BYTES far. */
#include "agent/rows/code/bounds.h"
#include "agent/rows/code/state.h"

enum { REACH_BYTES = 1 << 20, STEP = CPU_HAS_LR ? CPU_CODE_ALIGN : CODE_FUNCTION_ALIGN };

bool code_bounds_around(const uint8_t *code, uint64_t low, uint64_t off, uint64_t high, uint64_t *start, uint64_t *end)
{
	uint64_t at = off / STEP * STEP, least = off - low > REACH_BYTES ? off - REACH_BYTES : low;

	while (at > least && !code_begins_function(code, at, high))
		at -= at > STEP ? STEP : at;
	if (at <= least && least != low)
		return false;
	*start = at > low ? at : low;
	if (high - off > REACH_BYTES)
		high = off + REACH_BYTES;
	for (*end = off / STEP * STEP + STEP; *end < high && !code_begins_function(code, *end, high);)
		*end += STEP;
	if (*end > high)
		*end = high;
	return true;
}
