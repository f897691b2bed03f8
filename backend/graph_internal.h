/* SPDX-License-Identifier: Apache-2.0 */
/* The call tree among the files it is made of. */
#ifndef HEARTH_BACKEND_GRAPH_INTERNAL_H
#define HEARTH_BACKEND_GRAPH_INTERNAL_H

#include "backend/graph.h"

/* A node whose callees are not placed, and how heavy it is. */
struct graph_waiting {
	int64_t weight;
	uint32_t node;
};

/* A stack on its way to its callers. */
struct graph_climber {
	uint32_t stack;
	uint32_t next; /* of the same node, and 1; 0: none */
	int64_t weight[2];
};

struct graph {
	struct functions *functions;
	unsigned flags;
	uint32_t *edges;     /* hash table of nodes by parent and call; 0: free, the root is nobody's child */
	uint32_t edge_count; /* of slots, power of two */
	struct graph_node *nodes;
	uint32_t count, cap;
	/* While placing; graph_place.c. */
	uint32_t most;
	uint64_t folded, placed;
	uint32_t *first; /* of each node, the first of its list: of stacks, or of climbers, and 1 */
	size_t first_cap;
	struct graph_climber *climbers;
	struct graph_waiting *waiting, *heaviest; /* heaps */
	size_t waiting_count, waiting_cap, heaviest_count;
};

/* The child of @parent for @call, made when there is none; *@ret may be @parent. 0 or -ENOMEM. */
int graph_child(struct graph *g, uint32_t parent, struct function_call call, uint32_t *ret);

#endif
