/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The call tree by function that a store's stacks add up to: what flame graph, tree, top, sandwich and diff are made of.
 * Each node has two weights, so that two selections can stand side by side. Belongs to the thread that asks.
 */
#ifndef HEARTH_BACKEND_GRAPH_H
#define HEARTH_BACKEND_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

#include "backend/functions.h"

struct store;

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
 * A tree of a root alone. With @most not 0 only nodes that may be among the @most heaviest are placed with what they call;
 * of others, what is below them is folded into their self: a picture that shows no more nodes shows none of it. Then there
 * is side 0 alone. NULL for want of memory.
 */
struct graph *graph_new(struct store *store, struct functions *functions, unsigned flags, uint32_t most);
void graph_free(struct graph *g);

/* What graph_take() adds from now on stands below a child of the root, the label @value; one after another, once each, when
 * only the heaviest are placed. 0 or -ENOMEM. */
int graph_group(struct graph *g, const char *value);

/* Adds @weight of @node of the store to side 0 or 1; graph_place() then puts what was added into the tree, callers first. 0,
 * -ENOMEM or what the store said. */
int graph_take(struct graph *g, unsigned side, uint32_t node, int64_t weight);
int graph_place(struct graph *g);

/* The child of @parent for @call, made when there is none; *@ret may be @parent. 0 or -ENOMEM. */
int graph_child(struct graph *g, uint32_t parent, struct function_call call, uint32_t *ret);

/* Adds the selves up into totals and links children, heaviest first, those of one weight by name. Once, when everything is
 * placed: nothing can be added then. */
int graph_sum(struct graph *g);

/* By number; 0 is the root; a child's number is above its parent's. Valid until something is added. */
struct graph_node *graph_nodes(const struct graph *g, uint32_t *count_ret);

struct functions *graph_functions(const struct graph *g);

/* How many of the store's stacks were folded. */
uint64_t graph_folded(const struct graph *g);

/* What a node weighs where only one number counts: both sides together. */
static inline int64_t graph_weight(const struct graph_node *n)
{
	return n->total[0] + n->total[1];
}

#endif
