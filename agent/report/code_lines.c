/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "agent/report/code_lines.h"
#include "agent/code/code_spaces.h"

bool code_lines_are_of(const struct trace_frame *frame)
{
	return frame->object && frame->object->runtime >= OBJECT_OF_CODE;
}

struct str code_lines_module(const struct frame_line *outermost, const char *type)
{
	return outermost->file.len ? outermost->file : (struct str){ type, (uint32_t)strlen(type) };
}

uint32_t code_lines_find(const struct trace_frame *frame, struct frame_line lines[static BLOCK_NAMES_MAX_DEPTH],
			 bool *is_approximate)
{
	const struct object *object = frame->object;
	struct block_line found[BLOCK_NAMES_MAX_DEPTH];
	uint32_t place = (uint32_t)frame->addr;
	uint32_t count = block_names_find(object->content, object->len_bytes, place & ~CODE_PLACE_RETURN,
					  place & CODE_PLACE_RETURN, found);

	for (uint32_t i = 0; i < count; i++)
		lines[i] = (struct frame_line){ .name = { found[i].name, found[i].name_bytes },
						.file = { found[i].file, found[i].file_bytes },
						.line = found[i].line,
						.start_line = found[i].start_line };
	*is_approximate = count && found[0].is_approximate;
	return count;
}
