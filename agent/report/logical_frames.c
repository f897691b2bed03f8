/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "agent/report/logical_frames.h"

static bool begins_with(struct str s, const char *text)
{
	return s.len >= strlen(text) && !memcmp(s.data, text, strlen(text));
}

static bool is_of_runtime(const struct frame_name *name)
{
	return name->line_count &&
	       (begins_with(name->lines[0].name, "runtime.") || begins_with(name->lines[0].name, "internal/runtime/"));
}

/* How many of the innermost frames are the runtime's; 0 if all are. */
static uint32_t count_allocator(const struct names *names, const struct traces *t, const uint32_t *ids, uint32_t count)
{
	struct frame_name name;

	for (uint32_t i = 0; i < count; i++) {
		names_find(names, traces_frame(t, ids[i]), &name);
		if (!is_of_runtime(&name))
			return i;
	}
	return 0;
}

/* The function that all calls at a frame are inlined into, itself included; 0: not known. */
static uint32_t outermost(const struct frame_name *name)
{
	return name->line_count ? name->lines[name->line_count - 1].function : 0;
}

uint32_t logical_frames(const struct names *names, const struct traces *t, const uint32_t *ids, uint32_t count,
			uint32_t *kept)
{
	uint32_t used = 0, inlined = 0, around = 0;
	struct frame_name name;

	for (uint32_t i = count_allocator(names, t, ids, count); i < count; i++) {
		names_find(names, traces_frame(t, ids[i]), &name);
		if (inlined && around && outermost(&name) == around) {
			inlined--;
			continue;
		}
		inlined = name.line_count ? name.line_count - 1 : 0;
		around = outermost(&name);
		kept[used++] = ids[i];
	}
	return used;
}
