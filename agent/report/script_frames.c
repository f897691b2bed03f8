/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "agent/report/script_frames.h"
#include "agent/runtime/choice.h"
#include "agent/runtime/glue.h"
#include "agent/runtime/object.h"
#include "agent/samples/merge.h"
#include "proto/sums/truth.h"

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

struct str script_outcome(uint32_t outcome, char text[static SCRIPT_OUTCOME_BYTES])
{
#define X(name, text) text,
	static const char *const ends[SCRIPT_END_MAX] = { CHAIN_ENDS(X) "does not fit the native stack" };
#undef X
	uint32_t end = SCRIPT_OUTCOME_END(outcome);

	snprintf(text, SCRIPT_OUTCOME_BYTES, "%s: %s", runtime_own_word(SCRIPT_OUTCOME_RUNTIME(outcome)),
		 end == CHAIN_END_ROOT ? TRUTH_SCRIPT_COMPLETE : ends[end]);
	return str_z(text);
}

struct str script_lock(uint32_t lock)
{
	static const char *const words[CHAIN_LOCK_MAX] = { "unknown", "held", "waiting", "released" };

	return str_z(words[lock < CHAIN_LOCK_MAX ? lock : CHAIN_LOCK_UNKNOWN]);
}

enum frame_glue script_frame_glue(const struct names *names, const struct trace_frame *frame)
{
	const struct runtime_file *runtime = frame->file ? &frame->file->info.runtime : NULL;
	bool makes_code = runtime && runtime->kind == RUNTIME_FILE_CODE;
	struct frame_name name;

	if (!makes_code && (!runtime || runtime->kind != RUNTIME_FILE_CHAIN))
		return FRAME_STAYS;
	names_find(names, frame, &name);
	for (uint32_t i = 0; i < name.line_count; i++) {
		const struct str *n = &name.lines[i].name;

		if (!(makes_code ? glue_is_of_code(runtime->code.id, n->data, n->len)
				 : glue_is(runtime->id, n->data, n->len)))
			return FRAME_STAYS;
	}
	return name.line_count ? FRAME_GLUE : makes_code ? FRAME_STAYS : FRAME_UNNAMED;
}
