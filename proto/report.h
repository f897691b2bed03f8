/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text forms of the aggregates. The same input gives the same text. Each is appended to @out; 0 or -ENOMEM. Control
 * characters inside names, which come from other people's files, are printed as '?'.
 */
#ifndef HEARTH_PROTO_REPORT_H
#define HEARTH_PROTO_REPORT_H

#include "base/buf.h"
#include "proto/top.h"
#include "proto/tree.h"

/* @columns: the width of the terminal, to which long names are cut in their middle; 0: never cut. @max_rows 0: all. */
int report_top(struct top *t, uint32_t max_rows, unsigned columns, struct buf *out);
/* Branches lighter than @min_percent of everything are folded into one line "(N more)" that keeps their weight. */
int report_tree(struct tree *t, double min_percent, unsigned columns, struct buf *out);
/* comm;root;...;leaf COUNT, one line a stack, sorted level by level; ';' in names becomes ':', line ends become ' '. */
int report_folded(struct tree *t, struct buf *out);
/*
 * {"samples","weight","type","unit","functions":[{"name","module","type","self","total"}],
 *  "tree":[{"name","parent","self","total"}]}: the tree in pre-order, "parent" the index of a node before it (-1: root).
 */
int report_json(struct top *t, struct tree *tree, struct buf *out);

/* The line of what was added up: "10,000 samples, 100.0 s of CPU time". */
void report_sum(const struct weight_sum *sum, struct buf *out);

#endif
