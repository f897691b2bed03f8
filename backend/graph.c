/* SPDX-License-Identifier: Apache-2.0 */
/* The nodes of a call tree: finding and making them, and what they add up to. */
#include "backend/graph_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

enum { FIRST_NODES = 1024 };

struct graph *graph_new(struct functions *functions, unsigned flags, uint32_t most)
{
	struct graph *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	g->functions = functions;
	g->flags = flags;
	g->most = most;
	g->cap = FIRST_NODES;
	g->nodes = calloc(g->cap, sizeof(*g->nodes));
	g->edge_count = 2 * FIRST_NODES;
	g->edges = calloc(g->edge_count, sizeof(*g->edges));
	if (!g->edges || !g->nodes) {
		graph_free(g);
		return NULL;
	}
	g->nodes[0].call.function = UINT32_MAX;
	g->count = 1;
	return g;
}

/* What placing alone needs. */
static void forget_places(struct graph *g)
{
	free(g->edges);
	free(g->first);
	free(g->climbers);
	free(g->waiting);
	free(g->heaviest);
	g->edges = g->first = NULL;
	g->climbers = NULL;
	g->waiting = g->heaviest = NULL;
}

void graph_free(struct graph *g)
{
	if (!g)
		return;
	forget_places(g);
	free(g->nodes);
	free(g);
}

uint64_t graph_folded(const struct graph *g)
{
	return g->folded;
}

struct functions *graph_functions(const struct graph *g)
{
	return g->functions;
}

uint64_t graph_memory_bytes(const struct graph *g)
{
	return g->cap * sizeof(*g->nodes) + g->edge_count * sizeof(*g->edges) + g->first_cap * sizeof(*g->first) +
	       g->waiting_cap * sizeof(*g->waiting);
}

struct graph_node *graph_nodes(const struct graph *g, uint32_t *count_ret)
{
	if (count_ret)
		*count_ret = g->count;
	return g->nodes;
}

/* --- edges --- */

/* Where the child of @parent for @call stands, or the free place for it. */
static uint32_t *find_edge(const struct graph *g, uint32_t parent, struct function_call call)
{
	const uint64_t hash = ((uint64_t)parent << 32 | call.function) * 0x9e3779b97f4a7c15ull ^
			      ((uint64_t)call.line << 1 | call.inlined) * 0xc2b2ae3d27d4eb4full;
	uint32_t at = (uint32_t)(hash * 0xbf58476d1ce4e5b9ull >> 32);

	for (;; at++) {
		uint32_t *edge = &g->edges[at & (g->edge_count - 1)];
		const struct graph_node *n = &g->nodes[*edge];

		if (!*edge || (n->parent == parent && n->call.function == call.function && n->call.line == call.line &&
			       n->call.inlined == call.inlined))
			return edge;
	}
}

/* Room for one node more; at most 3/4 of the edges' places are taken. */
static int grow_nodes(struct graph *g)
{
	if (g->count == g->cap) {
		uint32_t cap = g->cap * 2;
		struct graph_node *nodes = cap > g->cap ? realloc(g->nodes, cap * sizeof(*nodes)) : NULL;

		if (!nodes)
			return -ENOMEM;
		g->nodes = nodes;
		g->cap = cap;
	}
	if (g->count >= g->edge_count / 4 * 3) {
		uint32_t *edges = calloc(2 * (size_t)g->edge_count, sizeof(*edges));

		if (!edges)
			return -ENOMEM;
		free(g->edges);
		g->edges = edges;
		g->edge_count *= 2;
		for (uint32_t i = 1; i < g->count; i++)
			*find_edge(g, g->nodes[i].parent, g->nodes[i].call) = i;
	}
	return 0;
}

int graph_child(struct graph *g, uint32_t parent, struct function_call call, uint32_t *ret)
{
	int err = grow_nodes(g);
	uint32_t *edge;

	if (err)
		return err;
	if (call.inlined && g->flags & GRAPH_NO_INLINE) {
		*ret = parent;
		return 0;
	}
	if (!(g->flags & GRAPH_LINES))
		call.line = 0;
	edge = find_edge(g, parent, call);
	if (!*edge) {
		*edge = g->count;
		g->nodes[g->count++] = (struct graph_node){ .parent = parent, .call = call };
	}
	*ret = *edge;
	return 0;
}

/* Of equal weights by name, so that the same samples make the same tree however the store holds them. */
static int heaviest_first(const void *a, const void *b, void *arg)
{
	const struct graph *g = arg;
	const struct graph_node *x = &g->nodes[*(const uint32_t *)a], *y = &g->nodes[*(const uint32_t *)b];
	int64_t xw = graph_weight(x), yw = graph_weight(y);
	int order;

	if (xw != yw)
		return xw > yw ? -1 : 1;
	order = strcmp(functions_get(g->functions, x->call.function).name,
		       functions_get(g->functions, y->call.function).name);
	if (order)
		return order;
	return *(const uint32_t *)a < *(const uint32_t *)b ? -1 : 1;
}

/* Sorts the children of each node. They are gathered by parent first (a counting sort), so each sort is of one family. */
static int link_children(struct graph *g)
{
	AUTO_FREE uint32_t *start = calloc((size_t)g->count + 1, sizeof(*start));
	AUTO_FREE uint32_t *family = calloc(g->count, sizeof(*family));

	if (!start || !family)
		return -ENOMEM;
	for (uint32_t i = 1; i < g->count; i++)
		start[g->nodes[i].parent + 1]++;
	for (uint32_t i = 0; i < g->count; i++)
		start[i + 1] += start[i];
	for (uint32_t i = 1; i < g->count; i++)
		family[start[g->nodes[i].parent]++] = i; /* start[p] becomes the end of p's family */
	for (uint32_t p = 0, begin = 0; p < g->count; begin = start[p++]) {
		uint32_t size = start[p] - begin;

		if (size > 1)
			qsort_r(family + begin, size, sizeof(*family), heaviest_first, g);
		if (size)
			g->nodes[p].child = family[begin];
		for (uint32_t i = 0; i + 1 < size; i++)
			g->nodes[family[begin + i]].sibling = family[begin + i + 1];
	}
	return 0;
}

int graph_sum(struct graph *g)
{
	forget_places(g);
	for (uint32_t i = 0; i < g->count; i++)
		for (unsigned side = 0; side < 2; side++)
			g->nodes[i].total[side] = g->nodes[i].self[side];
	for (uint32_t i = g->count - 1; i > 0; i--)
		for (unsigned side = 0; side < 2; side++)
			g->nodes[g->nodes[i].parent].total[side] += g->nodes[i].total[side];
	return link_children(g);
}
