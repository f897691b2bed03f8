/* SPDX-License-Identifier: Apache-2.0 */
/* A comparison as text. The same input gives the same text. Each is appended to @out; 0 or -ENOMEM. */
#ifndef HEARTH_PROTO_REPORT_DIFF_TABLE_H
#define HEARTH_PROTO_REPORT_DIFF_TABLE_H

#include "proto/sums/diff.h"
#include "proto/report/report.h"

/* Prints what changed, for a terminal. */
int report_diff(const struct diff_result *r, const struct report_style *style, struct buf *out);
/* The same as a table for a pull request. */
int report_diff_markdown(const struct diff_result *r, const struct report_style *style, struct buf *out);
/* A flame graph of both sides together: what B takes more of is red, what A does blue, in shades of how much, and what
 * differs by no more than noise is grey. */
int report_diff_svg(const struct diff *d, const struct diff_result *r, struct buf *out);
/* The same as a page that is complete in itself, with search and a table of the functions and their noise. */
int report_diff_html(const struct diff *d, const struct diff_result *r, struct buf *out);
/* All functions and stacks, changed or not. */
int report_diff_csv(const struct diff_result *r, struct buf *out);
/* {"measure","unit","runs":{"a","b"},"samples":{..},"cpu_seconds":{..},"changed","functions":[{"name","module","type",
 * "self":{"a","b","delta","band","changed"},"total":{..}}],"stacks":[{"stack":[names, root first],"self":{..}}]} */
int report_diff_json(const struct diff_result *r, struct buf *out);

/* Something that changed. */
struct diff_line {
	const struct diff_change *change;
	const struct diff_function *function; /* NULL: the whole program */
	bool is_total;			      /* the function with what it calls, not it itself */
};

/* Calls @fn for all that changed: the whole program, then each line of the table. */
void report_diff_each(const struct diff_result *r, void (*fn)(void *arg, const struct diff_line *line), void *arg);
/* Appends one line that tells it: "  +0.120s (noise ±0.010): 0.100 -> 0.220  hash (app)". */
void report_diff_line(const struct diff_result *r, const struct diff_line *line, struct buf *out);

#endif
