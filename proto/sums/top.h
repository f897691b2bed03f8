/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of functions: self and total weight of each (name, module), or of each of their source lines, in each group of a
 * view if that groups, since the start and in the current interval. Grows with the number of distinct ones. Not shared
 * between threads. Adders return 0 or -ENOMEM (the table then misses samples).
 */
#ifndef HEARTH_PROTO_SUMS_TOP_H
#define HEARTH_PROTO_SUMS_TOP_H

#include "proto/sums/view.h"

struct top;

struct top_counts {
	uint64_t self;	/* weight of samples with this function at the leaf */
	uint64_t total; /* weight of samples with it anywhere (once a sample, recursion or not) */
};

/* The same, of the current interval and, by what each interval lets the ones before it weigh, of those. */
struct top_recent {
	double self, total;
};

struct top_row {
	const char *name;      /* as stack_frame_print */
	const char *module;    /* base name, "" when unknown */
	const char *group;     /* of the view; "" when it does not group */
	const char *file;      /* source file; "" when not known or asked for */
	int64_t line;	       /* 0: the same */
	const char *type;      /* frame type */
	const char *source;    /* what the name is from, as in MODULES_SOURCE_KEY; "" when not told */
	struct top_counts all; /* since top_new or top_reset */
	struct top_recent recent;
};

struct top *top_new(void);
void top_free(struct top *t);

/* The following fields are set before top_add. */

/* Looks through @view, which the caller keeps for as long as it adds; NULL, as at first: at everything. */
void top_view(struct top *t, const struct view *view);

/* The kind of rows: functions, as at first; modules; or the groups of the view, whose type then is that of any frame. */
enum top_kind { TOP_FUNCTIONS, TOP_MODULES, TOP_GROUPS };
void top_count(struct top *t, enum top_kind kind);

/* A row for each source line. */
void top_split_lines(struct top *t);

int top_add(struct top *t, const struct profiles *p);
void top_reset(struct top *t);

/* Begins an interval, before which what was counted weighs @keep times as much in the recent counts as it did: 0 forgets it.
 * Rows of less than TOP_FORGOTTEN are not recent any more. */
#define TOP_FORGOTTEN 0.05
void top_begin_interval(struct top *t, double keep);

/* Bytes of memory held. */
size_t top_memory_bytes(const struct top *t);

/* Drops the lightest functions when there are more than twice @max_rows, down to @max_rows; their self weight goes on in one
 * row TOP_DROPPED. Bounds a table that lives long. 0, or -ENOMEM (the table may have started anew). */
#define TOP_DROPPED "(light functions)"
int top_trim(struct top *t, uint32_t max_rows);

const struct weight_sum *top_sum(const struct top *t);
/* The same of the current interval alone. */
const struct weight_sum *top_recent_sum(struct top *t);
/* The weight of which the rows' recent counts are parts. */
double top_recent_weight(const struct top *t);

/*
 * The rows by falling self weight (ties: total, name, module, group, file, line): all of them, or the recent ones. Valid
 * until the next call on @t. NULL with *@count_ret 0 without memory.
 */
const struct top_row *top_rows(struct top *t, uint32_t *count_ret);
const struct top_row *top_recent_rows(struct top *t, uint32_t *count_ret);

#endif
