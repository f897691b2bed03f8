/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Weights of stacks by something that each frame is of: its function, type or executable, the key. The total of a key
 * counts a stack once, where it is outermost, and its self wherever it is the leaf: so one walk over the stacks, added
 * up, is enough. Belongs to the thread that asks.
 */
#ifndef HEARTH_BACKEND_STORE_STACK_SUMS_H
#define HEARTH_BACKEND_STORE_STACK_SUMS_H

#include "backend/store/stacks.h"

struct stack_sum {
	uint32_t key, group;
	int64_t self[2], total[2];
	int64_t marked[2]; /* of @self: of marked frames */
};

/* All zeros at first. */
struct stack_sums {
	struct stack_sum *rows;
	uint32_t count, cap;
	/* private to stack_sums.c */
	struct stack_sums_place *places; /* by key */
	uint32_t place_count;
	uint32_t *path; /* between the root and the stack that is walked, as stack_sums_key() makes them */
	size_t depth, path_cap;
};

void stack_sums_fini(struct stack_sums *t);

/* Told instead of a key: the frame is a part of its caller. */
#define STACK_SUMS_CALLER INT64_MAX

/* What a frame counts for. */
static inline int64_t stack_sums_key(uint32_t key, bool is_marked)
{
	return (int64_t)(2ull * key + is_marked);
}

/* Adds the stacks of @s (after stacks_add_up()) to the rows of @group, which are made as keys are met; groups come one after
 * another. @key_of tells what a frame counts for, by stack_sums_key() or STACK_SUMS_CALLER, or -errno. 0, -ENOMEM or that
 * error, and then @t is of no more use. */
int stack_sums_add(struct stack_sums *t, const struct stacks *s, uint32_t group,
		   int64_t (*key_of)(void *arg, uint32_t frame), void *arg);

uint64_t stack_sums_memory_bytes(const struct stack_sums *t);

#endif
