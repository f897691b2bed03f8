/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the rows of one function from its instructions alone. Used by agent/rows/code/code.c. */
#ifndef HEARTH_AGENT_ROWS_CODE_FLOW_H
#define HEARTH_AGENT_ROWS_CODE_FLOW_H

#include <stddef.h>
#include <stdint.h>

#include "agent/rows/code/starts.h"
#include "agent/rows/code/state.h"
#include "agent/rows/row.h"

enum { CODE_FLOW_MAX_BYTES = 65536, CODE_FLOW_MAX_MADE_BYTES = 1 << 19 };

/*
 * Follows the function @f along all its paths. *@ret (to be freed) are its rows, sorted and merged; where paths disagree
 * there are none, nor where none leads, unless that is surely the function's too and the state there can be told. Bounded
 * in time; a function above CODE_FLOW_MAX_BYTES is not followed. *@is_misplaced (may be NULL): it uses a frame that it never
 * made, so @f does not start where the function does. 0 or -ENOMEM.
 */
int code_flow_rows(const struct code_function *f, struct row **ret, size_t *count_ret, bool *is_misplaced);

/* The state with which a path comes from elsewhere. */
struct code_entry {
	uint64_t addr;
	struct code_state state;
};

/* Does the same for code that is entered only at the @entry_count @entries. */
int code_flow_part_rows(const struct code_function *f, const struct code_entry *entries, size_t entry_count,
			struct row **ret, size_t *count_ret);

/* The things that are known of code that a program made while it ran. */
struct code_made {
	bool (*never_returns)(void *arg, uint64_t target); /* does the function at @target never return to its caller? */
	void *arg;
	size_t first_cnt; /* so many entries come first: the paths of the others do not change what these tell */
	const struct code_state *rest; /* the state where no path leads; NULL: nothing is said of such code */
};

/* Does the same for such code: where paths lead, no other word counts. */
int code_flow_made_rows(const struct code_function *f, const struct code_entry *entries, size_t entry_count,
			const struct code_made *made, struct row **ret, size_t *count_ret);

/*
 * Fills @exits with the places and states with which the function @f jumps into [@low, @high): one for each time its paths
 * come by, the same place more than once as its state changes. Returns their number, at most @max; 0 when there are more or
 * @f is too big; or -ENOMEM.
 */
int code_flow_exits(const struct code_function *f, uint64_t low, uint64_t high, struct code_entry *exits, size_t max);

#endif
