/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes lie in one array, a mapping, so that a large one grows without a copy and is gone once it is freed. An only child is
 * found through its parent; others in one hash table, which most nodes are thus not in. At most 3/4 of the table's places
 * are taken.
 */
#include "proto/sums/call_tree.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"

enum { FIRST_NODES = 1024 };

static int grow_nodes(struct call_tree *t)
{
	uint32_t cap = t->cap ? t->cap < UINT32_MAX / 2 ? t->cap * 2 : UINT32_MAX : FIRST_NODES;
	int err = cap == t->cap ? -ENOMEM : memory_zeros_reach(&t->mapping, cap * sizeof(*t->nodes));

	if (err)
		return err;
	t->nodes = t->mapping.at;
	t->cap = cap;
	return 0;
}

int call_tree_init(struct call_tree *t)
{
	*t = (struct call_tree){ .count = 1, .edge_cap = FIRST_NODES };
	t->edges = calloc(t->edge_cap, sizeof(*t->edges));
	return t->edges ? grow_nodes(t) : -ENOMEM;
}

void call_tree_fini(struct call_tree *t)
{
	memory_zeros_fini(&t->mapping);
	free(t->edges);
}

size_t call_tree_memory_bytes(const struct call_tree *t)
{
	return t->count * sizeof(*t->nodes) + t->edge_cap * sizeof(*t->edges);
}

/* --- finding --- */

/* The place of the child of @parent with @key, or the free place for it. */
static uint32_t *find_edge(const struct call_tree *t, uint32_t parent, uint64_t key)
{
	const uint64_t hash = key * 0x9e3779b97f4a7c15ull ^ parent * 0xc2b2ae3d27d4eb4full;
	uint32_t at = (uint32_t)(hash * 0xbf58476d1ce4e5b9ull >> 32);

	for (;; at++) {
		uint32_t *edge = &t->edges[at & (t->edge_cap - 1)];

		if (!*edge || (t->nodes[*edge].parent == parent && t->nodes[*edge].key == key))
			return edge;
	}
}

static void put_edge(struct call_tree *t, uint32_t node)
{
	*find_edge(t, t->nodes[node].parent, t->nodes[node].key) = node;
	t->edge_count++;
}

static int grow_edges(struct call_tree *t)
{
	const uint32_t cap = t->edge_cap;
	AUTO_FREE uint32_t *old = NULL;
	uint32_t *edges = calloc(2 * (size_t)cap, sizeof(*edges));

	if (!edges)
		return -ENOMEM;
	old = t->edges;
	t->edges = edges;
	t->edge_cap = 2 * cap;
	t->edge_count = 0;
	for (uint32_t i = 0; i < cap; i++)
		if (old[i])
			put_edge(t, old[i]);
	return 0;
}

/* @parent has none with @key. */
static int add_child(struct call_tree *t, uint32_t parent, uint64_t key, uint32_t *ret)
{
	const uint32_t first = t->nodes[parent].child, node = t->count;

	if ((node == t->cap && grow_nodes(t)) || (t->edge_count + 2 > t->edge_cap / 4 * 3 && grow_edges(t)))
		return -ENOMEM;
	if (first && !t->nodes[first].sibling)
		put_edge(t, first);
	t->nodes[node] = (struct call_node){ .parent = parent, .sibling = first, .key = key };
	t->nodes[parent].child = node;
	if (first)
		put_edge(t, node);
	t->count++;
	*ret = node;
	return 1;
}

int call_tree_child(struct call_tree *t, uint32_t parent, uint64_t key, uint32_t *ret)
{
	uint32_t node = t->nodes[parent].child;

	if (node && t->nodes[node].key != key)
		node = t->nodes[node].sibling ? *find_edge(t, parent, key) : 0;
	if (!node)
		return add_child(t, parent, key, ret);
	*ret = node;
	return 0;
}

/* --- summing up --- */

typedef bool before_fn(void *arg, const struct call_node *a, const struct call_node *b);

static uint32_t merge(struct call_node *nodes, uint32_t a, uint32_t b, before_fn *before, void *arg)
{
	uint32_t head = 0, *tail = &head;

	while (a && b) {
		uint32_t *from = before(arg, &nodes[b], &nodes[a]) ? &b : &a;

		*tail = *from;
		tail = &nodes[*from].sibling;
		*from = *tail;
	}
	*tail = a ? a : b;
	return head;
}

/* Merge sort: run i of @runs is empty or holds 2^i siblings in order. */
static uint32_t sort_siblings(struct call_node *nodes, uint32_t list, before_fn *before, void *arg)
{
	uint32_t runs[32] = { 0 }, sorted = 0;

	while (list) {
		uint32_t run = list;
		size_t i = 0;

		list = nodes[run].sibling;
		nodes[run].sibling = 0;
		for (; runs[i]; i++) {
			run = merge(nodes, runs[i], run, before, arg);
			runs[i] = 0;
		}
		runs[i] = run;
	}
	for (size_t i = 0; i < ARRAY_LEN(runs); i++)
		sorted = merge(nodes, runs[i], sorted, before, arg);
	return sorted;
}

void call_tree_sum(struct call_tree *t, before_fn *before, void *arg)
{
	struct call_node *nodes = t->nodes;

	for (uint32_t i = 0; i < t->count; i++)
		for (unsigned side = 0; side < 2; side++)
			nodes[i].total[side] = nodes[i].self[side];
	for (uint32_t i = t->count - 1; i > 0; i--) {
		struct call_node *parent = &nodes[nodes[i].parent];

		for (unsigned side = 0; side < 2; side++)
			parent->total[side] = weights_add(parent->total[side], nodes[i].total[side]);
	}
	for (uint32_t i = 0; i < t->count; i++) {
		const uint32_t child = nodes[i].child;

		if (child && nodes[child].sibling)
			nodes[i].child = sort_siblings(nodes, child, before, arg);
	}
}
