/* SPDX-License-Identifier: Apache-2.0 */
/* Weights by stack and by time. Runs answer where whole runs are selected; events are looked at one by one elsewhere. */
#include "backend/store/sqlite/query.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backend/store/sqlite/groups.h"
#include "base/cleanup.h"
#include "base/vec.h"

enum { PAGE_NODES = 1 << 9, PIECE_GROUPS = 4, PIECE_CPUS = 16, CHUNK_BYTES = 1 << 17 };

struct stack_sum {
	int64_t weight;
	uint64_t events; /* 0: nothing */
};

/*
 * Sums of one node, of some groups whose numbers follow each other: what has a node in common (its process's threads, the
 * cpus) was mostly numbered together. So the sums that a run adds to are side by side, and next to those of the node's
 * neighbours.
 */
struct piece {
	struct piece *next; /* of the same node */
	uint32_t first;	    /* group */
	struct stack_sum sums[];
};

struct piece_chunk {
	struct piece_chunk *next;
	size_t used;
	char data[CHUNK_BYTES];
};

struct stack_sums {
	struct groups groups;
	uint32_t piece_groups; /* power of two */
	struct piece ***pages; /* of PAGE_NODES nodes each; NULL where nothing is */
	size_t page_count;
	struct piece_chunk *chunks;
};

static void stack_sums_fini(struct stack_sums *t)
{
	groups_fini(&t->groups);
	for (size_t i = 0; i < t->page_count; i++)
		free(t->pages[i]);
	free(t->pages);
	while (t->chunks) {
		struct piece_chunk *next = t->chunks->next;

		free(t->chunks);
		t->chunks = next;
	}
}

static struct piece *new_piece(struct stack_sums *t, uint32_t first)
{
	const size_t size = sizeof(struct piece) + t->piece_groups * sizeof(struct stack_sum);
	struct piece_chunk *chunk = t->chunks;
	struct piece *piece;

	if (!chunk || sizeof(chunk->data) - chunk->used < size) {
		chunk = calloc(1, sizeof(*chunk));
		if (!chunk)
			return NULL;
		chunk->next = t->chunks;
		t->chunks = chunk;
	}
	piece = (struct piece *)(chunk->data + chunk->used);
	chunk->used += size;
	piece->first = first;
	return piece;
}

static struct piece **new_page(struct stack_sums *t, size_t page)
{
	if (vec_reach_zero(&t->pages, &t->page_count, page))
		return NULL;
	t->pages[page] = calloc(PAGE_NODES, sizeof(**t->pages));
	return t->pages[page];
}

/* The piece of @node with @group; NULL when out of memory. */
static struct piece *piece_of(struct stack_sums *t, uint32_t node, uint32_t group)
{
	const size_t page = node / PAGE_NODES;
	const uint32_t first = group & -t->piece_groups;
	struct piece **at = page < t->page_count && t->pages[page] ? t->pages[page] : new_page(t, page);

	if (!at)
		return NULL;
	for (at += node % PAGE_NODES; *at; at = &(*at)->next) {
		if ((*at)->first == first)
			return *at;
	}
	*at = new_piece(t, first);
	return *at;
}

static inline bool is_stack_in(const struct store_selection *sel, uint32_t node)
{
	return !sel->stacks || (node < sel->stack_count && sel->stacks[node / 64] >> node % 64 & 1);
}

static inline int64_t weight_of(const struct block *b, uint32_t event)
{
	return b->weight ? b->weight[event] : 1;
}

/* --- by stack --- */

/* Runs are added in no order of the memory where their sums are, so those some runs ahead are called for in time. */
static inline void call_for(const struct stack_sums *t, const struct block *b, uint32_t run)
{
	enum { ENTRY_AHEAD = 16, PIECE_AHEAD = 8, LINE_BYTES = 64 };

	if (run + ENTRY_AHEAD >= b->run_count)
		return;
	for (uint32_t ahead = PIECE_AHEAD; ahead <= ENTRY_AHEAD; ahead += ENTRY_AHEAD - PIECE_AHEAD) {
		uint32_t node = b->run_stack[run + ahead];
		struct piece *const *page = node / PAGE_NODES < t->page_count ? t->pages[node / PAGE_NODES] : NULL;

		if (!page)
			continue;
		if (ahead == ENTRY_AHEAD) {
			__builtin_prefetch(&page[node % PAGE_NODES]);
			continue;
		}
		for (size_t i = 0; i < sizeof(struct piece) + t->piece_groups * sizeof(struct stack_sum); i += LINE_BYTES)
			__builtin_prefetch((const void *)((uintptr_t)page[node % PAGE_NODES] + i),
					   1); /* there may be none */
	}
}

static inline void add(struct piece *piece, uint32_t group, int64_t weight, uint64_t events)
{
	struct stack_sum *sum = &piece->sums[group - piece->first];

	sum->weight = weights_add(sum->weight, weight);
	sum->events += events;
}

/* The events [@at, @at + @count) are of one run. */
static int add_events(struct stack_sums *t, const struct block *b, const uint8_t *mask, uint32_t at, uint32_t count,
		      uint32_t node)
{
	struct piece *piece = NULL;

	for (uint32_t e = at; e < at + count; e++) {
		uint32_t group;

		if (mask && !mask[e])
			continue;
		group = groups_of(&t->groups, b, e);
		if (!piece || group - piece->first >= t->piece_groups)
			piece = piece_of(t, node, group);
		if (!piece)
			return -ENOMEM;
		add(piece, group, weight_of(b, e), 1);
	}
	return 0;
}

static int add_run(struct stack_sums *t, const struct block *b, uint32_t run)
{
	struct piece *piece = piece_of(t, b->run_stack[run], t->groups.of_series);

	if (!piece)
		return -ENOMEM;
	add(piece, t->groups.of_series, b->has_weights ? b->run_weight[run] : (int64_t)b->run_events[run],
	    b->run_events[run]);
	return 0;
}

static int sum_series(struct stack_sums *t, struct scan *scan, uint32_t index)
{
	const struct block *b = scan->block;
	const uint8_t *mask;
	uint32_t at = b->event_start[index];
	int err = scan_mask(scan, index, &mask);

	err = err ? err : groups_find(&t->groups, scan, index, mask);
	if (!err)
		err = mask || t->groups.how != GROUP_SERIES ? groups_events(&t->groups, scan)
							    : scan_part(scan, BLOCK_STACKS);
	for (uint32_t r = b->run_start[index]; r < b->run_start[index + 1] && !err; at += b->run_events[r++]) {
		call_for(t, b, r);
		if (!is_stack_in(scan->sel, b->run_stack[r]))
			continue;
		err = mask || t->groups.how != GROUP_SERIES ? add_events(t, b, mask, at, b->run_events[r], b->run_stack[r])
							    : add_run(t, b, r);
	}
	return err;
}

/* A sum that is being told to the asker. */
struct told {
	const struct stack_sum *sum;
	uint32_t group, node;
};

/* Calls @fn with each sum, by node. */
static int each_sum(const struct stack_sums *t, int (*fn)(void *arg, const struct told *told), void *arg)
{
	int err = 0;

	for (size_t n = 0; n < t->page_count * PAGE_NODES && !err; n++) {
		struct piece *const *page = t->pages[n / PAGE_NODES];
		const struct piece *piece = page ? page[n % PAGE_NODES] : NULL;

		if (!page)
			n += PAGE_NODES - 1;
		for (; piece; piece = piece->next) {
			for (uint32_t i = 0; i < t->piece_groups && !err; i++) {
				const struct told told = { &piece->sums[i], piece->first + i, (uint32_t)n };

				if (told.sum->events)
					err = fn(arg, &told);
			}
		}
	}
	return err;
}

struct telling {
	const struct stack_sums *sums;
	int (*fn)(void *arg, const char *group, uint32_t node, int64_t weight, uint64_t events);
	void *arg;
	size_t *places; /* of each group: where its next one stands */
	struct told *by_group;
};

static void telling_fini(struct telling *t)
{
	free(t->places);
	free(t->by_group);
}

static int tell(void *arg, const struct told *told)
{
	const struct telling *t = arg;

	return t->fn(t->arg, groups_text(&t->sums->groups, told->group), told->node, told->sum->weight, told->sum->events);
}

static int count_told(void *arg, const struct told *told)
{
	((struct telling *)arg)->places[told->group + 1]++;
	return 0;
}

static int place_told(void *arg, const struct told *told)
{
	struct telling *t = arg;

	t->by_group[t->places[told->group]++] = *told;
	return 0;
}

/* One group after another. */
static int tell_stacks(const struct stack_sums *sums,
		       int (*fn)(void *arg, const char *group, uint32_t node, int64_t weight, uint64_t events), void *arg)
{
	AUTO(telling_fini) struct telling t = { .sums = sums, .fn = fn, .arg = arg };
	const uint32_t groups = intern_count(sums->groups.values);
	size_t count;
	int err = 0;

	if (!sums->groups.by)
		return each_sum(sums, tell, &t);
	t.places = calloc((size_t)groups + 1, sizeof(*t.places));
	if (!t.places)
		return -ENOMEM;
	each_sum(sums, count_told, &t);
	for (uint32_t g = 0; g < groups; g++)
		t.places[g + 1] += t.places[g];
	count = t.places[groups];
	t.by_group = calloc(count ? count : 1, sizeof(*t.by_group));
	if (!t.by_group)
		return -ENOMEM;
	each_sum(sums, place_told, &t);
	for (size_t i = 0; i < count && !err; i++)
		err = tell(&t, &t.by_group[i]);
	return err;
}

static int sum_series_fn(void *arg, struct scan *scan, uint32_t index)
{
	return sum_series(arg, scan, index);
}

/* Whether what the series adds up to is all that is asked of it: all events are selected, and of one group. */
static int is_of_one_group(struct groups *g, struct scan *scan, uint32_t index)
{
	int err;

	if (scan->of[index]->undecided)
		return 0;
	if (g->by && g->by != groups_by_resource && scan_is_of_events(g->by))
		return 0;
	err = groups_find(g, scan, index, NULL);
	return err ? err : g->how == GROUP_SERIES;
}

static int can_sum_stacks(void *arg, struct scan *scan, uint32_t index)
{
	return is_of_one_group(&((struct stack_sums *)arg)->groups, scan, index);
}

int store_sum_stacks(struct store *s, const struct store_selection *sel, const char *by,
		     int (*fn)(void *arg, const char *group, uint32_t node, int64_t weight, uint64_t events), void *arg)
{
	AUTO(stack_sums_fini) struct stack_sums t = { 0 };
	struct scan scan;
	int err = groups_init(&t.groups, by);

	t.piece_groups = !by ? 1 : strcmp(by, STORE_CPU_LABEL) ? PIECE_GROUPS : PIECE_CPUS;

	if (err)
		return err;
	err = scan_begin(&scan, s, sel, false);
	err = err ? err : scan_sums(&scan, can_sum_stacks, sum_series_fn, &t);
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

	err = err ? err : groups_find(&t->groups, scan, index, mask);
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

static int can_sum_times(void *arg, struct scan *scan, uint32_t index)
{
	struct time_sums *t = arg;

	return t->by_minutes && !scan->sel->stacks ? is_of_one_group(&t->groups, scan, index) : 0;
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

static int sum_values_fn(void *arg, struct scan *scan, uint32_t index)
{
	struct time_sums *t = arg;
	const struct block *b = scan->block;
	const uint8_t *mask;
	const bool by_stack = scan->sel->stacks;
	uint32_t at = b->event_start[index];
	int err = scan_mask(scan, index, &mask);

	err = err ? err : groups_find(&t->groups, scan, index, mask);
	if (!err && !mask && !by_stack && t->groups.how <= GROUP_CELLS) {
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
