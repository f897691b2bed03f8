/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The nodes of a call tree: one for each path from the root, found by its parent and a key. A key stands for whatever tells
 * calls of one node apart (a name, a function and its line): its user knows. Each node has two weights, so that two
 * selections can stand side by side. A user adds weights of nodes by themselves, then has them summed up. Paths may be as
 * deep as an input says, so walks go along the links, not by recursion. Not shared between threads.
 */
#ifndef HEARTH_PROTO_SUMS_CALL_TREE_H
#define HEARTH_PROTO_SUMS_CALL_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "proto/weights.h"

struct call_node {
	uint32_t parent;
	uint32_t child, sibling; /* 0: none */
	uint8_t kind;		 /* the user's, and so is the next */
	bool is_inlined;
	uint64_t key;
	int64_t self[2], total[2]; /* totals: after call_tree_sum() */
};

struct call_tree {
	struct call_node *nodes; /* by number; 0 is the root, a child's number is above its parent's; they move */
	uint32_t count, cap;
	/* private to call_tree.c */
	struct memory_zeros mapping; /* of the nodes; owned */
	uint32_t *edges;	     /* hash table by parent and key of the nodes that have siblings; 0: free */
	uint32_t edge_count, edge_cap;
};

/* Makes a root alone. 0 or -ENOMEM; call_tree_fini() in any case. */
int call_tree_init(struct call_tree *t);
void call_tree_fini(struct call_tree *t);

/* The child of @parent with @key: 0; or 1 when there was none and it was made; or -ENOMEM. */
int call_tree_child(struct call_tree *t, uint32_t parent, uint64_t key, uint32_t *ret);

/* Makes totals of selfs, and puts siblings in the order that @before tells. May be called time and again. */
void call_tree_sum(struct call_tree *t, bool (*before)(void *arg, const struct call_node *a, const struct call_node *b),
		   void *arg);

/* Bytes of memory held. */
size_t call_tree_memory_bytes(const struct call_tree *t);

/* The weight of both sides together. */
static inline int64_t call_weight(const struct call_node *n)
{
	return weights_add(n->total[0], n->total[1]);
}

/* Neighbours of @n among @nodes; NULL: none. */
static inline const struct call_node *call_child(const struct call_node *nodes, const struct call_node *n)
{
	return n->child ? &nodes[n->child] : NULL;
}

static inline const struct call_node *call_sibling(const struct call_node *nodes, const struct call_node *n)
{
	return n->sibling ? &nodes[n->sibling] : NULL;
}

static inline const struct call_node *call_parent(const struct call_node *nodes, const struct call_node *n)
{
	return n == nodes ? NULL : &nodes[n->parent];
}

/* The node after @n in pre-order, NULL at the end. *@depth follows (0 at the root). */
static inline const struct call_node *call_next(const struct call_node *nodes, const struct call_node *n, uint32_t *depth)
{
	if (n->child) {
		++*depth;
		return &nodes[n->child];
	}
	while (n != nodes && !n->sibling) {
		n = &nodes[n->parent];
		--*depth;
	}
	return call_sibling(nodes, n);
}

#endif
