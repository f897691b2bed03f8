/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The call tree: stacks of equal group and equal function names, root first, merged into one node a path. The outermost
 * level is the group of the view, or the comm where that does not group. Inverted, it has the functions at the leaves of the
 * stacks outermost and their callers below them, with the group as outermost level only where the view groups. Grows with
 * the number of distinct paths. Not shared between threads.
 */
#ifndef HEARTH_PROTO_SUMS_TREE_H
#define HEARTH_PROTO_SUMS_TREE_H

#include "proto/sums/call_tree.h"
#include "proto/sums/view.h"

/* The kind of a node, by the type of its first frame. */
enum tree_kind { TREE_PROCESS, TREE_KERNEL, TREE_NATIVE, TREE_GO, TREE_SCRIPT, TREE_MARKER };

struct tree;

struct tree *tree_new(void);
void tree_free(struct tree *t);

/* The following fields are set before tree_add. */

/* Names come with these enum frame_extra; none at first. */
void tree_show(struct tree *t, unsigned extras);

/* Looks through @view, which the caller keeps for as long as it adds; NULL, as at first: at everything. */
void tree_view(struct tree *t, const struct view *view);

/* Turns the tree round: from the leaves to their callers. */
void tree_invert(struct tree *t);
bool tree_is_inverted(const struct tree *t);

/* Turns the tree round and has its root stand for the function @name of @module, which the caller keeps, where it is
 * innermost in a stack, if at all; callers are told apart by module and type, which follow the NUL of a name and each other,
 * and none is further away than @max_depth. */
void tree_callers(struct tree *t, const char *name, const char *module, uint32_t max_depth);

/* 0 or -ENOMEM (the tree then misses samples). */
int tree_add(struct tree *t, const struct profiles *p);

/* A stack of @count names, root first, with its weights on both sides. 0 or -ENOMEM. */
struct tree_step {
	const char *name, *type; /* profile.frame.type */
};
int tree_add_path(struct tree *t, const struct tree_step *steps, uint32_t count, const int64_t weights[2]);

/* Bytes of memory held. */
size_t tree_memory_bytes(const struct tree *t);

const struct weight_sum *tree_sum(const struct tree *t);

/* The root, which has the name "" and the total of everything, and behind it all nodes by number (struct call_node);
 * children heaviest first (ties: by name), or by name. Valid until the next call on @t. */
const struct call_node *tree_root(struct tree *t);
const struct call_node *tree_root_by_name(struct tree *t);

const char *tree_name(const struct tree *t, const struct call_node *n);

/* Weights of a tree, which count from 0 up. */
static inline uint64_t tree_self(const struct call_node *n)
{
	return (uint64_t)weights_add(n->self[0], n->self[1]);
}

static inline uint64_t tree_total(const struct call_node *n)
{
	return (uint64_t)call_weight(n);
}

#endif
