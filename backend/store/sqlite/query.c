/* SPDX-License-Identifier: Apache-2.0 */
/* Weights by stack. Runs answer where whole runs are selected; events are looked at one by one elsewhere. */
#include "backend/store/sqlite/query.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backend/store/sqlite/groups.h"
#include "base/cleanup.h"
#include "base/vec.h"

enum { PAGE_NODES = 1 << 9, PIECE_GROUPS = 8, PIECE_CPUS = 16, CHUNK_BYTES = 1 << 17, LINE_BYTES = 64 };

struct wide_sum {
	int64_t weight;
	uint64_t events; /* 0: nothing */
};

/*
 * Sums of one node, of some groups whose numbers follow each other: what has a node in common (its process's threads, the
 * cpus) was mostly numbered together. So the sums that a run adds to are side by side. Most samples weigh 1 each, and then
 * the sums are numbers of events, a quarter of the memory; which is what time goes for, as stacks come in no order of it.
 */
struct piece {
	struct piece *next; /* of the same node */
	uint32_t first;	    /* group */
	union {
		uint32_t events[0]; /* of each group; the weight is the same */
		struct wide_sum wide[0];
	};
};

struct piece_chunk {
	struct piece_chunk *next;
	size_t used;
	char data[CHUNK_BYTES];
};

struct stack_sums {
	struct groups groups;
	uint32_t piece_groups; /* power of two */
	bool is_wide;	       /* the pieces have weights, or more events than 32 bits may hold */
	uint64_t events;       /* that may have been added */
	struct piece ***pages; /* of PAGE_NODES nodes each; NULL where nothing is */
	size_t page_count;
	struct piece_chunk *chunks;
};

static void free_pieces(struct stack_sums *t)
{
	for (size_t i = 0; i < t->page_count; i++)
		free(t->pages[i]);
	free(t->pages);
	while (t->chunks) {
		struct piece_chunk *next = t->chunks->next;

		free(t->chunks);
		t->chunks = next;
	}
}

static void stack_sums_fini(struct stack_sums *t)
{
	groups_fini(&t->groups);
	free_pieces(t);
}

static struct piece *new_piece(struct stack_sums *t, uint32_t first)
{
	const size_t sum_bytes = t->is_wide ? sizeof(struct wide_sum) : sizeof(uint32_t);
	const size_t size = (sizeof(struct piece) + t->piece_groups * sum_bytes + 7) &
			    ~(size_t)7; /* the next one is aligned */
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

/* Where the first piece of @node stands; NULL when there is no page for it yet. */
static inline struct piece **place_of(const struct stack_sums *t, uint32_t node)
{
	struct piece **page = node / PAGE_NODES < t->page_count ? t->pages[node / PAGE_NODES] : NULL;

	return page ? &page[node % PAGE_NODES] : NULL;
}

/* The piece of @node that begins with group @first, which it does not begin with; NULL when out of memory. */
static __attribute__((noinline)) struct piece *further_piece(struct stack_sums *t, uint32_t node, uint32_t first)
{
	struct piece **at = place_of(t, node);

	if (!at) {
		at = new_page(t, node / PAGE_NODES);
		if (!at)
			return NULL;
		at += node % PAGE_NODES;
	}
	for (; *at; at = &(*at)->next) {
		if ((*at)->first == first)
			return *at;
	}
	*at = new_piece(t, first);
	return *at;
}

/* The piece of @node with @group; NULL when out of memory. Group 0, that of no value, has pieces of its own, so that the
 * values that were numbered first begin one. */
static inline struct piece *piece_of(struct stack_sums *t, uint32_t node, uint32_t group)
{
	const uint32_t first = ((group - 1) & -t->piece_groups) + 1;
	struct piece **at = place_of(t, node);

	return at && *at && (*at)->first == first ? *at : further_piece(t, node, first);
}

static inline void add(const struct stack_sums *t, struct piece *piece, uint32_t group, int64_t weight, uint32_t events)
{
	const uint32_t i = group - piece->first;

	if (!t->is_wide) {
		piece->events[i] += events;
		return;
	}
	piece->wide[i].weight = weights_add(piece->wide[i].weight, weight);
	piece->wide[i].events += events;
}

/* --- adding --- */

/* Nodes come in no order of the memory where their sums are, so those some further on are called for in time: first the
 * place of the piece, then the piece, or as much of it as is most often needed. */
enum { PLACE_AHEAD = BLOCK_LOOK_AHEAD, PIECE_AHEAD = BLOCK_LOOK_AHEAD / 2 };

static inline __attribute__((always_inline)) void call_for_place(const struct stack_sums *t, uint32_t node)
{
	struct piece *const *at = place_of(t, node);

	if (at)
		__builtin_prefetch(at);
}

static inline __attribute__((always_inline)) void call_for_piece(const struct stack_sums *t, uint32_t node)
{
	struct piece *const *at = place_of(t, node);

	if (!at)
		return;
	__builtin_prefetch(*at, 1); /* there may be none */
	__builtin_prefetch((const void *)((uintptr_t)*at + LINE_BYTES), 1);
}

/* Adds the events of series @index that are in @mask, by what group each is of. */
static int add_events(struct stack_sums *t, const struct block *b, uint32_t index, const uint8_t *mask)
{
	const uint32_t start = b->event_start[index], end = b->event_start[index + 1];
	const uint8_t *begins = b->run_begins;
	/* Runs of an event, and of those ahead of it; before the first one. */
	uint32_t run = b->run_start[index] - 1, of_piece = run, of_place;

	for (uint32_t e = start; e < start + PIECE_AHEAD; e++)
		of_piece += begins[e];
	of_place = of_piece;
	for (uint32_t e = start + PIECE_AHEAD; e < start + PLACE_AHEAD; e++)
		of_place += begins[e];
	for (uint32_t e = start; e < end; e++) {
		struct piece *piece;
		uint32_t group;

		run += begins[e];
		of_piece += begins[e + PIECE_AHEAD];
		of_place += begins[e + PLACE_AHEAD];
		call_for_place(t, b->run_stack[of_place]);
		call_for_piece(t, b->run_stack[of_piece]);
		if (mask && !mask[e])
			continue;
		group = groups_of(&t->groups, b, e);
		piece = piece_of(t, b->run_stack[run], group);
		if (!piece)
			return -ENOMEM;
		add(t, piece, group, block_weight(b, e), 1);
	}
	return 0;
}

/* Adds the runs of series @index, all of one group. */
static int add_runs(struct stack_sums *t, struct scan *scan, uint32_t index)
{
	const struct block *b = scan->block;
	const uint32_t group = t->groups.of_series;

	for (uint32_t r = b->run_start[index]; r < b->run_start[index + 1]; r++) {
		struct piece *piece;

		if (r + PLACE_AHEAD < b->run_count) {
			call_for_place(t, b->run_stack[r + PLACE_AHEAD]);
			call_for_piece(t, b->run_stack[r + PIECE_AHEAD]);
		}
		if (!scan_has_stack(scan->sel, b->run_stack[r]))
			continue;
		piece = piece_of(t, b->run_stack[r], group);
		if (!piece)
			return -ENOMEM;
		add(t, piece, group, b->has_weights ? b->run_weight[r] : (int64_t)b->run_events[r], b->run_events[r]);
	}
	return 0;
}

/* A sum that is being told to the asker. */
struct told {
	const struct piece *piece;
	uint32_t group, node;
};

static struct wide_sum sum_of(const struct stack_sums *t, const struct told *told)
{
	const uint32_t i = told->group - told->piece->first;

	return t->is_wide ? told->piece->wide[i] : (struct wide_sum){ told->piece->events[i], told->piece->events[i] };
}

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
				const struct told told = { piece, piece->first + i, (uint32_t)n };

				if (sum_of(t, &told).events)
					err = fn(arg, &told);
			}
		}
	}
	return err;
}

struct widening {
	const struct stack_sums *from;
	struct stack_sums to;
};

static int copy_sum(void *arg, const struct told *told)
{
	struct widening *w = arg;
	const struct wide_sum sum = sum_of(w->from, told);
	struct piece *piece = piece_of(&w->to, told->node, told->group);

	if (!piece)
		return -ENOMEM;
	piece->wide[told->group - piece->first] = sum;
	return 0;
}

/* Once, before what is too much for the sums as they are is added. 0 or -ENOMEM. */
static int widen(struct stack_sums *t)
{
	struct widening w = { .from = t, .to = { .groups = t->groups, .piece_groups = t->piece_groups, .is_wide = true } };
	int err = each_sum(t, copy_sum, &w);

	if (err) {
		free_pieces(&w.to);
		return err;
	}
	free_pieces(t);
	*t = w.to;
	return 0;
}

static int sum_series(struct stack_sums *t, struct scan *scan, uint32_t index)
{
	const struct block *b = scan->block;
	const uint8_t *mask;
	int err = scan_mask(scan, index, &mask);

	err = err ? err : groups_find(&t->groups, scan, index, mask);
	t->events += b->event_start[index + 1] - b->event_start[index];
	if (!err && !t->is_wide && (b->has_weights || t->events > UINT32_MAX))
		err = widen(t);
	if (err)
		return err;
	if (!mask && t->groups.how == GROUP_SERIES) {
		err = scan_part(scan, BLOCK_STACKS);
		return err ? err : add_runs(t, scan, index);
	}
	err = scan_mask_stacks(scan, index, &mask);
	err = err ? err : groups_events(&t->groups, scan);
	err = err ? err : block_find_runs(scan->block);
	return err ? err : add_events(t, b, index, mask);
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
	const struct wide_sum sum = sum_of(t->sums, told);

	return t->fn(t->arg, groups_text(&t->sums->groups, told->group), told->node, sum.weight, sum.events);
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

static int can_sum_stacks(void *arg, struct scan *scan, uint32_t index)
{
	return groups_are_one(&((struct stack_sums *)arg)->groups, scan, index);
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
