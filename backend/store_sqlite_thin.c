/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Thinning: what is old keeps its stack, its weight, its labels and its minute, and loses the exact time, the cpu, the
 * thread, and the span it was in. Each sample stays one event, so all sums by whole minutes are what they were; columns in
 * which all numbers are alike take next to no room.
 *
 * Invariant: blocks are thinned once (level 3), within an hour, in a transaction that puts the new ones in their place: a
 * process that is killed leaves either. The writer's thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backend/store_sqlite_names.h"
#include "backend/store_sqlite_write.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/map.h"

enum { THIN_LEVEL = 3, THIN_PERIOD_NS = 1000000000 /* minutes are whole periods, so times have no rest */ };

struct thinning {
	struct store_writer *w;
	struct store_names *names;
	struct map sets; /* a set's number -> 1 + that without the thread */
};

static bool is_lost(const char *key)
{
	return !strcmp(key, "thread.id") || !strcmp(key, "thread.name");
}

/* What @set is without the thread. 0 or -errno. */
static int make_set(struct thinning *t, uint32_t set, uint32_t *ret)
{
	int err = 0;
	const struct name_set *labels = names_set(t->names, set, &err);
	AUTO_FREE int64_t *numbers = labels ? calloc(labels->count + 1, sizeof(*numbers)) : NULL;
	size_t count = 0;

	*ret = set; /* one that is damaged stays as it is: it is only less small */
	if (!numbers)
		return err == -EBADMSG ? 0 : err ? err : -ENOMEM;
	for (uint32_t i = 0; i < labels->count; i++)
		if (!is_lost(labels->labels[i].key))
			numbers[count++] = labels->labels[i].attribute;
	*ret = count == labels->count ? set : count ? keep_list(&t->w->keep, KEPT_SET, numbers, count) : 0;
	return count && !*ret ? -ENOMEM : 0;
}

static int thin_set(struct thinning *t, uint32_t set, uint32_t *ret)
{
	void *known = set ? map_get(&t->sets, set) : (void *)1;
	int err;

	if (known) {
		*ret = (uint32_t)((uintptr_t)known - 1);
		return 0;
	}
	err = make_set(t, set, ret);
	return err ? err : map_put(&t->sets, set, (void *)((uintptr_t)*ret + 1));
}

static int thin_events(struct thinning *t)
{
	struct keep *k = &t->w->keep;
	int err = 0;

	for (size_t i = 0; i < k->event_count && !err; i++) {
		struct event *e = &k->events[i];

		e->time_ns -= e->time_ns % MINUTE_NS;
		e->period = THIN_PERIOD_NS;
		e->cpu = 0;
		e->link = 0;
		err = thin_set(t, e->labels, &e->labels);
	}
	return err ? err : keep_write(k);
}

/* As store_merge_blocks() wants it. */
static int change_events(struct store_writer *w)
{
	struct thinning t = { .w = w };
	int err = store_names_new(w->s, &w->s->write_db, &w->codec, &t.names);

	err = err ? err : thin_events(&t);
	store_names_free(t.names);
	map_fini(&t.sets);
	return err;
}

int store_thin_step(struct store_writer *w, uint64_t before_ns)
{
	struct merge m;
	int err;

	if (before_ns < HOUR_NS)
		return 0;
	/* An hour as a whole, or its blocks would become many small ones. */
	before_ns -= before_ns % HOUR_NS;
	err = store_merge_find(w,
			       "SELECT id, from_ns, events, generation FROM blocks INDEXED BY blocks_time WHERE "
			       "level < 3 AND to_ns < ?1 ORDER BY from_ns",
			       before_ns < INT64_MAX ? (int64_t)before_ns : INT64_MAX, &m);
	if (err || !m.count)
		return err;
	err = store_merge_blocks(w, &m, THIN_LEVEL, change_events);
	if (err) {
		w->is_stale = true; /* numbers may have been given out */
		return err;
	}
	metric_add(w->s->metrics.thinned_events, (uint64_t)m.events);
	return 1;
}
