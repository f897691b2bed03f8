/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of functions: self and total weight of each (name, module), or of each of their source lines, in each group of a
 * view if that groups, since the start and in the current interval. Grows with the number of distinct ones. Not shared
 * between threads. Adders return 0 or -ENOMEM (the table then misses samples).
 */
#ifndef HEARTH_PROTO_TOP_H
#define HEARTH_PROTO_TOP_H

#include "proto/view.h"

struct top;

struct top_counts {
	uint64_t self;	/* weight of samples with this function at the leaf */
	uint64_t total; /* weight of samples with it anywhere (once a sample, recursion or not) */
};

struct top_row {
	const char *name;	  /* as frame_print */
	const char *module;	  /* base name, "" when unknown */
	const char *group;	  /* of the view; "" when it does not group */
	const char *file;	  /* source file; "" when not known or asked for */
	int64_t line;		  /* 0: the same */
	const char *type;	  /* frame type */
	const char *source;	  /* what the name is from, as in MODULES_SOURCE_KEY; "" when not told */
	struct top_counts all;	  /* since top_new or top_reset */
	struct top_counts recent; /* since top_begin_interval */
};

struct top *top_new(void);
void top_free(struct top *t);

/* What follows is set before top_add. */

/* Looks through @view, which the caller keeps for as long as it adds; NULL, as at first: at everything. */
void top_view(struct top *t, const struct view *view);

/* What the rows count: functions, as at first; modules; or the groups of the view, whose type then is that of any frame. */
enum top_kind { TOP_FUNCTIONS, TOP_MODULES, TOP_GROUPS };
void top_count(struct top *t, enum top_kind kind);

/* A row for each source line. */
void top_split_lines(struct top *t);

int top_add(struct top *t, const struct profiles *p);
void top_reset(struct top *t);

/* Zeroes the recent counts. */
void top_begin_interval(struct top *t);

/* Bytes of memory held. */
size_t top_memory_bytes(const struct top *t);

/* Drops the lightest functions when there are more than twice @max_rows, down to @max_rows; their self weight goes on in one
 * row TOP_DROPPED. Bounds a table that lives long. 0, or -ENOMEM (the table may have started anew). */
#define TOP_DROPPED "(light functions)"
int top_trim(struct top *t, uint32_t max_rows);

const struct weight_sum *top_sum(const struct top *t);
const struct weight_sum *top_recent_sum(struct top *t);

/*
 * The rows by falling self weight (ties: total, name, module, group, file, line): all of them, or those of the current
 * interval. Valid until the next call on @t. NULL with *@count_ret 0 when there are none, or for want of memory.
 */
const struct top_row *top_rows(struct top *t, uint32_t *count_ret);
const struct top_row *top_recent_rows(struct top *t, uint32_t *count_ret);

#endif
