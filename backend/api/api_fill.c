/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adds up what the store tells of stacks to their weights with all they call. By a label the store tells one value after
 * another, and each is placed once: with two selections the second one's stacks are kept until the first one's of the same
 * value come. Frames are asked about here, in the store's order, before anything is placed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backend/api/api_call.h"
#include "backend/query/functions.h"
#include "backend/query/graph.h"
#include "backend/store/store_read.h"
#include "base/cleanup.h"
#include "base/intern.h"
#include "base/vec.h"

/* A stack of the second selection, kept. */
struct kept_stack {
	int64_t weight;
	uint32_t node;
};

/* The stacks of one value of the label, kept until they are placed. */
struct kept_group {
	size_t first, count;
};

struct filling {
	const struct api_call *call;
	struct api_fill *fill;
	struct stacks stacks;
	char *group; /* owned: the value that is being added; NULL: none yet */
	/* Used with a label and two selections. */
	struct intern *values; /* of the second: numbers of the groups */
	struct kept_group *groups;
	struct kept_stack *kept;
	uint32_t group_count, group_cap;
	size_t kept_count, kept_cap;
};

static void filling_fini(struct filling *f)
{
	stacks_fini(&f->stacks);
	free(f->group);
	intern_free(f->values);
	free(f->groups);
	free(f->kept);
}

static void count_events(struct api_fill *fill, unsigned side, int64_t weight, uint64_t events)
{
	fill->events[side] += events;
	fill->squares[side] += events ? (double)weight * (double)weight / (double)events : 0;
}

static int keep_stack(void *arg, const char *group, uint32_t node, int64_t weight, uint64_t events)
{
	struct filling *f = arg;
	uint32_t number;
	int is_new = intern_add(f->values, group, strlen(group) + 1, &number);

	if (is_new < 0)
		return is_new;
	if (vec_reach(&f->groups, &f->group_cap, number))
		return -ENOMEM;
	if (vec_reach(&f->kept, &f->kept_cap, f->kept_count))
		return -ENOMEM;
	if (is_new) {
		f->groups[number] = (struct kept_group){ .first = f->kept_count };
		f->group_count = number + 1;
	}
	f->groups[number].count++;
	f->kept[f->kept_count++] = (struct kept_stack){ weight, node };
	count_events(f->fill, 1, weight, events);
	return 0;
}

/* Adds the kept stacks of group @number, and forgets them. */
static int take_kept(struct filling *f, uint32_t number)
{
	const struct kept_group group = f->groups[number];
	int err = 0;

	f->groups[number].count = 0;
	for (size_t i = group.first; i < group.first + group.count && !err; i++)
		err = stacks_take(&f->stacks, 1, f->kept[i].node, f->kept[i].weight);
	return err;
}

/* All of the group has been added. */
static int place(struct filling *f)
{
	struct api_fill *fill = f->fill;
	const uint64_t kept_bytes = f->kept_cap * sizeof(*f->kept) + f->group_cap * sizeof(*f->groups);
	uint32_t number;
	int err = 0;

	if (f->values) {
		err = intern_add(f->values, f->group, strlen(f->group) + 1, &number);
		err = err >= 0 && number < f->group_count ? take_kept(f, number) : err < 0 ? err : 0;
	}
	err = err ? err : stacks_add_up(&f->stacks, fill->by);
	for (unsigned side = 0; side < 2 && f->stacks.weights[side]; side++)
		fill->total[side] = weights_add(fill->total[side], f->stacks.weights[side][0]);
	err = err ? err : functions_meet(f->call->ctx.functions, f->stacks.frames, f->stacks.frame_words);
	if (!err && fill->shares)
		err = shares_add(fill->shares, &f->stacks);
	err = err ? err : fill->place(fill, &f->stacks, f->group);
	return err ? err : api_within(f->call, stacks_memory_bytes(&f->stacks) + kept_bytes + fill->kept_bytes);
}

/* Stacks of the value @group follow. */
static int begin_group(struct filling *f, const char *group)
{
	char *copy = strdup(group);
	int err = f->group ? place(f) : 0;

	free(f->group);
	f->group = copy;
	return copy ? err : -ENOMEM;
}

static int take_first(void *arg, const char *group, uint32_t node, int64_t weight, uint64_t events)
{
	struct filling *f = arg;
	int err = f->fill->by && (!f->group || strcmp(f->group, group) != 0) ? begin_group(f, group) : 0;

	count_events(f->fill, 0, weight, events);
	return err ? err : stacks_take(&f->stacks, 0, node, weight);
}

static int take_second(void *arg, const char *group, uint32_t node, int64_t weight, uint64_t events)
{
	struct filling *f = arg;

	(void)group;
	count_events(f->fill, 1, weight, events);
	return stacks_take(&f->stacks, 1, node, weight);
}

/* The values that the second selection alone has. */
static int place_rest(struct filling *f)
{
	int err = 0;

	for (uint32_t number = 0; number < f->group_count && !err; number++) {
		if (f->groups[number].count) /* placed with the next one, or at the end */
			err = begin_group(f, intern_get(f->values, number, NULL));
	}
	return err;
}

int api_fill(struct api_call *call, struct api_fill *fill)
{
	AUTO(filling_fini) struct filling f = { .call = call, .fill = fill };
	struct store *store = call->ctx.store;
	const struct query *a = fill->sides[0], *b = fill->sides[1];
	int err = stacks_init(&f.stacks, store, b);

	if (!err && b && fill->by) {
		f.values = intern_new();
		err = f.values ? store->read->sum_stacks(store, &b->sel, fill->by, keep_stack, &f) : -ENOMEM;
	}
	err = err ? err : store->read->sum_stacks(store, &a->sel, fill->by, take_first, &f);
	if (!err && b && !fill->by)
		err = store->read->sum_stacks(store, &b->sel, NULL, take_second, &f);
	err = err ? err : place_rest(&f);
	return err || (fill->by && !f.group) ? err : place(&f);
}

int api_shares(const struct api_call *call, const struct query *q, struct shares **ret)
{
	*ret = shares_new(call->ctx.functions, q->no_inline);
	return *ret ? 0 : -ENOMEM;
}

int api_place(struct api_fill *fill, struct stacks *stacks, const char *group)
{
	int err = graph_place(fill->arg, stacks, group);

	fill->kept_bytes = graph_memory_bytes(fill->arg);
	return err;
}
