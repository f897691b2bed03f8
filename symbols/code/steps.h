/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sorted steps, the one shape that ranges and line rows end in: a step's value holds from its address up to the next step's.
 * Sorting, flattening overlapping ranges, and letting a second run of steps fill the holes of a first. Pure functions over
 * arrays; growing an array is counted against the owner's budget.
 */
#ifndef HEARTH_SYMBOLS_CODE_STEPS_H
#define HEARTH_SYMBOLS_CODE_STEPS_H

#include <stddef.h>
#include <stdint.h>

/* A step; also a range (@extra: bytes) or a line row before they are flattened. */
struct code_step {
	uint64_t addr;
	uint32_t value; /* CODE_NONE: nothing */
	uint32_t extra; /* how far @addr is behind the start of what holds there, at most UINT32_MAX */
};

/* Bytes held by several arrays, and how many may be. */
struct code_budget {
	size_t held_bytes;
	size_t max_bytes;
};

struct code_steps {
	struct code_step *data; /* owned */
	size_t count;
	size_t cap;
};

void code_steps_fini(struct code_steps *s, struct code_budget *budget);

/* Makes *@array, of *@cap elements, hold @need of them; doubles. 0, -ENOMEM, -E2BIG. */
int code_grow(void **array, size_t *cap, size_t need, size_t element_bytes, struct code_budget *budget);

/* Appends a step; one at the address of the last takes its place, one of the same value and start is left out. 0, -ENOMEM,
 * -E2BIG. */
int code_steps_add(struct code_steps *s, struct code_step step, struct code_budget *budget);

/* Sorts by address; equal addresses keep their order. */
int code_steps_sort(struct code_steps *s, struct code_budget *budget);

/* Decides between overlapping ranges: the value with the greater rank, then the greater value. @root_ret: the value whose
 * range counts as the start of the whole, itself for a root. */
typedef uint32_t (*code_rank_fn)(const void *ctx, uint32_t value, uint32_t *root_ret);

/* Flattens @ranges (sorted by address, @extra their length) into @out, which is empty. 0, -ENOMEM, -E2BIG. */
int code_steps_flatten(const struct code_steps *ranges, code_rank_fn rank, const void *ctx, struct code_steps *out,
		       struct code_budget *budget);

/* Chooses the value where both runs have one: @first or another one, which then counts from where @second's does. */
typedef uint32_t (*code_pick_fn)(void *ctx, uint32_t first, uint32_t second);

/* Puts into @s what @more has where @s has nothing, and what @pick (NULL: @s stays) says where both have something. @more is
 * used up. 0, -ENOMEM, -E2BIG. */
int code_steps_fill(struct code_steps *s, struct code_steps *more, code_pick_fn pick, void *ctx, struct code_budget *budget);

/* The step that holds at @addr, or NULL. */
const struct code_step *code_steps_find(const struct code_steps *s, uint64_t addr);

#endif
