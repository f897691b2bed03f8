/* SPDX-License-Identifier: Apache-2.0 */
/* Weights by time and by the value of a label. Sums of minutes and of cells answer where they say all that is asked; events
 * are looked at one by one elsewhere. */
#include <errno.h>

#include "backend/store/sqlite/groups.h"
#include "backend/store/sqlite/query.h"
#include "base/cleanup.h"

/* --- by time --- */

enum { NEAR_STEPS = 4096 };

struct time_sums {
	struct groups groups;
	struct sums sums;
	uint64_t from_ns, step_ns; /* step_ns 0: not by time */
	uint64_t steps_inverse;	   /* 2^64 / step_ns, less what is behind the point and at most 1 */
	bool by_minutes;	   /* steps and their start are whole minutes, so that the counts of minutes do */
	uint32_t near[NEAR_STEPS]; /* events of one series in the steps behind its block's start; zeros in between */
};

static void time_sums_fini(struct time_sums *t)
{
	groups_fini(&t->groups);
	sums_fini(&t->sums);
}

/* @since_ns / step_ns, which is asked for each event, without a division: the product is too small by less than 1. */
static inline uint64_t bucket_of(const struct time_sums *t, uint64_t since_ns)
{
	uint64_t bucket = (uint64_t)((unsigned __int128)since_ns * t->steps_inverse >> 64);

	return bucket + (since_ns - bucket * t->step_ns >= t->step_ns);
}

static int sum_minutes(struct time_sums *t, struct scan *scan, uint32_t index)
{
	const struct block *b = scan->block;
	int err = scan_part(scan, BLOCK_CELLS);

	for (uint32_t i = b->minute_start[index]; i < b->minute_start[index + 1] && !err; i++) {
		uint64_t bucket = bucket_of(t, b->minute[i] * MINUTE_NS - t->from_ns);

		err = bucket > UINT32_MAX ? -ERANGE
					  : sums_add(&t->sums, t->groups.of_series, (uint32_t)bucket,
						     b->has_weights ? b->minute_weight[i] : (int64_t)b->minute_events[i],
						     b->minute_events[i]);
	}
	return err;
}

/* Adds each event in @mask to its sum. */
static int sum_events(struct time_sums *t, const struct block *b, uint32_t index, const uint8_t *mask)
{
	const uint32_t end = b->event_start[index + 1];
	int err = 0;

	for (uint32_t e = b->event_start[index]; e < end && !err; e++) {
		uint64_t bucket;

		if (mask && !mask[e])
			continue;
		bucket = t->step_ns ? bucket_of(t, b->time_ns[e] - t->from_ns) : 0;
		err = bucket > UINT32_MAX
			      ? -ERANGE
			      : sums_add(&t->sums, groups_of(&t->groups, b, e), (uint32_t)bucket, block_weight(b, e), 1);
	}
	return err;
}

/* The same where events weigh 1 each and are of one group: most are in steps near the block's start, whose counts stay in
 * the processor's nearest cache. */
static int sum_near(struct time_sums *t, const struct block *b, uint32_t index, const uint8_t *mask)
{
	const uint64_t first = b->from_ns > t->from_ns ? bucket_of(t, b->from_ns - t->from_ns) : 0;
	const uint32_t end = b->event_start[index + 1];
	uint32_t steps = 0;
	int err = 0;

	for (uint32_t e = b->event_start[index]; e < end && !err; e++) {
		uint64_t bucket, step;

		if (mask && !mask[e])
			continue;
		bucket = bucket_of(t, b->time_ns[e] - t->from_ns);
		step = bucket - first;
		if (step < NEAR_STEPS) {
			t->near[step]++;
			steps = step >= steps ? (uint32_t)step + 1 : steps;
		} else {
			err = bucket > UINT32_MAX ? -ERANGE
						  : sums_add(&t->sums, t->groups.of_series, (uint32_t)bucket, 1, 1);
		}
	}
	for (uint32_t i = 0; i < steps; i++) {
		if (t->near[i] && !err)
			err = first + i > UINT32_MAX ? -ERANGE
						     : sums_add(&t->sums, t->groups.of_series, (uint32_t)(first + i),
								t->near[i], t->near[i]);
		t->near[i] = 0;
	}
	return err;
}

static int sum_times_fn(void *arg, struct scan *scan, uint32_t index)
{
	struct time_sums *t = arg;
	const uint8_t *mask;
	int err = scan_mask_stacks(scan, index, &mask);

	err = err ? err : groups_find(&t->groups, scan, index, mask);
	if (err)
		return err;
	if (t->by_minutes && !mask && t->groups.how == GROUP_SERIES)
		return sum_minutes(t, scan, index);
	err = groups_events(&t->groups, scan);
	err = err ? err : scan_part(scan, BLOCK_TIMES);
	if (err)
		return err;
	return t->groups.how == GROUP_SERIES && !scan->block->weight ? sum_near(t, scan->block, index, mask)
								     : sum_events(t, scan->block, index, mask);
}

static int can_sum_times(void *arg, struct scan *scan, uint32_t index)
{
	struct time_sums *t = arg;

	return t->by_minutes && !scan->sel->stacks ? groups_are_one(&t->groups, scan, index) : 0;
}

int store_sum_times(struct store *s, const struct store_selection *sel, uint64_t step_ns, const char *by,
		    int (*fn)(void *arg, const char *group, uint32_t bucket, int64_t weight, uint64_t events), void *arg)
{
	AUTO(time_sums_fini)
	struct time_sums t = {
		.from_ns = sel->from_ns,
		.step_ns = step_ns,
		.steps_inverse = step_ns ? UINT64_MAX / step_ns : 0,
		.by_minutes = step_ns && step_ns % MINUTE_NS == 0 && sel->from_ns % MINUTE_NS == 0,
	};
	struct scan scan;
	int err = step_ns ? groups_init(&t.groups, by) : -EINVAL;

	if (err)
		return err;
	err = scan_begin(&scan, s, sel, false);
	err = err ? err : scan_sums(&scan, can_sum_times, sum_times_fn, &t);
	scan_end(&scan);
	for (size_t i = 0; i < t.sums.cap && !err; i++) {
		const struct sum *sum = &t.sums.slots[i];

		if (sum->events)
			err = fn(arg, groups_text(&t.groups, (uint32_t)(sum->key >> 32)), (uint32_t)sum->key, sum->weight,
				 sum->events);
	}
	return err;
}

/* --- by value of a label --- */

static int sum_cells(struct time_sums *t, struct scan *scan, uint32_t index)
{
	const struct block *b = scan->block;
	int err = scan_part(scan, BLOCK_CELLS);

	for (uint32_t c = b->cell_start[index]; c < b->cell_start[index + 1] && !err; c++)
		err = sums_add(&t->sums, t->groups.how == GROUP_SERIES ? t->groups.of_series : t->groups.of_cell[c], 0,
			       b->has_weights ? b->cell_weight[c] : (int64_t)b->cell_events[c], b->cell_events[c]);
	return err;
}

static int sum_values_fn(void *arg, struct scan *scan, uint32_t index)
{
	struct time_sums *t = arg;
	const uint8_t *mask;
	int err = scan_mask_stacks(scan, index, &mask);

	err = err ? err : groups_find(&t->groups, scan, index, mask);
	if (!err && !mask && t->groups.how <= GROUP_CELLS)
		return sum_cells(t, scan, index);
	err = err ? err : groups_events(&t->groups, scan);
	return err ? err : sum_events(t, scan->block, index, mask);
}

static int can_sum_values(void *arg, struct scan *scan, uint32_t index)
{
	const struct time_sums *t = arg;

	if (scan->sel->stacks || scan->of[index]->undecided)
		return 0;
	return t->groups.by == groups_by_resource || !scan_is_of_events(t->groups.by);
}

int store_label_values(struct store *s, const struct store_selection *sel, const char *label,
		       int (*fn)(void *arg, const char *value, int64_t weight, uint64_t events), void *arg)
{
	AUTO(time_sums_fini) struct time_sums t = { 0 };
	struct scan scan;
	int err = groups_init(&t.groups, label);

	if (err)
		return err;
	err = scan_begin(&scan, s, sel, false);
	err = err ? err : scan_sums(&scan, can_sum_values, sum_values_fn, &t);
	scan_end(&scan);
	for (size_t i = 0; i < t.sums.cap && !err; i++) {
		const struct sum *sum = &t.sums.slots[i];

		if (sum->events)
			err = fn(arg, groups_text(&t.groups, (uint32_t)(sum->key >> 32)), sum->weight, sum->events);
	}
	return err;
}
