/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/report/script_frames.h"
#include "agent/runtime/glue.h"
#include "agent/runtime/object.h"

bool script_frame_find(const struct trace_frame *frame, struct frame_line *ret)
{
	const struct object *object = frame->object;
	struct script script;

	*ret = (struct frame_line){ 0 };
	if (!object || script_open(object->content, object->len_bytes, &script) || !script.head.name_bytes)
		return false;
	ret->name = (struct str){ script.name, script.head.name_bytes };
	ret->file = (struct str){ script.file, script.head.file_bytes };
	ret->line = script_line(&script, (uint32_t)frame->addr);
	ret->start_line = script.head.first_line;
	return true;
}

const char *script_frame_type(const struct trace_frame *frame)
{
	return frame->object ? object_frame_type(frame->object->runtime) : "script";
}

enum frame_glue script_frame_glue(const struct names *names, const struct trace_frame *frame)
{
	const struct runtime_file *runtime = frame->file ? &frame->file->info.runtime : NULL;
	struct frame_name name;

	if (!runtime || runtime->kind != RUNTIME_FILE_CHAIN)
		return FRAME_STAYS;
	names_find(names, frame, &name);
	for (uint32_t i = 0; i < name.line_count; i++)
		if (!glue_is(runtime->id, name.lines[i].name.data, name.lines[i].name.len))
			return FRAME_STAYS;
	return name.line_count ? FRAME_GLUE : FRAME_UNNAMED;
}
