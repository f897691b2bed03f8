/* SPDX-License-Identifier: Apache-2.0 */
/* A comparison as text. The same input gives the same text. Each is appended to @out; 0 or -ENOMEM. */
#ifndef HEARTH_PROTO_REPORT_DIFF_H
#define HEARTH_PROTO_REPORT_DIFF_H

#include "proto/diff.h"
#include "proto/report.h"

/* What changed, for a terminal. */
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

/*
 * Why a check fails: what grew by more than @limit (a part of 1 of what A is) and out of its noise, heaviest first; at most
 * @max_rows of them. Returns how many there are; nothing is appended when there is none.
 */
uint32_t report_diff_failures(const struct diff_result *r, double limit, uint32_t max_rows, struct buf *out);

#endif
