/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text forms of the aggregates. The same input gives the same text. Each is appended to @out; 0 or -ENOMEM. Control
 * characters inside names, which come from other people's files, are printed as '?'.
 */
#ifndef HEARTH_PROTO_REPORT_REPORT_H
#define HEARTH_PROTO_REPORT_REPORT_H

#include "base/buf.h"
#include "proto/sums/activity.h"
#include "proto/sums/locks.h"
#include "proto/sums/top.h"
#include "proto/sums/tree.h"

struct pattern;

/* The style of a text. */
struct report_style {
	unsigned columns;   /* of the terminal: long names are cut in their middle to fit; 0: never cut */
	bool colour;	    /* the terminal has colours */
	uint32_t max_rows;  /* of a table; 0: all */
	double min_percent; /* branches of a tree lighter than this part of everything fold into one line that keeps their
			       weight */
	uint32_t max_depth; /* levels of a tree; 0: all */
	const char *by;	    /* what the view groups by; NULL: it does not */
};

int report_top(struct top *t, const struct report_style *style, struct buf *out);
int report_tree(struct tree *t, const struct report_style *style, struct buf *out);
/* Appends the text of the source file @path. False: it cannot be read here. */
typedef bool report_source_fn(const char *path, struct buf *out);
/* Prints @functions one by one as listings, with the weight of each of their lines from @lines, the same samples split by
 * lines, and with the source as far as @read finds it (NULL: nowhere). Only those that match @pattern (NULL: all). */
int report_lines(struct top *functions, struct top *lines, struct pattern *pattern, report_source_fn *read,
		 const struct report_style *style, struct buf *out);
/* Prints who was active, with the course over time as a row of bars (@with_course) or with ids and times. */
int report_activity(struct activity *a, bool with_course, const struct report_style *style, struct buf *out);
/* Prints each lock with who waited for it and who let it go. */
int report_locks(struct locks *l, const struct report_style *style, struct buf *out);
/* All rows of @t as RFC 4180 has it, with a line of headings. */
int report_csv(struct top *t, struct buf *out);
/* comm;root;...;leaf COUNT, one line a stack, sorted level by level; ';' in names becomes ':', line ends become ' '. */
int report_folded(struct tree *t, struct buf *out);
/*
 * {"samples","weight","type","unit","cpu_ns","functions":[{"name","module","group","type","source","self","total"}],
 *  "processes":[{"name","pid","threads","samples","weight"}],"tree":[{"name","parent","self","total"}]}: "group" only where
 * the view groups; the tree in pre-order, "parent" the index of a node before it (-1: root).
 */
int report_json(struct top *t, struct activity *processes, struct tree *tree, struct buf *out);

/* The line of what was added up: "10,000 samples, 100.0 s of CPU time". */
void report_sum(const struct weight_sum *sum, struct buf *out);
/* @weight in CPU seconds, without the unit, where those are known of @sum; else as it is. */
void report_weight(const struct weight_sum *sum, uint64_t weight, struct buf *out);
/* " file.c:12" where it is known. */
void report_place(const struct top_row *row, struct buf *out);
/* One field of a line of CSV. */
void report_csv_text(struct buf *out, const char *text);

#endif
