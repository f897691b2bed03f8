/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of one function, from its instructions alone. Behind agent/rows_code.c. */
#ifndef HEARTH_AGENT_CODE_FLOW_H
#define HEARTH_AGENT_CODE_FLOW_H

#include <stddef.h>
#include <stdint.h>

#include "agent/code_starts.h"
#include "agent/code_state.h"
#include "agent/rows.h"

enum { CODE_FLOW_MAX_BYTES = 65536 };

/*
 * Follows the function @f along all its paths. *@ret (to be freed) are its rows, sorted and merged; where paths disagree
 * there are none, nor where none leads, unless that is surely the function's too and the state there can be told. Bounded
 * in time; a function above CODE_FLOW_MAX_BYTES is not followed. *@is_misplaced (may be NULL): it uses a frame that it never
 * made, so @f does not start where the function does. 0 or -ENOMEM.
 */
int code_flow_rows(const struct code_function *f, struct row **ret, size_t *count_ret, bool *is_misplaced);

/* What is known where a path comes from elsewhere. */
struct code_entry {
	uint64_t addr;
	struct code_state state;
};

/* The same for code that is entered at the @entry_count @entries alone. */
int code_flow_part_rows(const struct code_function *f, const struct code_entry *entries, size_t entry_count,
			struct row **ret, size_t *count_ret);

/*
 * Where and how the function @f jumps into [@low, @high), into @exits: one for each time its paths come by, the same place
 * more than once as more is learned of it. Their number, at most @max; 0 when there are more or @f is too big; or -ENOMEM.
 */
int code_flow_exits(const struct code_function *f, uint64_t low, uint64_t high, struct code_entry *exits, size_t max);

#endif
