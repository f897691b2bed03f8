/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of diff: the counts. */
#ifndef HEARTH_PROTO_SUMS_DIFF_RUNS_H
#define HEARTH_PROTO_SUMS_DIFF_RUNS_H

#include "base/buf.h"
#include "base/intern.h"
#include "proto/sums/diff.h"

enum { DIFF_SLICES = 32 };

/* The weight of each item in each slice of time: item i's are at [i * the run's slice_count]. Items from @count on have
 * none. */
struct diff_counts {
	double *slices;
	uint32_t count, cap;
};

enum diff_items { DIFF_SELF, DIFF_TOTAL, DIFF_STACK, DIFF_ITEM_KINDS };

struct diff_run {
	enum diff_side side;
	struct weight_sum sum;
	bool has_slices;      /* its events have times */
	unsigned slice_count; /* DIFF_SLICES, or 1: its weights were told without times */
	double slices[DIFF_SLICES];
	double weight;
	double squares; /* of the weights of events: how many independent ones there are is weight^2 / squares */
	struct diff_counts items[DIFF_ITEM_KINDS];
};

struct diff {
	const struct view *view;
	struct intern *functions; /* name NUL module NUL */
	struct intern *types;	  /* NUL-terminated */
	uint32_t *type_of;	  /* by function */
	size_t type_cap;
	struct intern *stacks; /* functions, root first, uint32_t */
	struct diff_run *runs;
	uint32_t run_count, run_cap;
	char *program; /* of the first run: the executable that nearly all of it is from; NULL: none, or no run yet */
	struct buf key;
	/* The result of the last comparison. */
	struct diff_result result;
	double band_factor; /* band of part p: this * sqrt(p * (1 - p)) */
};

/* The weight of an item of a run in all slices. */
double diff_run_item(const struct diff_run *run, enum diff_items kind, uint32_t item);
/* The same in slice @k. */
double diff_run_slice(const struct diff_run *run, enum diff_items kind, uint32_t item, unsigned k);

#endif
