/* SPDX-License-Identifier: Apache-2.0 */
/* Does an instruction begin somewhere? A probe in the middle of one would change what it does. No state. */
#ifndef HEARTH_AGENT_PROBE_CODE_CHECK_H
#define HEARTH_AGENT_PROBE_CODE_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Does one of the instructions that begin at @from of the @len_bytes of @file begin at @at? Equal ones: we are told so.
 * False too where something between is no instruction. */
bool code_begins_at(const uint8_t *file, size_t len_bytes, uint64_t from, uint64_t at);

/*
 * How many bytes at the begin of a Go function, @code, of which @len_bytes can be read, ask whether there is room on the
 * stack. A function without it, or whose goroutine is to give way, begins again after that, so a probe stands behind. 0:
 * none do, or they are not known.
 */
size_t code_go_check_bytes(const uint8_t *code, size_t len_bytes);

/* Is the function that begins at @code, of which @len_bytes can be read, another name of one to which it jumps at once? */
bool code_is_jump(const uint8_t *code, size_t len_bytes);

#endif
