/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Glue: functions of an interpreter that do nothing but lead from one function of a script to the next, or from main() to
 * the first. Frames of scripts stand for them, so stacks that have such frames are shown without. No state.
 */
#ifndef HEARTH_AGENT_RUNTIME_GLUE_H
#define HEARTH_AGENT_RUNTIME_GLUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Is the function @name (@len bytes), of the interpreter's own file, glue of the runtime @id (enum runtime_id)? */
bool glue_is(uint32_t id, const char *name, size_t len);

/* The same for a runtime that makes code, @id (enum code_id). */
bool glue_is_of_code(uint32_t id, const char *name, size_t len);

#endif
