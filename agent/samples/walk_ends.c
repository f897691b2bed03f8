/* SPDX-License-Identifier: Apache-2.0 */
/* The table behind WALK_ENDS. */
#include "agent/samples/walk_ends.h"

#define X(name, text, has_stack) { text, has_stack },
static const struct {
	const char *text;
	bool has_stack;
} ends[END_MAX] = { WALK_ENDS(X) };
#undef X

const char *walk_end_text(enum walk_end end)
{
	return ends[end].text;
}

bool walk_end_has_stack(enum walk_end end)
{
	return ends[end].has_stack;
}

bool walk_end_is_truncated(enum walk_end end)
{
	return ends[end].has_stack && end != END_ROOT;
}
