/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The executables that selected stacks have frames of. Stacks and then frames are asked about in the store's order, which
 * has both packed many together; an executable is that of a frame's mapping, and mappings of one path and build id are one.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backend/stacks.h"
#include "backend/store_sqlite_groups.h"
#include "base/cleanup.h"

struct executables {
	struct store_names *names;
	struct stacks stacks;		/* weights are events */
	struct store_executable *items; /* paths and build ids are owned */
	uint32_t count, cap;
	struct map of_mapping; /* mapping's number -> place + 1 */
	uint32_t *of_frame;    /* place + 1; 0: a frame of none, or of no stack here */
	uint32_t *on_path;     /* by place: how often it is met between the root and the stack that is walked */
};

static void executables_fini(struct executables *t)
{
	for (uint32_t i = 0; i < t->count; i++) {
		free((char *)t->items[i].path);
		free((char *)t->items[i].build_id);
	}
	free(t->items);
	free(t->of_frame);
	free(t->on_path);
	map_fini(&t->of_mapping);
	stacks_fini(&t->stacks);
}

static int add_executable(struct executables *t, const struct name_mapping *m)
{
	struct store_executable *e;

	if (t->count == t->cap) {
		const uint32_t cap = t->cap * 2 + 64;
		struct store_executable *grown = reallocarray(t->items, cap, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		t->items = grown;
		t->cap = cap;
	}
	e = &t->items[t->count++];
	*e = (struct store_executable){ .path = strdup(m->path), .build_id = strdup(m->build_id), .id_kind = m->id_kind };
	return e->path && e->build_id ? 0 : -ENOMEM;
}

/* The executable of mapping @id: its place + 1. */
static int find_executable(struct executables *t, uint32_t id, uint32_t *ret)
{
	uint32_t i = (uint32_t)(uintptr_t)map_get(&t->of_mapping, id);
	const struct name_mapping *m;
	int err = 0;

	*ret = i;
	if (i)
		return 0;
	m = names_mapping(t->names, id, &err);
	if (!m)
		return err;
	while (i < t->count && (strcmp(t->items[i].path, m->path) || strcmp(t->items[i].build_id, m->build_id)))
		i++;
	if (i == t->count)
		err = add_executable(t, m);
	*ret = i + 1;
	return err ? err : map_put(&t->of_mapping, id, (void *)(uintptr_t)(i + 1));
}

static int count_frame(struct executables *t, uint32_t id)
{
	int err = 0;
	const struct frame_row *row = names_frame(t->names, id, &err);
	struct store_frame shown;

	if (!row || !row->mapping)
		return err;
	err = find_executable(t, row->mapping, &t->of_frame[id]);
	err = err ? err : names_store_frame(t->names, id, &shown);
	if (err)
		return err;
	t->items[t->of_frame[id] - 1].frames++;
	t->items[t->of_frame[id] - 1].named_frames += *shown.function != '\0';
	return 0;
}

static int count_frames(struct executables *t)
{
	const struct stacks *s = &t->stacks;
	int err = 0;

	t->of_frame = calloc((size_t)s->frame_words * 64 + 1, sizeof(*t->of_frame));
	for (uint32_t word = 0; word < s->frame_words && t->of_frame; word++)
		for (uint64_t bits = s->frames[word]; bits && !err; bits &= bits - 1)
			err = count_frame(t, word * 64 + (uint32_t)__builtin_ctzll(bits));
	t->on_path = calloc(t->count + 1, sizeof(*t->on_path));
	return t->of_frame && t->on_path ? err : -ENOMEM;
}

static void enter(struct executables *t, uint32_t stack)
{
	const uint32_t place = t->of_frame[t->stacks.items[stack].frame];

	if (place && !t->on_path[place - 1]++)
		t->items[place - 1].events += (uint64_t)t->stacks.weights[0][stack];
}

static void leave(struct executables *t, uint32_t stack)
{
	const uint32_t place = t->of_frame[t->stacks.items[stack].frame];

	if (place)
		t->on_path[place - 1]--;
}

/* Events with a frame of an executable are those of the first stacks with it, seen from the root, and all they call. */
static void count_events(struct executables *t)
{
	const struct stack *stacks = t->stacks.items;

	for (uint32_t stack = stacks[0].child; stack;) {
		enter(t, stack);
		if (stacks[stack].child) {
			stack = stacks[stack].child;
			continue;
		}
		leave(t, stack);
		while (stack && !stacks[stack].sibling) {
			stack = stacks[stack].caller - 1;
			if (stack)
				leave(t, stack);
		}
		stack = stack ? stacks[stack].sibling : 0;
	}
}

static int take_events(void *arg, const char *group, uint32_t node, int64_t weight, uint64_t events)
{
	struct executables *t = arg;

	(void)group;
	(void)weight;
	return stacks_take(&t->stacks, 0, node, (int64_t)events);
}

int store_executables(struct store *s, const struct store_selection *sel,
		      int (*fn)(void *arg, const struct store_executable *e), void *arg)
{
	struct store_sqlite *sqlite = store_sqlite_of(s);
	AUTO(executables_fini) struct executables t = { .names = sqlite->names };
	int err;

	pthread_mutex_lock(&sqlite->read_lock); /* names are used after the sums, too */
	err = stacks_init(&t.stacks, s, false);
	err = err ? err : store_sum_stacks(s, sel, NULL, take_events, &t);
	err = err ? err : stacks_add_up(&t.stacks, false);
	err = err ? err : count_frames(&t);
	if (!err)
		count_events(&t);
	for (uint32_t i = 0; i < t.count && !err; i++)
		err = fn(arg, &t.items[i]);
	pthread_mutex_unlock(&sqlite->read_lock);
	return err;
}
