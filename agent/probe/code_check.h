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

#endif
