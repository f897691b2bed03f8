/* SPDX-License-Identifier: Apache-2.0 */
/* Weights by stack and by time. Runs answer where whole runs are selected; events are looked at one by one elsewhere. */
#include <errno.h>
#include <stdlib.h>

#include "backend/store_sqlite_groups.h"
#include "base/cleanup.h"

enum { PAGE_NODES = 1 << 10 };

/* Sums by node: pages made where something is. */
struct node_sum {
	int64_t weight;
	uint64_t events;
};

struct node_sums {
	struct node_sum **pages;
	size_t page_count;
};

static void node_sums_fini(struct node_sums *t)
{
	for (size_t i = 0; i < t->page_count; i++)
		free(t->pages[i]);
	free(t->pages);
}

static struct node_sum *node_sum_new_page(struct node_sums *t, uint32_t node)
{
	size_t page = node / PAGE_NODES;

	if (page >= t->page_count) {
		size_t count = page + page / 2 + 16;
		struct node_sum **grown = realloc(t->pages, count * sizeof(*grown));

		if (!grown)
			return NULL;
		for (size_t i = t->page_count; i < count; i++)
			grown[i] = NULL;
		t->pages = grown;
		t->page_count = count;
	}
	t->pages[page] = calloc(PAGE_NODES, sizeof(struct node_sum));
	return t->pages[page] ? &t->pages[page][node % PAGE_NODES] : NULL;
}

static inline struct node_sum *node_sum_at(struct node_sums *t, uint32_t node)
{
	if (node / PAGE_NODES < t->page_count && t->pages[node / PAGE_NODES])
		return &t->pages[node / PAGE_NODES][node % PAGE_NODES];
	return node_sum_new_page(t, node);
}

static inline bool is_stack_in(const struct store_selection *sel, uint32_t node)
{
	return !sel->stacks || (node < sel->stack_count && sel->stacks[node / 64] >> node % 64 & 1);
}

static inline int64_t weight_of(const struct block *b, uint32_t event)
{
	return b->weight ? b->weight[event] : 1;
}

static inline int64_t add_weights(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a + (uint64_t)b);
}

/* --- by stack --- */

struct stack_sums {
	struct groups groups;
	struct node_sums nodes; /* without groups */
	struct sums sums;	/* with */
	/* what a run has of each group, while it is counted; and which groups it has */
	struct node_sum *of_group;
	uint32_t *met;
	size_t group_cap, met_count;
};

static void stack_sums_fini(struct stack_sums *t)
{
	groups_fini(&t->groups);
	node_sums_fini(&t->nodes);
	sums_fini(&t->sums);
	free(t->of_group);
	free(t->met);
}

static int add(struct stack_sums *t, uint32_t group, uint32_t node, int64_t weight, uint64_t events)
{
	struct node_sum *sum;

	if (t->groups.by)
		return sums_add(&t->sums, group, node, weight, events);
	sum = node_sum_at(&t->nodes, node);
	if (!sum)
		return -ENOMEM;
	sum->weight = add_weights(sum->weight, weight);
	sum->events += events;
	return 0;
}

static int room_for_groups(struct stack_sums *t)
{
	size_t count = intern_count(t->groups.values), cap = count * 2;
	struct node_sum *sums;
	uint32_t *met;

	if (count <= t->group_cap)
		return 0;
	sums = realloc(t->of_group, cap * sizeof(*sums));
	if (sums)
		t->of_group = sums;
	met = realloc(t->met, cap * sizeof(*met));
	if (met)
		t->met = met;
	if (!sums || !met)
		return -ENOMEM;
	for (size_t i = t->group_cap; i < cap; i++)
		sums[i] = (struct node_sum){ 0 };
	t->group_cap = cap;
	return 0;
}

/* The events [@at, @at + @count) are of one run: summed by group first, then added. */
static int add_run(struct stack_sums *t, const struct block *b, const uint8_t *mask, uint32_t at, uint32_t count,
		   uint32_t node)
{
	int err = 0;

	t->met_count = 0;
	for (uint32_t e = at; e < at + count; e++) {
		uint32_t group;
		struct node_sum *sum;

		if (mask && !mask[e])
			continue;
		group = groups_of(&t->groups, b, e);
		sum = &t->of_group[group];
		if (!sum->events++)
			t->met[t->met_count++] = group;
		sum->weight = add_weights(sum->weight, weight_of(b, e));
	}
	for (size_t i = 0; i < t->met_count; i++) {
		struct node_sum *sum = &t->of_group[t->met[i]];

		if (!err)
			err = add(t, t->met[i], node, sum->weight, sum->events);
		*sum = (struct node_sum){ 0 };
	}
	return err;
}

static int sum_series(struct stack_sums *t, struct scan *scan, uint32_t index)
{
	const struct block *b = scan->block;
	const uint8_t *mask;
	uint32_t at = b->event_start[index];
	int err = scan_mask(scan, index, &mask);

	err = err ? err : groups_find(&t->groups, scan, index);
	if (!err)
		err = mask || t->groups.how != GROUP_SERIES ? groups_events(&t->groups, scan)
							    : scan_part(scan, BLOCK_STACKS);
	err = err ? err : room_for_groups(t);
	for (uint32_t r = b->run_start[index]; r < b->run_start[index + 1] && !err; at += b->run_events[r++]) {
		if (!is_stack_in(scan->sel, b->run_stack[r]))
			continue;
		if (mask || t->groups.how != GROUP_SERIES)
			err = add_run(t, b, mask, at, b->run_events[r], b->run_stack[r]);
		else
			err = add(t, t->groups.of_series, b->run_stack[r],
				  b->has_weights ? b->run_weight[r] : (int64_t)b->run_events[r], b->run_events[r]);
	}
	return err;
}

static int tell_stacks(const struct stack_sums *t,
		       int (*fn)(void *arg, const char *group, uint32_t node, int64_t weight, uint64_t events), void *arg)
{
	int err = 0;

	for (size_t page = 0; page < t->nodes.page_count; page++) {
		const struct node_sum *sums = t->nodes.pages[page];

		for (size_t i = 0; sums && i < PAGE_NODES && !err; i++) {
			if (sums[i].events)
				err = fn(arg, "", (uint32_t)(page * PAGE_NODES + i), sums[i].weight, sums[i].events);
		}
	}
	for (size_t i = 0; i < t->sums.cap && !err; i++) {
		const struct sum *sum = &t->sums.slots[i];

		if (sum->events)
			err = fn(arg, groups_text(&t->groups, (uint32_t)(sum->key >> 32)), (uint32_t)sum->key, sum->weight,
				 sum->events);
	}
	return err;
}

static int sum_series_fn(void *arg, struct scan *scan, uint32_t index)
{
	return sum_series(arg, scan, index);
}

int store_sum_stacks(struct store *s, const struct store_selection *sel, const char *by,
		     int (*fn)(void *arg, const char *group, uint32_t node, int64_t weight, uint64_t events), void *arg)
{
	AUTO(stack_sums_fini) struct stack_sums t = { 0 };
	struct scan scan;
	int err = groups_init(&t.groups, by);

	if (err)
		return err;
	err = scan_begin(&scan, s, sel, false);
	err = err ? err : scan_each(&scan, sum_series_fn, &t);
	scan_end(&scan);
	return err ? err : tell_stacks(&t, fn, arg);
}

/* --- by time --- */

struct time_sums {
	struct groups groups;
	struct sums sums;
	uint64_t from_ns, step_ns;
	bool by_minutes; /* steps and their start are whole minutes, so that the counts of minutes do */
};

static void time_sums_fini(struct time_sums *t)
{
	groups_fini(&t->groups);
	sums_fini(&t->sums);
}

static int sum_minutes(struct time_sums *t, struct scan *scan, uint32_t index)
{
	const struct block *b = scan->block;
	int err = scan_part(scan, BLOCK_CELLS);

	for (uint32_t i = b->minute_start[index]; i < b->minute_start[index + 1] && !err; i++) {
		uint64_t bucket = (b->minute[i] * MINUTE_NS - t->from_ns) / t->step_ns;

		err = bucket > UINT32_MAX ? -ERANGE
					  : sums_add(&t->sums, t->groups.of_series, (uint32_t)bucket,
						     b->has_weights ? b->minute_weight[i] : (int64_t)b->minute_events[i],
						     b->minute_events[i]);
	}
	return err;
}

static int sum_times_fn(void *arg, struct scan *scan, uint32_t index)
{
	struct time_sums *t = arg;
	const struct block *b = scan->block;
	const uint8_t *mask;
	uint32_t at = b->event_start[index];
	int err = scan_mask(scan, index, &mask);

	err = err ? err : groups_find(&t->groups, scan, index);
	if (err)
		return err;
	if (t->by_minutes && !mask && t->groups.how == GROUP_SERIES && !scan->sel->stacks)
		return sum_minutes(t, scan, index);
	err = groups_events(&t->groups, scan);
	err = err ? err : scan_part(scan, BLOCK_TIMES);
	for (uint32_t r = b->run_start[index]; r < b->run_start[index + 1] && !err; at += b->run_events[r++]) {
		if (!is_stack_in(scan->sel, b->run_stack[r]))
			continue;
		for (uint32_t e = at; e < at + b->run_events[r] && !err; e++) {
			uint64_t bucket = (b->time_ns[e] - t->from_ns) / t->step_ns;

			if (mask && !mask[e])
				continue;
			err = bucket > UINT32_MAX ? -ERANGE
						  : sums_add(&t->sums, groups_of(&t->groups, b, e), (uint32_t)bucket,
							     weight_of(b, e), 1);
		}
	}
	return err;
}

int store_sum_times(struct store *s, const struct store_selection *sel, uint64_t step_ns, const char *by,
		    int (*fn)(void *arg, const char *group, uint32_t bucket, int64_t weight, uint64_t events), void *arg)
{
	AUTO(time_sums_fini)
	struct time_sums t = {
		.from_ns = sel->from_ns,
		.step_ns = step_ns,
		.by_minutes = step_ns && step_ns % MINUTE_NS == 0 && sel->from_ns % MINUTE_NS == 0,
	};
	struct scan scan;
	int err = step_ns ? groups_init(&t.groups, by) : -EINVAL;

	if (err)
		return err;
	err = scan_begin(&scan, s, sel, false);
	err = err ? err : scan_each(&scan, sum_times_fn, &t);
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

static int sum_values_fn(void *arg, struct scan *scan, uint32_t index)
{
	struct time_sums *t = arg;
	const struct block *b = scan->block;
	const uint8_t *mask;
	const bool by_stack = scan->sel->stacks;
	uint32_t at = b->event_start[index];
	int err = scan_mask(scan, index, &mask);

	err = err ? err : groups_find(&t->groups, scan, index);
	if (!err && !mask && !by_stack && t->groups.how != GROUP_CPU) {
		/* The cells are the sums. */
		err = scan_part(scan, BLOCK_CELLS);
		for (uint32_t c = b->cell_start[index]; c < b->cell_start[index + 1] && !err; c++)
			err = sums_add(&t->sums, t->groups.how == GROUP_SERIES ? t->groups.of_series : t->groups.of_cell[c],
				       0, b->has_weights ? b->cell_weight[c] : (int64_t)b->cell_events[c],
				       b->cell_events[c]);
		return err;
	}
	err = err ? err : groups_events(&t->groups, scan);
	for (uint32_t r = b->run_start[index]; r < b->run_start[index + 1] && !err; at += b->run_events[r++]) {
		if (!is_stack_in(scan->sel, b->run_stack[r]))
			continue;
		for (uint32_t e = at; e < at + b->run_events[r] && !err; e++) {
			if (!mask || mask[e])
				err = sums_add(&t->sums, groups_of(&t->groups, b, e), 0, weight_of(b, e), 1);
		}
	}
	return err;
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
	err = err ? err : scan_each(&scan, sum_values_fn, &t);
	scan_end(&scan);
	for (size_t i = 0; i < t.sums.cap && !err; i++) {
		const struct sum *sum = &t.sums.slots[i];

		if (sum->events)
			err = fn(arg, groups_text(&t.groups, (uint32_t)(sum->key >> 32)), sum->weight, sum->events);
	}
	return err;
}
