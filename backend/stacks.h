/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the stacks of a store weigh with all they call: what flame graph, top, sandwich and diff are made of. A stack is a
 * node of the store's prefix tree; what is kept of one stands in arrays by its number, which are touched only where a
 * question has stacks. Each has two weights, so that two selections can stand side by side. Belongs to the thread that asks.
 */
#ifndef HEARTH_BACKEND_STACKS_H
#define HEARTH_BACKEND_STACKS_H

#include <stdbool.h>
#include <stdint.h>

#include "backend/store.h"

/* Lists of stacks: 0 ends them. Set up when it is first marked, but for what the store said of it, which is asked once. */
struct stack {
	uint32_t caller; /* and 1; 0: not asked yet */
	uint32_t frame;
	uint32_t child;	  /* the first of those it calls */
	uint32_t sibling; /* the next of its caller's; whoever reads a stack's list may use it for another one then */
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
};

/* None yet. 0 or -ENOMEM; stacks_fini() in any case. */
int stacks_init(struct stacks *s, struct store *store, bool two_sides);
void stacks_fini(struct stacks *s);

/* Adds @weight of stack @node to side 0 or 1. 0, -ENOMEM or -EBADMSG. */
int stacks_take(struct stacks *s, unsigned side, uint32_t node, int64_t weight);

/* Adds weights up to callers and links what is called: all is below the empty stack 0 then, and stays until the next
 * stacks_take(), which begins anew. @is_one_of_many: others follow, with stacks all over. 0, -ENOMEM or what the store said.
 */
int stacks_add_up(struct stacks *s, bool is_one_of_many);

/* What they take, but for memory that was never touched: of stacks that no question had. */
uint64_t stacks_memory_bytes(const struct stacks *s);

/* After stacks_add_up(), callers before what they call: @enter is called for each stack but the empty one, until it returns
 * an error, and @leave when all that the stack calls has been walked. 0 or that error. */
static inline int stacks_walk(const struct stacks *s, int (*enter)(void *arg, uint32_t stack),
			      void (*leave)(void *arg, uint32_t stack), void *arg)
{
	const struct stack *items = s->items;

	for (uint32_t at = items[0].child; at;) {
		int err = enter(arg, at);

		if (err)
			return err;
		if (items[at].child) {
			at = items[at].child;
			continue;
		}
		leave(arg, at);
		while (at && !items[at].sibling) {
			at = items[at].caller - 1;
			if (at)
				leave(arg, at);
		}
		at = at ? items[at].sibling : 0;
	}
	return 0;
}

/* Both sides together. */
static inline int64_t stacks_weight(const struct stacks *s, uint32_t stack)
{
	return weights_add(s->weights[0][stack], s->weights[1] ? s->weights[1][stack] : 0);
}

#endif
