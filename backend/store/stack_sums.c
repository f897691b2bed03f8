/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stack's own weight is its weight with all it calls, without that of its callees: so each stack adds its weight to its
 * key's self and takes it from that of its caller's key.
 */
#include "backend/store/stack_sums.h"

#include <errno.h>
#include <stdlib.h>

#include "base/vec.h"

enum { OF_NONE = UINT32_MAX };

struct stack_sums_place {
	uint32_t row;	 /* and 1, the last that was made; 0: none yet */
	uint32_t active; /* how often it is on the path */
};

void stack_sums_fini(struct stack_sums *t)
{
	free(t->rows);
	free(t->places);
	free(t->path);
}

uint64_t stack_sums_memory_bytes(const struct stack_sums *t)
{
	return t->cap * sizeof(*t->rows) + t->place_count * sizeof(*t->places);
}

/* Makes a row for @key when @group has none. 0 or -ENOMEM. */
static int find_row(struct stack_sums *t, uint32_t key, uint32_t group)
{
	uint32_t row;

	if (vec_reach_zero(&t->places, &t->place_count, key))
		return -ENOMEM;
	row = t->places[key].row;
	if (row && t->rows[row - 1].group == group)
		return 0;
	if (vec_reach(&t->rows, &t->cap, t->count))
		return -ENOMEM;
	t->rows[t->count++] = (struct stack_sum){ .key = key, .group = group };
	t->places[key].row = t->count;
	return 0;
}

static void add(int64_t *to, int64_t weight)
{
	*to = weights_add(*to, weight);
}

static void add_self(struct stack_sum *row, bool is_marked, unsigned side, int64_t weight)
{
	add(&row->self[side], weight);
	if (is_marked)
		add(&row->marked[side], weight);
}

/* Goes down to @stack, whose frame counts for @key. */
static int enter(struct stack_sums *t, const struct stacks *s, uint32_t stack, int64_t key, uint32_t group)
{
	const uint32_t caller = t->depth ? t->path[t->depth - 1] : OF_NONE;
	const uint32_t of = key == STACK_SUMS_CALLER ? caller : (uint32_t)key;
	struct stack_sum *row, *callers;
	struct stack_sums_place *place;

	if (key < 0)
		return (int)key;
	if (vec_reach(&t->path, &t->path_cap, t->depth) || (of != OF_NONE && find_row(t, of / 2, group)))
		return -ENOMEM;
	t->path[t->depth++] = of;
	if (of == OF_NONE)
		return 0;
	place = &t->places[of / 2];
	row = &t->rows[place->row - 1];
	callers = caller == OF_NONE ? NULL : &t->rows[t->places[caller / 2].row - 1];
	for (unsigned side = 0; side < 2 && s->weights[side]; side++) {
		const int64_t weight = s->weights[side][stack];

		add_self(row, of % 2, side, weight);
		if (!place->active)
			add(&row->total[side], weight);
		if (callers)
			add_self(callers, caller % 2, side, weights_less(0, weight));
	}
	place->active++;
	return 0;
}

static void leave(struct stack_sums *t)
{
	const uint32_t of = t->path[--t->depth];

	if (of != OF_NONE)
		t->places[of / 2].active--;
}

int stack_sums_add(struct stack_sums *t, const struct stacks *s, uint32_t group,
		   int64_t (*key_of)(void *arg, uint32_t frame), void *arg)
{
	const struct stack *items = s->items;

	for (uint32_t at = items[0].child; at;) {
		int err = enter(t, s, at, key_of(arg, items[at].frame), group);

		if (err)
			return err;
		if (items[at].child) {
			at = items[at].child;
			continue;
		}
		for (leave(t); at && !items[at].sibling; at = items[at].caller - 1)
			if (t->depth)
				leave(t);
		at = at ? items[at].sibling : 0;
	}
	return 0;
}
