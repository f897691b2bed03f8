/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jumps between functions, which lead to code that compilers moved out of a function: such code has the frame that the
 * function has at the jump. Used by agent/rows/code/code.c.
 */
#ifndef HEARTH_AGENT_ROWS_CODE_JUMPS_H
#define HEARTH_AGENT_ROWS_CODE_JUMPS_H

#include <stdint.h>

#include "agent/rows/code/starts.h"

struct code_jumps;

enum { CODE_JUMPS_MAX = 32 };

/* Reads all code that @starts knows. 0 or -ENOMEM. */
int code_jumps_new(struct code_starts *starts, struct code_jumps **ret);
void code_jumps_free(struct code_jumps *j);

/* The addresses of the instructions that jump into [@low, @high) from outside, into @from, which has room for
 * CODE_JUMPS_MAX. Returns their number; 0 when there are more. */
int code_jumps_into(const struct code_jumps *j, uint64_t low, uint64_t high, uint64_t *from);

#endif
