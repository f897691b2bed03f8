/* SPDX-License-Identifier: Apache-2.0 */
/* Call trees as docs/api.md has them. */
#ifndef HEARTH_BACKEND_GRAPH_JSON_H
#define HEARTH_BACKEND_GRAPH_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "backend/graph.h"
#include "base/json.h"

struct graph_cut {
	uint32_t nodes; /* how many are not shown */
	int64_t weight;
};

/*
 * Writes the members "functions" and "nodes" of the object that @j is in: at most @max_nodes of @g (after graph_sum()), the
 * lightest branches put together below their callers as "(other)". @root is the root's name; @two_sides adds self2 and
 * total2. What was cut is in *@cut_ret (may be NULL). 0 or -ENOMEM.
 */
int graph_write_columns(const struct graph *g, const char *root, uint32_t max_nodes, bool two_sides, struct json *j,
			struct graph_cut *cut_ret);

/* The nodes that it would write, in pre-order, callers before callees, siblings heaviest first. */
struct graph_row {
	const char *name; /* the function's, "(other)", or the root's */
	uint32_t depth;	  /* 0: the root */
	int64_t self, total;
};

/* Calls @fn for each; what it returns other than 0 ends it. 0, -ENOMEM, or that. */
int graph_each_row(const struct graph *g, const char *root, uint32_t max_nodes,
		   int (*fn)(void *arg, const struct graph_row *row), void *arg);

/* The same as one nested object a node. */
int graph_write_nested(const struct graph *g, const char *root, uint32_t max_nodes, struct json *j);

#endif
