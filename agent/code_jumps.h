/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jumps between functions, which lead to what compilers moved out of one: such code has the frame that the function has at
 * the jump. Behind agent/rows_code.c.
 */
#ifndef HEARTH_AGENT_CODE_JUMPS_H
#define HEARTH_AGENT_CODE_JUMPS_H

#include <stdint.h>

#include "agent/code_starts.h"

struct code_jumps;

enum { CODE_JUMPS_MAX = 32 };

/* Reads all code that @starts knows. 0 or -ENOMEM. */
int code_jumps_new(struct code_starts *starts, struct code_jumps **ret);
void code_jumps_free(struct code_jumps *j);

/* The addresses of the instructions that jump into [@low, @high) from outside, into @from, which has room for
 * CODE_JUMPS_MAX. Their number; 0 when there are more. */
int code_jumps_into(const struct code_jumps *j, uint64_t low, uint64_t high, uint64_t *from);

#endif
