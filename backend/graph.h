/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The call tree by function that stacks add up to, as far as a picture of it shows: flame graph, tree, sandwich and diff.
 * Each node has two weights, so that two selections can stand side by side. Belongs to the thread that asks.
 */
#ifndef HEARTH_BACKEND_GRAPH_H
#define HEARTH_BACKEND_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backend/functions.h"
#include "backend/stacks.h"

enum graph_flags {
	GRAPH_NO_INLINE = 1, /* inlined calls are part of the function they are in */
	GRAPH_LINES = 2,     /* calls of a function are told apart by line */
};

struct graph_node {
	uint32_t parent;
	struct function_call call; /* of the root: function UINT32_MAX */
	int64_t self[2], total[2];
	/* After graph_sum(): heaviest first; 0: none. */
	uint32_t child, sibling;
};

struct graph;

/*
 * A tree of a root alone. Only nodes that may be among the @most heaviest will be placed with what they call; of others,
 * what is below them is folded into their self: a picture that shows no more nodes shows none of it. NULL for want of
 * memory.
 */
struct graph *graph_new(struct functions *functions, unsigned flags, uint32_t most);
void graph_free(struct graph *g);

/*
 * Places what @s has (after stacks_add_up()); below a child of the root, the label @group, when that is not NULL. Once, or
 * once for each label. With @tops the root stands for those @count stacks, none of which is below another, and not for the
 * empty one. Lists of @s are used up. 0, -ENOMEM or what the store said.
 */
int graph_place(struct graph *g, struct stacks *s, const char *group);
int graph_place_tops(struct graph *g, struct stacks *s, const uint32_t *tops, size_t count);

/* The same upside down: the root stands for @tops, a child is a caller of its parent. Once. */
int graph_place_callers(struct graph *g, const struct stacks *s, const uint32_t *tops, size_t count);

/* Adds the selves up into totals and links children, heaviest first, those of one weight by name. Once, when everything is
 * placed: nothing can be added then. */
int graph_sum(struct graph *g);

uint64_t graph_memory_bytes(const struct graph *g);

/* By number; 0 is the root; a child's number is above its parent's. */
struct graph_node *graph_nodes(const struct graph *g, uint32_t *count_ret);

struct functions *graph_functions(const struct graph *g);

/* How many of the stacks were folded. */
uint64_t graph_folded(const struct graph *g);

/* What a node weighs where only one number counts: both sides together. */
static inline int64_t graph_weight(const struct graph_node *n)
{
	return n->total[0] + n->total[1];
}

#endif
