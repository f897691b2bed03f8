/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames of one path, build id and, of generated code, process are of one executable. Stacks and then frames are asked about
 * in the store's order, which has both packed many together; then one walk over the stacks, added up, counts the events.
 */
#include "backend/store/executables.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backend/store/stack_sums.h"
#include "backend/store/store_read.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/intern.h"
#include "base/vec.h"

struct executables {
	struct stacks stacks; /* first side: events; second: weights */
	struct intern *keys;  /* path NUL build id NUL process NUL; first, a NUL alone, frames of no executable */
	struct store_executable *items;
	uint32_t cap;
	uint32_t *of_frame; /* its place as stack_sums_key(), marked where it has a name */
	struct stack_sums sums;
	struct buf key;
};

static void executables_fini(struct executables *t)
{
	stacks_fini(&t->stacks);
	intern_free(t->keys);
	free(t->items);
	free(t->of_frame);
	stack_sums_fini(&t->sums);
	buf_fini(&t->key);
}

/* Finds the place of @e, or makes it. */
static int find(struct executables *t, const struct store_executable *e, uint32_t *ret)
{
	int is_new;

	buf_reset(&t->key);
	if (e->path) {
		buf_append(&t->key, e->path, strlen(e->path) + 1);
		buf_append(&t->key, e->build_id, strlen(e->build_id) + 1);
		buf_append(&t->key, e->process, strlen(e->process) + 1);
	} else {
		buf_putc(&t->key, 0);
	}
	is_new = t->key.failed ? -ENOMEM : intern_add(t->keys, t->key.data, t->key.len, ret);
	if (is_new <= 0)
		return is_new;
	if (vec_reach(&t->items, &t->cap, *ret))
		return -ENOMEM;
	t->items[*ret] = (struct store_executable){ .id_kind = e->id_kind };
	return 0;
}

static int count_frame(struct executables *t, executable_of_frame_fn of_frame, uint32_t frame)
{
	struct store_executable e = { 0 };
	int err = of_frame(t->stacks.store, frame, &e);
	uint32_t place;

	err = err ? err : find(t, &e, &place);
	if (err)
		return err;
	t->items[place].frames++;
	t->items[place].named_frames += e.named_frames;
	t->of_frame[frame] = (uint32_t)stack_sums_key(place, e.named_frames != 0);
	return 0;
}

static int count_frames(struct executables *t, executable_of_frame_fn of_frame)
{
	const struct stacks *s = &t->stacks;
	int err = 0;

	t->of_frame = calloc((size_t)s->frame_words * 64 + 1, sizeof(*t->of_frame));
	for (uint32_t word = 0; word < s->frame_words && t->of_frame; word++)
		for (uint64_t bits = s->frames[word]; bits && !err; bits &= bits - 1)
			err = count_frame(t, of_frame, word * 64 + (uint32_t)__builtin_ctzll(bits));
	return t->of_frame ? err : -ENOMEM;
}

static int64_t place_of_frame(void *arg, uint32_t frame)
{
	const struct executables *t = arg;

	return t->of_frame[frame];
}

/* The first side's weights are events. */
static int sum_up(struct executables *t)
{
	int err = stack_sums_add(&t->sums, &t->stacks, 0, place_of_frame, t);

	for (uint32_t i = 0; i < t->sums.count && !err; i++) {
		const struct stack_sum *row = &t->sums.rows[i];
		struct store_executable *e = &t->items[row->key];

		e->events = (uint64_t)row->total[0];
		e->self = row->self[1];
		e->named_self = row->marked[1];
	}
	return err;
}

static int take_events(void *arg, const char *group, uint32_t node, int64_t weight, uint64_t events)
{
	struct executables *t = arg;

	int err = stacks_take(&t->stacks, 0, node, (int64_t)events);

	(void)group;
	return err ? err : stacks_take(&t->stacks, 1, node, weight);
}

static int by_events(const void *a, const void *b)
{
	const struct store_executable *x = a, *y = b;
	const int order = strcmp(x->path, y->path);

	if (x->events != y->events)
		return x->events > y->events ? -1 : 1;
	if (order || strcmp(x->build_id, y->build_id) != 0)
		return order ? order : strcmp(x->build_id, y->build_id);
	return strcmp(x->process, y->process);
}

static int tell(struct executables *t, int (*fn)(void *arg, const struct store_executable *e), void *arg)
{
	const uint32_t count = intern_count(t->keys);
	int err = 0;

	for (uint32_t i = 1; i < count; i++) {
		t->items[i].path = intern_get(t->keys, i, NULL);
		t->items[i].build_id = t->items[i].path + strlen(t->items[i].path) + 1;
		t->items[i].process = t->items[i].build_id + strlen(t->items[i].build_id) + 1;
	}
	if (count > 1)
		qsort(t->items + 1, count - 1, sizeof(*t->items), by_events);
	for (uint32_t i = 1; i < count && !err; i++)
		err = fn(arg, &t->items[i]);
	return err || !t->items[0].frames ? err : fn(arg, &t->items[0]);
}

int executables_count(struct store *s, const struct store_selection *sel, executable_of_frame_fn of_frame,
		      int (*fn)(void *arg, const struct store_executable *e), void *arg)
{
	static const struct store_executable none = { .id_kind = "" };
	AUTO(executables_fini) struct executables t = { .keys = intern_new() };
	int err = stacks_init(&t.stacks, s, true);
	uint32_t place;

	err = err || t.keys ? err : -ENOMEM;
	err = err ? err : find(&t, &none, &place);
	err = err ? err : s->read->sum_stacks(s, sel, NULL, take_events, &t);
	err = err ? err : stacks_add_up(&t.stacks, false);
	err = err ? err : count_frames(&t, of_frame);
	err = err ? err : sum_up(&t);
	return err ? err : tell(&t, fn, arg);
}
