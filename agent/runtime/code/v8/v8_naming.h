/* SPDX-License-Identifier: Apache-2.0 */
/* Names and lines of V8's code and bytecode, as block names (symbols/script/block_names.h). One thread. */
#ifndef HEARTH_AGENT_RUNTIME_CODE_V8_V8_NAMING_H
#define HEARTH_AGENT_RUNTIME_CODE_V8_V8_NAMING_H

#include "agent/runtime/code/v8/v8_code.h"
#include "agent/runtime/code/v8/v8_script.h"
#include "symbols/script/block_names.h"

/* Tells @n the functions of @code, which is optimized; places are offsets in its instructions. 0; -ENODATA: it has none;
 * -EBADMSG, -EFAULT, -EDQUOT, -ENOMEM. */
int v8_name_optimized(struct v8_heap *h, struct v8_marks *marks, const struct v8_code *code, struct block_names *n);

/* Tells @n the function @shared, and the lines of its bytecode @bytecode; places are offsets in the bytecode. 0 or as above.
 */
int v8_name_bytecode(struct v8_heap *h, struct v8_marks *marks, uint64_t shared, uint64_t bytecode, struct block_names *n);

/* The same for baseline code @code of this function; places are offsets in its instructions. @lengths: those of bytecodes,
 * @count for each scale. */
int v8_name_baseline(struct v8_heap *h, struct v8_marks *marks, uint64_t shared, const struct v8_code *code,
		     const uint8_t *lengths, uint32_t count, struct block_names *n);

#endif
