/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds what changed between two programs, A and B, each with one or more runs: the weight of each function, in itself and
 * with what it calls, and of each stack, with the band of noise around each difference. docs/diff.md says how the bands are
 * found and how well they do. Grows with the number of functions and stacks. Not shared between threads.
 */
#ifndef HEARTH_PROTO_SUMS_DIFF_H
#define HEARTH_PROTO_SUMS_DIFF_H

#include "proto/sums/view.h"

enum diff_side { DIFF_A, DIFF_B };

/* The measure that is compared: parts of the runs, whatever their length; or CPU time a run, which needs two runs a side,
 * and of functions that do the same in each run is the steadier one: it does not depend on all the others. Auto: time where
 * it can be. */
enum diff_measure { DIFF_AUTO, DIFF_SHARES, DIFF_TIMES };

struct diff;

/* @view is for diff_add_run() and may be NULL without it. */
struct diff *diff_new(const struct view *view);
void diff_free(struct diff *d);

/* One run of a side: a whole capture. 0; -ENOMEM; -EINVAL: its samples are of another type than those before. */
int diff_add_run(struct diff *d, enum diff_side side, const struct profiles *p);

/*
 * One run of which only the weights of functions are known, not its stacks and times: such runs are pieces of time of what
 * was sampled without end. Such a run is begun, told function by function, and ended with its whole weight, in how many
 * @events, and the squares of what each of those weighs; a run of no weight is none. 0 or -ENOMEM.
 */
int diff_begin_run(struct diff *d, enum diff_side side);
int diff_count_function(struct diff *d, uint32_t function, double self, double total);
void diff_end_run(struct diff *d, double weight, uint64_t events, double squares);

/* The number of a function, as diff_function.index has it. Functions of one name and module are one. 0 or -ENOMEM. */
int diff_find_function(struct diff *d, const char *name, const char *module, const char *type, uint32_t *index_ret);

uint32_t diff_run_count(const struct diff *d, enum diff_side side);

/* One difference. Values are parts of 1, or seconds a run; those of stacks are in themselves. */
struct diff_change {
	double a, b;
	double delta; /* b - a */
	double band;  /* noise reaches so far to both sides */
	bool changed; /* by more than the band and the least change asked for */
};

struct diff_function {
	const char *name, *module, *type;
	uint32_t index; /* its place in diff_result.by_index */
	struct diff_change self, total;
	bool judged;	   /* its total is of samples enough */
	double seconds[2]; /* CPU time of it itself a run, 0 when not known */
};

struct diff_stack {
	const uint32_t *functions; /* root first: indices into diff_result.by_index */
	uint32_t count;
	struct diff_change self;
};

struct diff_summary {
	uint32_t runs[2];
	uint64_t events[2];
	double seconds[2];	   /* CPU time a run, 0 when not known */
	struct diff_change all;	   /* the whole; its band is only known of times */
	uint32_t judged_functions; /* those in enough samples */
	uint32_t judged_stacks;
	uint32_t changed_functions, changed_stacks;
	double sharpness; /* the band of a function that takes half of the time, parts of 1 */
	double spread;	  /* variance between runs over that within them; 0: one run a side, not known */
	enum diff_measure measure;
};

struct diff_result {
	struct diff_function *functions; /* most changed first: in themselves, then with what they call; ties by name */
	struct diff_function **by_index;
	struct diff_stack *stacks; /* the same */
	uint32_t function_count, stack_count;
	struct diff_summary summary;
};

/*
 * Compares. A change is one by more than @least (parts of 1 of what A is) and outside of its band. The result and what it
 * leads to live until the next call on @d. 0; -ENOMEM; -EINVAL: a side has no samples, or too few runs for the measure.
 */
int diff_judge(struct diff *d, enum diff_measure measure, double least, const struct diff_result **ret);

/* The band of noise around the difference of anything that takes @part of A and B on average; after diff_judge. */
double diff_band(const struct diff *d, double part);

#endif
