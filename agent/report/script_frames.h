/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of scripts as a report shows them, and the interpreter's own frames, for which they stand. No state. */
#ifndef HEARTH_AGENT_REPORT_SCRIPT_FRAMES_H
#define HEARTH_AGENT_REPORT_SCRIPT_FRAMES_H

#include <stdbool.h>

#include "agent/names/names.h"

/* Names @frame, which is of NAMER_OBJECT. The texts are the object's. Returns whether it has a name. */
bool script_frame_find(const struct trace_frame *frame, struct frame_line *ret);

/* The profile.frame.type of @frame, static. */
const char *script_frame_type(const struct trace_frame *frame);

/* A SCRIPT_OUTCOME (agent/samples/merge.h) as the attribute TRUTH_SCRIPT_KEY has it; written to @text. */
enum { SCRIPT_OUTCOME_BYTES = 64 };
struct str script_outcome(uint32_t outcome, char text[static SCRIPT_OUTCOME_BYTES]);

/* An enum chain_lock in one word, static; "unknown" for what is none. */
struct str script_lock(uint32_t lock);

/* Whether a frame stands for something where frames of scripts are. */
enum frame_glue {
	FRAME_STAYS,
	FRAME_GLUE,    /* of an interpreter (agent/runtime/glue.h), with all functions that were inlined there */
	FRAME_UNNAMED, /* of an interpreter, without a name: says nothing, unless the script's innermost function called it
			*/
};

enum frame_glue script_frame_glue(const struct names *names, const struct trace_frame *frame);

#endif
