/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows by a key of ids and name. Time stands in slots of one length for all rows, a power of two of nanoseconds counted from
 * the epoch; when an event lies outside of what they span, slots are doubled, two becoming one, until it fits. So nothing
 * must be known of a capture's length before it was read.
 */
#include "proto/sums/activity.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/intern.h"
#include "base/vec.h"

struct activity {
	enum activity_rows kind;
	const struct view *view;
	struct intern *keys;	    /* pid, tid, name NUL, process NUL */
	struct intern *threads;	    /* pid, tid: to count those of a process */
	struct activity_row **rows; /* by key; owned */
	struct activity_row **sorted;
	size_t cap;
	unsigned shift;	      /* a slot is 2^shift ns */
	uint64_t origin;      /* number of slot 0 since the epoch */
	uint64_t first, last; /* numbers of the outermost slots with events; first > last: none yet */
	struct weight_sum sum;
	struct buf key;
};

struct activity *activity_new(enum activity_rows rows, const struct view *view)
{
	struct activity *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->kind = rows;
	a->view = view;
	a->first = UINT64_MAX;
	a->keys = intern_new();
	a->threads = intern_new();
	if (!a->keys || !a->threads) {
		activity_free(a);
		return NULL;
	}
	return a;
}

void activity_free(struct activity *a)
{
	if (!a)
		return;
	for (size_t i = 0; i < a->cap; i++)
		free(a->rows[i]);
	free(a->rows);
	free(a->sorted);
	intern_free(a->keys);
	intern_free(a->threads);
	buf_fini(&a->key);
	free(a);
}

enum activity_rows activity_kind(const struct activity *a)
{
	return a->kind;
}

const struct weight_sum *activity_sum(const struct activity *a)
{
	return &a->sum;
}

/* --- time --- */

/* Makes slots of 2^(shift+1) ns out of those there are, and lets them begin at @origin in the new count. */
static void double_slots(struct activity *a)
{
	uint64_t origin = a->origin / 2;

	for (uint32_t r = 0; r < intern_count(a->keys); r++) {
		uint64_t fresh[ACTIVITY_SLOTS] = { 0 };

		for (uint64_t i = 0; i < ACTIVITY_SLOTS; i++)
			fresh[(a->origin % 2 + i) / 2] += a->rows[r]->slots[i];
		memcpy(a->rows[r]->slots, fresh, sizeof(fresh));
	}
	a->shift++;
	a->origin = origin;
	a->first /= 2;
	a->last /= 2;
}

/* Moves the slots of all rows so that slot 0 is number @origin, which is lower than now; what is in use fits. */
static void move_slots(struct activity *a, uint64_t origin)
{
	uint64_t by = a->origin - origin;

	for (uint32_t r = 0; r < intern_count(a->keys); r++) {
		uint64_t *slots = a->rows[r]->slots;

		memmove(&slots[by], slots, (ACTIVITY_SLOTS - by) * sizeof(*slots));
		memset(slots, 0, by * sizeof(*slots));
	}
	a->origin = origin;
}

/* The slot of @time_unix_ns. */
static uint32_t slot_of(struct activity *a, uint64_t time_unix_ns)
{
	uint64_t number = time_unix_ns >> a->shift;

	if (a->first > a->last) {
		a->origin = a->first = a->last = number;
		return 0;
	}
	for (;;) {
		uint64_t first = number < a->first ? number : a->first, last = number > a->last ? number : a->last;

		if (last - first < ACTIVITY_SLOTS) {
			if (first < a->origin)
				move_slots(a, first);
			if (last - a->origin < ACTIVITY_SLOTS) {
				a->first = first;
				a->last = last;
				return (uint32_t)(number - a->origin);
			}
		}
		double_slots(a);
		number = time_unix_ns >> a->shift;
	}
}

struct activity_time activity_time(const struct activity *a)
{
	struct activity_time time = { 0 };

	if (a->first <= a->last) {
		time.start_unix_ns = a->origin << a->shift;
		time.slot_ns = 1ull << a->shift;
		time.slot_count = (uint32_t)(a->last - a->origin + 1);
	}
	return time;
}

/* --- adding --- */

/* The key of @s into @a->key. */
static void make_key(struct activity *a, const struct stack_sample *s)
{
	const struct any_value *value = view_sample_label(s, "process.executable.name");
	struct str process = s->comm;
	struct str name;
	int64_t ids[2] = { -1, -1 };

	if (value)
		profiles_value_string(s->profiles, value, &process);
	name = a->kind == ACTIVITY_GROUPS ? s->group : a->kind == ACTIVITY_THREADS ? s->comm : process;
	if (a->kind != ACTIVITY_GROUPS)
		ids[0] = s->pid;
	if (a->kind == ACTIVITY_THREADS)
		ids[1] = view_sample_number(s, "thread.id");
	buf_reset(&a->key);
	buf_append(&a->key, ids, sizeof(ids));
	stack_walk_put_key(&a->key, strnlen(name.data, name.len) ? name : STR("[unknown]"));
	stack_walk_put_key(&a->key, a->kind == ACTIVITY_THREADS ? process : STR(""));
}

static int find_row(struct activity *a, const struct stack_sample *s, struct activity_row **ret)
{
	uint32_t index;

	make_key(a, s);
	/* The row's memory comes first: a key without a row must not be. */
	if (vec_reach_zero(&a->rows, &a->cap, intern_count(a->keys)))
		return -ENOMEM;
	index = intern_count(a->keys);
	if (!a->rows[index]) {
		a->rows[index] = calloc(1, sizeof(struct activity_row));
		if (!a->rows[index])
			return -ENOMEM;
		a->rows[index]->first_unix_ns = UINT64_MAX;
	}
	if (a->key.failed || intern_add(a->keys, a->key.data, a->key.len, &index) < 0)
		return -ENOMEM;
	*ret = a->rows[index];
	return 0;
}

static int count_thread(struct activity *a, const struct stack_sample *s, struct activity_row *row)
{
	int64_t ids[2] = { s->pid, view_sample_number(s, "thread.id") };
	uint32_t index;
	int is_new = intern_add(a->threads, ids, sizeof(ids), &index);

	row->threads += is_new > 0;
	return is_new < 0 ? is_new : 0;
}

static int add_sample(void *arg, const struct stack_sample *s)
{
	struct activity *a = arg;
	struct activity_row *row;
	int err;

	if (!stack_weight_add(&a->sum, s))
		return 0;
	err = find_row(a, s, &row);
	if (!err && a->kind == ACTIVITY_PROCESSES)
		err = count_thread(a, s, row);
	if (err)
		return err;
	row->weight += s->weight;
	row->events += s->events;
	for (uint64_t i = 0; i < s->events; i++) {
		const uint64_t time = stack_time(s, i);

		row->first_unix_ns = time < row->first_unix_ns ? time : row->first_unix_ns;
		row->last_unix_ns = time > row->last_unix_ns ? time : row->last_unix_ns;
		row->slots[slot_of(a, time)] += s->weight / s->events + (i < s->weight % s->events);
	}
	return 0;
}

int activity_add(struct activity *a, const struct profiles *p)
{
	return view_each_stack(a->view, p, add_sample, a);
}

/* --- reading --- */

static int heavier(const void *x, const void *y)
{
	const struct activity_row *a = *(struct activity_row *const *)x, *b = *(struct activity_row *const *)y;
	int order;

	if (a->weight != b->weight)
		return a->weight > b->weight ? -1 : 1;
	order = strcmp(a->name, b->name);
	order = order ? order : (a->pid > b->pid) - (a->pid < b->pid);
	return order ? order : (a->tid > b->tid) - (a->tid < b->tid);
}

const struct activity_row *const *activity_rows(struct activity *a, uint32_t *count_ret)
{
	uint32_t count = intern_count(a->keys);

	*count_ret = 0;
	free(a->sorted);
	a->sorted = reallocarray(NULL, (size_t)count + 1, sizeof(struct activity_row *));
	if (!a->sorted)
		return NULL;
	for (uint32_t i = 0; i < count; i++) {
		const char *key = intern_get(a->keys, i, NULL);

		memcpy(&a->rows[i]->pid, key, sizeof(int64_t));
		memcpy(&a->rows[i]->tid, key + sizeof(int64_t), sizeof(int64_t));
		a->rows[i]->name = key + 2 * sizeof(int64_t);
		a->rows[i]->process = a->rows[i]->name + strlen(a->rows[i]->name) + 1;
		a->sorted[i] = a->rows[i];
	}
	if (count)
		qsort(a->sorted, count, sizeof(struct activity_row *), heavier);
	*count_ret = count;
	return (const struct activity_row *const *)a->sorted;
}
