/* SPDX-License-Identifier: Apache-2.0 */
/* Frames in generated code as a report shows them (symbols/script/block_names.h). No state. */
#ifndef HEARTH_AGENT_REPORT_CODE_LINES_H
#define HEARTH_AGENT_REPORT_CODE_LINES_H

#include <stdbool.h>

#include "agent/names/names.h"
#include "symbols/script/block_names.h"

/* Is @frame, which is of NAMER_OBJECT, in such code? */
bool code_lines_are_of(const struct trace_frame *frame);

/* The module of a frame whose outermost function is @outermost: its source file, else the @type of the frame. */
struct str code_lines_module(const struct frame_line *outermost, const char *type);

/* The functions at @frame, innermost first. The texts are the object's. Returns their number; *@is_approximate: lines and
 * inlined functions are those of a place nearby. */
uint32_t code_lines_find(const struct trace_frame *frame, struct frame_line lines[static BLOCK_NAMES_MAX_DEPTH],
			 bool *is_approximate);

#endif
