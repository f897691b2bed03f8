/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The weights of a store's stacks with all they call: flame graph, top, sandwich and diff are made of them. A stack is a
 * node of the store's prefix tree; its data stand in arrays by its number, which are touched only where a question has
 * stacks. Each has two weights, so that two selections can stand side by side. Belongs to the thread that asks.
 */
#ifndef HEARTH_BACKEND_STORE_STACKS_H
#define HEARTH_BACKEND_STORE_STACKS_H

#include <stdbool.h>
#include <stdint.h>

#include "backend/store/store_read.h"
#include "base/memory.h"

/* Lists of stacks: 0 ends them. Set up when it is first marked, but for what the store said of it, which is asked once. */
struct stack {
	uint32_t caller; /* and 1; 0: not asked yet */
	uint32_t frame;
	uint32_t child;	  /* the first of those it calls */
	uint32_t sibling; /* the next of its caller's; code that has read a stack's list may use it for another one then */
};

struct stacks {
	struct store *store;
	uint32_t count; /* of the store's stacks, the empty one included */
	uint64_t *marks;
	struct stack *items;
	int64_t *weights[2]; /* [1]: NULL with one side */
	/* After stacks_add_up(): a bit a frame, those of its stacks. */
	uint64_t *frames;
	uint32_t frame_words;
	uint32_t asked; /* about how many the store was asked */
	uint32_t below; /* after stacks_add_up(): how many there are but for the empty one */
	struct memory_zeros marks_memory, items_memory, weights_memory[2]; /* private, of the arrays above */
};

/* Begins with no stacks. 0 or -ENOMEM; stacks_fini() in any case. */
int stacks_init(struct stacks *s, struct store *store, bool two_sides);
void stacks_fini(struct stacks *s);

/* Adds @weight of stack @node to side 0 or 1. 0, -ENOMEM or -EBADMSG. */
int stacks_take(struct stacks *s, unsigned side, uint32_t node, int64_t weight);

/* Adds weights up to callers and links what is called: all is below the empty stack 0 then, and stays until the next
 * stacks_take(), which begins anew. @is_one_of_many: others follow, with stacks all over. 0, -ENOMEM or what the store said.
 */
int stacks_add_up(struct stacks *s, bool is_one_of_many);

/* Bytes of memory held, without memory that was never touched because no question had its stacks. */
uint64_t stacks_memory_bytes(const struct stacks *s);

#endif
