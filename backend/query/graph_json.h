/* SPDX-License-Identifier: Apache-2.0 */
/* Call trees as docs/api.md has them. */
#ifndef HEARTH_BACKEND_QUERY_GRAPH_JSON_H
#define HEARTH_BACKEND_QUERY_GRAPH_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "backend/query/graph.h"
#include "base/text/json.h"

struct graph_cut {
	uint32_t nodes; /* how many are not shown */
	int64_t weight;
};

/* A member more of "functions": a number for each, 0 for the root and "(other)". */
struct graph_column {
	const char *key;
	double (*value)(const void *arg, uint32_t function);
	const void *arg;
};

/*
 * Writes the members "functions" and "nodes" of the object that @j is in: at most @max_nodes of @g (after graph_sum()), the
 * lightest branches put together below their callers as "(other)". @root is the root's name; @two_sides adds self2 and
 * total2, @extra (may be NULL, else a key NULL ends it) columns of functions. *@cut_ret (may be NULL) says what was left
 * out. 0 or -ENOMEM.
 */
int graph_write_columns(const struct graph *g, const char *root, uint32_t max_nodes, bool two_sides,
			const struct graph_column *extra, struct json *j, struct graph_cut *cut_ret);

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
