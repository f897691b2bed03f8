/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The call tree by function that stacks add up to, as far as a picture of it shows: flame graph, tree, sandwich and diff.
 * Each node has two weights, so that two selections can stand side by side. Belongs to the thread that asks.
 */
#ifndef HEARTH_BACKEND_QUERY_GRAPH_H
#define HEARTH_BACKEND_QUERY_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backend/query/functions.h"
#include "backend/store/stacks.h"
#include "proto/sums/call_tree.h"

enum graph_flags {
	GRAPH_NO_INLINE = 1, /* inlined calls are part of the function they are in */
	GRAPH_LINES = 2,     /* calls of a function are told apart by line */
};

struct graph;

/*
 * A tree of a root alone. Only nodes that may be among the @most heaviest will be placed with what they call; of others,
 * what is below them is folded into their self: a picture that shows no more nodes shows none of it. NULL when out of
 * memory.
 */
struct graph *graph_new(struct functions *functions, unsigned flags, uint32_t most);
void graph_free(struct graph *g);

/*
 * Places what @s has (after stacks_add_up()); below a child of the root, the label @group, when that is not NULL. Called
 * once, or once for each label. With @tops the root stands for those @count stacks, none of which is below another, and not
 * for the empty one. Lists of @s are used up. 0, -ENOMEM or what the store said.
 */
int graph_place(struct graph *g, struct stacks *s, const char *group);
int graph_place_tops(struct graph *g, struct stacks *s, const uint32_t *tops, size_t count);

/* The same upside down: the root stands for @tops, a child is a caller of its parent. Called once. */
int graph_place_callers(struct graph *g, const struct stacks *s, const uint32_t *tops, size_t count);

/* Adds the selves up into totals and puts children in order, heaviest first, those of one weight by name. Called once, when
 * everything is placed: nothing can be added after it. */
void graph_sum(struct graph *g);

uint64_t graph_memory_bytes(const struct graph *g);

/* By number; 0 is the root. */
const struct call_node *graph_nodes(const struct graph *g, uint32_t *count_ret);

/* The call that a node but the root stands for. */
static inline struct function_call graph_call(const struct call_node *n)
{
	return (struct function_call){ .function = (uint32_t)(n->key >> 32),
				       .line = (uint32_t)n->key >> 1,
				       .inlined = n->key & 1 };
}

struct functions *graph_functions(const struct graph *g);

/* How many of the stacks were folded. */
uint64_t graph_folded(const struct graph *g);

#endif
