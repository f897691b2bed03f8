/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps: sorted by radix, since hundreds of thousands of ranges are to be settled in milliseconds; flattened by a sweep over
 * the sorted ranges with a heap of those that are open. Ranges come from other people's files: they may overlap in any way,
 * and the time stays n log n. Invariant of a finished run: addresses ascend strictly, neighbours differ.
 */
#include "symbols/code/steps.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "symbols/code/names.h"

enum { DIGIT_BITS = 11, FIRST_CAP = 64 };

/* --- arrays --- */

void code_steps_fini(struct code_steps *s, struct code_budget *budget)
{
	budget->held_bytes -= s->cap * sizeof(*s->data);
	free(s->data);
	*s = (struct code_steps){ 0 };
}

int code_grow(void **array, size_t *cap, size_t need, size_t element_bytes, struct code_budget *budget)
{
	size_t new_cap = *cap ? *cap * 2 : FIRST_CAP, more;
	void *grown;

	if (need <= *cap)
		return 0;
	if (new_cap < need)
		new_cap = need;
	if (__builtin_mul_overflow(new_cap - *cap, element_bytes, &more) || more > budget->max_bytes - budget->held_bytes)
		return -E2BIG;
	grown = realloc(*array, new_cap * element_bytes);
	if (!grown)
		return -ENOMEM;
	budget->held_bytes += more;
	*array = grown;
	*cap = new_cap;
	return 0;
}

static int push(struct code_steps *s, struct code_step step, struct code_budget *budget)
{
	int r = code_grow((void **)&s->data, &s->cap, s->count + 1, sizeof(*s->data), budget);

	if (r == 0)
		s->data[s->count++] = step;
	return r;
}

/* Does @step only go on with what @last says? */
static bool goes_on(const struct code_step *last, const struct code_step *step)
{
	return last->value == step->value &&
	       (step->value == CODE_NONE || last->addr - last->extra == step->addr - step->extra);
}

int code_steps_add(struct code_steps *s, struct code_step step, struct code_budget *budget)
{
	if (s->count && s->data[s->count - 1].addr == step.addr)
		s->count--;
	if (s->count ? goes_on(&s->data[s->count - 1], &step) : step.value == CODE_NONE)
		return 0;
	return push(s, step, budget);
}

/* --- sorting --- */

/* One pass: from @from to @to by the digit at @shift. */
static void sort_digit(const struct code_step *from, struct code_step *to, size_t count, unsigned int shift)
{
	size_t places[1 << DIGIT_BITS] = { 0 }, at = 0;
	const uint64_t mask = (1 << DIGIT_BITS) - 1;

	for (size_t i = 0; i < count; i++)
		places[from[i].addr >> shift & mask]++;
	for (size_t d = 0; d <= mask; d++) {
		size_t n = places[d];

		places[d] = at;
		at += n;
	}
	for (size_t i = 0; i < count; i++)
		to[places[from[i].addr >> shift & mask]++] = from[i];
}

int code_steps_sort(struct code_steps *s, struct code_budget *budget)
{
	struct code_steps other = { 0 };
	uint64_t differing = 0;
	bool is_sorted = true;
	int r;

	for (size_t i = 1; i < s->count; i++) {
		is_sorted = is_sorted && s->data[i - 1].addr <= s->data[i].addr;
		differing |= s->data[i].addr ^ s->data[0].addr;
	}
	if (is_sorted)
		return 0;
	r = code_grow((void **)&other.data, &other.cap, s->count, sizeof(*other.data), budget);
	if (r)
		return r;
	other.count = s->count;
	for (unsigned int shift = 0; shift < 64; shift += DIGIT_BITS) {
		struct code_steps swap = *s;

		if (!(differing >> shift & ((1 << DIGIT_BITS) - 1)))
			continue;
		sort_digit(s->data, other.data, s->count, shift);
		*s = other;
		other = swap;
	}
	code_steps_fini(&other, budget);
	return 0;
}

/* --- flattening --- */

/* An open range. */
struct open_range {
	uint64_t priority; /* rank, then value */
	uint64_t start, end;
};

/* A heap, the one that names first; such as are over leave it when they come to its top. */
struct sweep {
	struct open_range *heap;
	size_t count;
	size_t cap;
	uint64_t at;	    /* flattened up to here */
	uint64_t root_addr; /* start of the last root's range */
	uint32_t root;
	code_rank_fn rank;
	const void *ctx;
	struct code_steps *out;
	struct code_budget *budget;
};

static int heap_push(struct sweep *w, struct open_range range)
{
	int r = code_grow((void **)&w->heap, &w->cap, w->count + 1, sizeof(*w->heap), w->budget);
	size_t i;

	if (r)
		return r;
	for (i = w->count++; i && w->heap[(i - 1) / 2].priority < range.priority; i = (i - 1) / 2)
		w->heap[i] = w->heap[(i - 1) / 2];
	w->heap[i] = range;
	return 0;
}

static void heap_pop(struct sweep *w)
{
	struct open_range last = w->heap[--w->count];
	size_t i = 0, child;

	while ((child = 2 * i + 1) < w->count) {
		if (child + 1 < w->count && w->heap[child + 1].priority > w->heap[child].priority)
			child++;
		if (last.priority >= w->heap[child].priority)
			break;
		w->heap[i] = w->heap[child];
		i = child;
	}
	w->heap[i] = last;
}

/* The step at @w->at inside @range. */
static struct code_step step_within(const struct sweep *w, const struct open_range *range)
{
	uint32_t value = (uint32_t)range->priority, root;
	uint64_t back;

	w->rank(w->ctx, value, &root);
	back = w->at - (root != value && root == w->root ? w->root_addr : range->start);
	return (struct code_step){ .addr = w->at, .value = value, .extra = back > UINT32_MAX ? UINT32_MAX : (uint32_t)back };
}

/* Writes the steps up to @end. */
static int sweep_to(struct sweep *w, uint64_t end)
{
	int r = 0;

	while (r == 0 && w->at < end && w->count) {
		const struct open_range *top = &w->heap[0];

		if (top->end <= w->at) {
			heap_pop(w);
			continue;
		}
		r = code_steps_add(w->out, step_within(w, top), w->budget);
		w->at = top->end < end ? top->end : end;
	}
	if (r == 0 && w->at < end) {
		r = code_steps_add(w->out, (struct code_step){ .addr = w->at, .value = CODE_NONE }, w->budget);
		w->at = end;
	}
	return r;
}

int code_steps_flatten(const struct code_steps *ranges, code_rank_fn rank, const void *ctx, struct code_steps *out,
		       struct code_budget *budget)
{
	struct sweep w = { .root = CODE_NONE, .rank = rank, .ctx = ctx, .out = out, .budget = budget };
	int r = 0;

	for (size_t i = 0; r == 0 && i < ranges->count; i++) {
		const struct code_step *range = &ranges->data[i];
		uint32_t root, order = rank(ctx, range->value, &root);
		struct open_range open = { .priority = (uint64_t)order << 32 | range->value, .start = range->addr };

		if (__builtin_add_overflow(range->addr, range->extra, &open.end))
			open.end = UINT64_MAX;
		r = sweep_to(&w, range->addr);
		if (r == 0)
			r = heap_push(&w, open);
		if (root == range->value) {
			w.root = root;
			w.root_addr = range->addr;
		}
	}
	if (r == 0)
		r = sweep_to(&w, UINT64_MAX);
	if (r == 0) /* a range may reach so far */
		r = code_steps_add(out, (struct code_step){ .addr = UINT64_MAX, .value = CODE_NONE }, budget);
	budget->held_bytes -= w.cap * sizeof(*w.heap);
	free(w.heap);
	return r;
}

/* --- two runs into one --- */

/* @step as it is from @addr on. */
static struct code_step step_from(struct code_step step, uint64_t addr)
{
	uint64_t back = step.extra + (addr - step.addr);

	step.extra = back > UINT32_MAX ? UINT32_MAX : (uint32_t)back;
	step.addr = addr;
	return step;
}

/* The step at @addr where @first and @second hold. */
static struct code_step pick_step(struct code_step first, struct code_step second, uint64_t addr, code_pick_fn pick,
				  void *ctx)
{
	uint32_t value = first.value;

	if (first.value == CODE_NONE)
		return step_from(second.value != CODE_NONE ? second : (struct code_step){ .value = CODE_NONE }, addr);
	if (second.value != CODE_NONE && pick)
		value = pick(ctx, first.value, second.value);
	first = step_from(value == first.value ? first : second, addr);
	first.value = value;
	return first;
}

int code_steps_fill(struct code_steps *s, struct code_steps *more, code_pick_fn pick, void *ctx, struct code_budget *budget)
{
	struct code_step first = { .value = CODE_NONE }, second = first;
	struct code_steps both = { 0 };
	size_t i = 0, k = 0;
	int r = 0;

	if (s->count == 0 || more->count == 0) {
		struct code_steps *kept = s->count ? s : more;

		both = *kept;
		*kept = (struct code_steps){ 0 };
	}
	while (r == 0 && (i < s->count || k < more->count)) {
		uint64_t addr = i < s->count && (k == more->count || s->data[i].addr <= more->data[k].addr)
					? s->data[i].addr
					: more->data[k].addr;

		if (i < s->count && s->data[i].addr == addr)
			first = s->data[i++];
		if (k < more->count && more->data[k].addr == addr)
			second = more->data[k++];
		r = code_steps_add(&both, pick_step(first, second, addr, pick, ctx), budget);
	}
	code_steps_fini(s, budget);
	code_steps_fini(more, budget);
	*s = both;
	return r;
}

const struct code_step *code_steps_find(const struct code_steps *s, uint64_t addr)
{
	size_t behind = search_first(at, s->count, s->data[at].addr > addr);

	return behind && s->data[behind - 1].value != CODE_NONE ? &s->data[behind - 1] : NULL;
}
