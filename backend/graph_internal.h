/* SPDX-License-Identifier: Apache-2.0 */
/* The call tree among the files it is made of. */
#ifndef HEARTH_BACKEND_GRAPH_INTERNAL_H
#define HEARTH_BACKEND_GRAPH_INTERNAL_H

#include <stddef.h>

#include "backend/graph.h"

/* A stack of the store while the heaviest are placed: lists of stacks, 0 ends them. Set up when it is first marked, but for
 * what the store said of it, which is asked once. */
struct graph_stack {
	uint32_t caller; /* and 1; 0: not asked yet */
	uint32_t frame;
	uint32_t child;	  /* the first of those it calls */
	uint32_t sibling; /* the next of its caller's; then the next of its node's */
	uint32_t below;	  /* how many there are below it */
};

/* A node whose callees are not placed, and how heavy it is. */
struct graph_waiting {
	int64_t weight;
	uint32_t node;
};

struct graph {
	struct store *store;
	struct functions *functions;
	unsigned flags;
	uint32_t *edges;     /* hash table of nodes by parent and call; 0: free, the root is nobody's child */
	uint32_t edge_count; /* of slots, power of two */
	struct graph_node *nodes;
	uint32_t count, cap;
	uint32_t top; /* below which stacks are placed: the root or a label's node */
	/* Of the store's nodes, by number: what is being placed. */
	uint32_t stack_count;
	uint64_t *marks;
	int64_t *weights[2];
	uint32_t *places; /* unless only the heaviest are placed */
	/* When only the heaviest are placed; graph_heaviest.c. */
	uint32_t most;
	uint64_t folded;
	struct graph_stack *stacks;
	uint32_t *first_stack; /* of each node */
	size_t first_stack_cap;
	struct graph_waiting *waiting, *heaviest; /* heaps */
	size_t waiting_count, waiting_cap, heaviest_count;
};

/* @stack weighs something, or calls what does: its place in the arrays is set up. Its callers follow when all is placed. */
void graph_mark(struct graph *g, uint32_t stack);

/* graph_place() then. */
int graph_place_heaviest(struct graph *g);

#endif
