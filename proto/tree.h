/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The call tree: stacks of equal group and equal function names, root first, merged into one node a path. The outermost
 * level is the group of the view, or the comm where that does not group. Inverted, it has the functions at the leaves of the
 * stacks outermost and their callers below them, with the group as outermost level only where the view groups. Grows with
 * the number of distinct paths. Not shared between threads. A stack may be as deep as its input says, so walks over a tree
 * go along its links, not by recursion: tree_next() is the walk.
 */
#ifndef HEARTH_PROTO_TREE_H
#define HEARTH_PROTO_TREE_H

#include "proto/view.h"

/* What a node stands for, by the type of its first frame. */
enum tree_kind { TREE_PROCESS, TREE_KERNEL, TREE_NATIVE, TREE_GO, TREE_SCRIPT, TREE_MARKER };

struct tree_node {
	const char *name;
	enum tree_kind kind;
	bool is_inlined;
	uint64_t self;
	uint64_t total;
	uint64_t second;	  /* the part of @total that tree_add_path() was told is of the second of two sides */
	struct tree_node *parent; /* NULL for the root */
	struct tree_node *child;
	struct tree_node *sibling;
};

struct tree;

struct tree *tree_new(void);
void tree_free(struct tree *t);

/* What follows is set before tree_add. */

/* Names come with these enum frame_extra; none at first. */
void tree_show(struct tree *t, unsigned extras);

/* Looks through @view, which the caller keeps for as long as it adds; NULL, as at first: at everything. */
void tree_view(struct tree *t, const struct view *view);

/* From the leaves to their callers. */
void tree_invert(struct tree *t);
bool tree_is_inverted(const struct tree *t);

/* 0 or -ENOMEM (the tree then misses samples). */
int tree_add(struct tree *t, const struct profiles *p);

/* A stack of @count names, root first; @total with @second in it. 0 or -ENOMEM. */
struct tree_step {
	const char *name, *type; /* profile.frame.type */
};
int tree_add_path(struct tree *t, const struct tree_step *steps, uint32_t count, uint64_t total, uint64_t second);

const struct weight_sum *tree_sum(const struct tree *t);

/* The root, which has the name "" and the total of everything; children heaviest first (ties: by name), or by name. Valid
 * until the next call on @t. */
const struct tree_node *tree_root(struct tree *t);
const struct tree_node *tree_root_by_name(struct tree *t);

/* The node after @n in pre-order, NULL at the end. *@depth follows (0 at the root). */
const struct tree_node *tree_next(const struct tree_node *n, uint32_t *depth);

#endif
