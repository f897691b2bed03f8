/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames of one path and build id are of one executable. Stacks and then frames are asked about in the store's order, which
 * has both packed many together; then one walk over the stacks, added up, counts the events.
 */
#include "backend/executables.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backend/stacks.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/intern.h"

struct executables {
	struct stacks stacks; /* weights are events */
	struct intern *keys;  /* path NUL build id NUL */
	struct store_executable *items;
	uint32_t cap;
	uint32_t *of_frame; /* place + 1; 0: of none, or of no stack here */
	uint32_t *on_path;  /* by place: how often it is met between the root and the stack that is walked */
	struct buf key;
};

static void executables_fini(struct executables *t)
{
	stacks_fini(&t->stacks);
	intern_free(t->keys);
	free(t->items);
	free(t->of_frame);
	free(t->on_path);
	buf_fini(&t->key);
}

/* The place of @e, made when it is met first. */
static int find(struct executables *t, const struct store_executable *e, uint32_t *ret)
{
	int is_new;

	buf_reset(&t->key);
	buf_append(&t->key, e->path, strlen(e->path) + 1);
	buf_append(&t->key, e->build_id, strlen(e->build_id) + 1);
	is_new = t->key.failed ? -ENOMEM : intern_add(t->keys, t->key.data, t->key.len, ret);
	if (is_new <= 0)
		return is_new;
	if (*ret == t->cap) {
		const uint32_t cap = t->cap * 2 + 64;
		struct store_executable *grown = reallocarray(t->items, cap, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		t->items = grown;
		t->cap = cap;
	}
	t->items[*ret] = (struct store_executable){ .id_kind = e->id_kind };
	return 0;
}

static int count_frame(struct executables *t, executable_of_frame_fn of_frame, uint32_t frame)
{
	struct store_executable e = { 0 };
	int err = of_frame(t->stacks.store, frame, &e);
	uint32_t place;

	if (err || !e.path)
		return err;
	err = find(t, &e, &place);
	if (err)
		return err;
	t->items[place].frames++;
	t->items[place].named_frames += e.named_frames;
	t->of_frame[frame] = place + 1;
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
	t->on_path = calloc(intern_count(t->keys) + 1, sizeof(*t->on_path));
	return t->of_frame && t->on_path ? err : -ENOMEM;
}

/* Events with a frame of an executable are those of the first stacks with it, seen from the root, and all they call. */
static int enter(void *arg, uint32_t stack)
{
	struct executables *t = arg;
	const uint32_t place = t->of_frame[t->stacks.items[stack].frame];

	if (place && !t->on_path[place - 1]++)
		t->items[place - 1].events += (uint64_t)t->stacks.weights[0][stack];
	return 0;
}

static void leave(void *arg, uint32_t stack)
{
	struct executables *t = arg;
	const uint32_t place = t->of_frame[t->stacks.items[stack].frame];

	if (place)
		t->on_path[place - 1]--;
}

static int take_events(void *arg, const char *group, uint32_t node, int64_t weight, uint64_t events)
{
	struct executables *t = arg;

	(void)group;
	(void)weight;
	return stacks_take(&t->stacks, 0, node, (int64_t)events);
}

static int by_events(const void *a, const void *b)
{
	const struct store_executable *x = a, *y = b;
	const int order = strcmp(x->path, y->path);

	if (x->events != y->events)
		return x->events > y->events ? -1 : 1;
	return order ? order : strcmp(x->build_id, y->build_id);
}

static int tell(struct executables *t, int (*fn)(void *arg, const struct store_executable *e), void *arg)
{
	const uint32_t count = intern_count(t->keys);
	int err = 0;

	for (uint32_t i = 0; i < count; i++) {
		t->items[i].path = intern_get(t->keys, i, NULL);
		t->items[i].build_id = t->items[i].path + strlen(t->items[i].path) + 1;
	}
	if (count)
		qsort(t->items, count, sizeof(*t->items), by_events);
	for (uint32_t i = 0; i < count && !err; i++)
		err = fn(arg, &t->items[i]);
	return err;
}

int executables_count(struct store *s, const struct store_selection *sel, executable_of_frame_fn of_frame,
		      int (*fn)(void *arg, const struct store_executable *e), void *arg)
{
	AUTO(executables_fini) struct executables t = { .keys = intern_new() };
	int err = stacks_init(&t.stacks, s, false);

	err = err || t.keys ? err : -ENOMEM;
	err = err ? err : s->ops->sum_stacks(s, sel, NULL, take_events, &t);
	err = err ? err : stacks_add_up(&t.stacks, false);
	err = err ? err : count_frames(&t, of_frame);
	err = err ? err : stacks_walk(&t.stacks, enter, leave, &t);
	return err ? err : tell(&t, fn, arg);
}
