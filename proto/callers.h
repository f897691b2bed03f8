/* SPDX-License-Identifier: Apache-2.0 */
/* Who calls a function: the stacks above it, merged from it outward, as lines to be shown. One thread. */
#ifndef HEARTH_PROTO_CALLERS_H
#define HEARTH_PROTO_CALLERS_H

#include "proto/stack_walk.h"

struct caller {
	const char *name, *module, *type; /* as in a struct top_row */
	unsigned depth;			  /* 1: calls the function itself; 2: calls that one; ... */
	uint64_t weight;		  /* of the samples that came this way */
};

struct callers;

/*
 * The callers of the function @name of @module in @p, as a tree in pre-order, heaviest first: at most @max_lines of them, no
 * deeper than @max_depth, none lighter than @least_part of all its samples. A recursive function counts where it is
 * innermost, and is then among its callers. 0 or -ENOMEM.
 */
int callers_find(const struct profiles *p, const char *name, const char *module, uint32_t max_lines, unsigned max_depth,
		 double least_part, struct callers **ret);
void callers_free(struct callers *c);

const struct caller *callers_lines(const struct callers *c, uint32_t *count_ret);

#endif
