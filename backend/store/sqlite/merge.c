/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Merging and thinning, which the writer does between commits: both put blocks in the place of others. Blocks of commits
 * (level 0) are merged by the minute into blocks of level 1, and those of an hour that is over into level 2: fewer and
 * larger blocks are smaller and faster. A merge reads some blocks, sorts their events together and puts new blocks in their
 * place, in one transaction of a bounded number of events, so that it holds up the next commit for tens of milliseconds at
 * most.
 *
 * A sample that is thinned keeps its stack, its weight, its labels and its minute, and loses the exact time, the cpu, the
 * thread, and the span it was in. Each stays one event, so all sums by whole minutes are what they were; columns in which
 * all numbers are alike take next to no room.
 *
 * Invariant: blocks are thinned once (level 3), within an hour; a process that is killed leaves either the old blocks or the
 * new ones. The writer's thread.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/store/sqlite/names.h"
#include "backend/store/sqlite/write.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/map.h"

enum {
	MERGE_BLOCKS = 256,	/* of one step */
	MERGE_EVENTS = 1 << 16, /* the same: 8 MB while it lasts */
	SPLIT_EVENTS = 1 << 13, /* a block ends with the series that has so many in it */
	ENOUGH_BLOCKS = 32,	/* of level 0 before they are merged at once */
};

#define LEVEL0_AGE_NS (60 * NSEC_PER_SEC)

enum { THIN_LEVEL = 3, THIN_PERIOD_NS = 1000000000 /* minutes are whole periods, so times have no rest */ };

/* Rows that become others: of one hour, oldest first, and what they hold. */
struct merge {
	int64_t ids[MERGE_BLOCKS];
	size_t count;
	int64_t events;
	int64_t generation;	 /* the oldest of theirs */
	int64_t hour, oldest_ns; /* since 1970; the first time */
};

static int append_events(struct keep *k, const struct block *b)
{
	uint32_t at = 0;

	if (k->event_count + b->event_count > k->event_cap) {
		size_t cap = (k->event_count + b->event_count) * 5 / 4;
		struct event *grown = realloc(k->events, cap * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		k->events = grown;
		k->event_cap = cap;
	}
	for (uint32_t s = 0; s < b->series_count; s++) {
		for (uint32_t r = b->run_start[s]; r < b->run_start[s + 1]; r++) {
			for (uint32_t i = 0; i < b->run_events[r]; i++, at++)
				k->events[k->event_count++] = (struct event){
					.time_ns = b->time_ns[at],
					.weight = b->weight ? b->weight[at] : 1,
					.series = b->series[s],
					.stack = b->run_stack[r],
					.labels = b->cell_set[b->label[at]],
					.cpu = b->cpu[at],
					.link = b->link ? b->link[at] : 0,
					.period = b->period[s],
				};
		}
	}
	return 0;
}

int store_read_block(struct block *b, sqlite3_stmt *st, enum block_part last)
{
	int err = block_read_head(b, sqlite3_column_blob(st, 0), (size_t)sqlite3_column_bytes(st, 0));

	for (int part = BLOCK_STACKS; part <= (int)last && !err; part++)
		err = block_read(b, (enum block_part)part, sqlite3_column_blob(st, part),
				 (size_t)sqlite3_column_bytes(st, part));
	return err;
}

static int read_blocks(struct store_writer *w, const struct merge *m)
{
	sqlite3_stmt *st = NULL;
	int code = sqlite3_prepare_v2(
		w->s->write_db, "SELECT head, stacks, cells, cpus, labels, weights, times, links FROM blocks WHERE id = ?1",
		-1, &st, NULL);
	int err = store_sqlite_errno(code);

	w->keep.event_count = 0;
	for (size_t i = 0; i < m->count && !err; i++) {
		sqlite3_bind_int64(st, 1, m->ids[i]);
		code = sqlite3_step(st);
		err = code == SQLITE_ROW    ? store_read_block(&w->block, st, BLOCK_LINKS)
		      : code == SQLITE_DONE ? 0
					    : store_sqlite_errno(code);
		if (code == SQLITE_ROW && !err)
			err = append_events(&w->keep, &w->block);
		if (err == -EBADMSG && code == SQLITE_ROW) {
			/* The row is there, but its content is not what was written: it is removed, the rest stays. */
			metric_add(w->s->metrics.damaged_blocks, 1);
			log_limited(&w->work_limit, 10 * NSEC_PER_SEC, LOG_ERROR,
				    "a block of events in %s is damaged and was dropped", w->s->path);
			err = 0;
		}
		sqlite3_reset(st);
	}
	sqlite3_finalize(st);
	return err;
}

static int write_blocks(struct store_writer *w, int level, int64_t generation)
{
	const struct event *events = w->keep.events;
	size_t count = w->keep.event_count, end;
	int err = 0;

	events_sort(w->keep.events, count);
	for (size_t start = 0; start < count && !err; start = end) {
		for (end = start + 1; end < count; end++) {
			if (end - start >= SPLIT_EVENTS && count - end >= SPLIT_EVENTS / 4 &&
			    events[end].series != events[end - 1].series)
				break;
		}
		err = store_insert_block(w, events + start, end - start, level, generation);
	}
	return err;
}

static int delete_blocks(struct store_writer *w, const struct merge *m)
{
	sqlite3_stmt *st = NULL;
	int code = sqlite3_prepare_v2(w->s->write_db, "DELETE FROM blocks WHERE id = ?1", -1, &st, NULL);

	for (size_t i = 0; i < m->count && code == SQLITE_OK; i++) {
		sqlite3_bind_int64(st, 1, m->ids[i]);
		code = sqlite3_step(st);
		code = code == SQLITE_DONE ? sqlite3_reset(st) : code;
	}
	sqlite3_finalize(st);
	return store_sqlite_errno(code);
}

/* Puts blocks of @level in the place of @m's, their events changed by @change (NULL: as they were), in one transaction. */
static int replace_blocks(struct store_writer *w, const struct merge *m, int level, int (*change)(struct store_writer *w))
{
	int err = store_begin(w->s);

	column_codec_set_level(w->codec, STORE_DENSE_LEVEL);
	err = err ? err : read_blocks(w, m);
	err = err || !change ? err : change(w);
	err = err ? err : delete_blocks(w, m);
	err = err ? err : write_blocks(w, level, m->generation);
	err = store_end(w->s, err);
	keep_forget_events(&w->keep);
	block_fini(&w->block);
	block_init(&w->block, w->codec);
	metric_add(w->s->metrics.merges, !err);
	w->has_merged |= level > 1;
	return err;
}

/* Merges blocks. A single block that is packed densely already only gets the next level. */
static int merge_blocks(struct store_writer *w, const struct merge *m, int level)
{
	char sql[96];

	if (m->count != 1 || level == 1)
		return replace_blocks(w, m, level, NULL);
	w->has_merged |= level > 1;
	snprintf(sql, sizeof(sql), "UPDATE blocks SET level = %d WHERE id = %" PRId64, level, m->ids[0]);
	return store_write(w->s, sql);
}

/* Collects rows id, from_ns, events, generation of @sql with ?1 bound to @value, until a step's worth is there. */
static int find_rows(struct store_writer *w, const char *sql, int64_t value, struct merge *m)
{
	sqlite3_stmt *st = NULL;
	int code = sqlite3_prepare_v2(w->s->write_db, sql, -1, &st, NULL);
	int64_t count;

	*m = (struct merge){ .hour = -1 };
	sqlite3_bind_int64(st, 1, value);
	while (code == SQLITE_OK || code == SQLITE_ROW) {
		code = sqlite3_step(st);
		if (code != SQLITE_ROW || (m->count && sqlite3_column_int64(st, 1) / (int64_t)HOUR_NS != m->hour))
			break;
		count = sqlite3_column_int64(st, 2);
		if (m->count && (m->events + count > MERGE_EVENTS || m->count == MERGE_BLOCKS))
			break;
		m->oldest_ns = m->count ? m->oldest_ns : sqlite3_column_int64(st, 1);
		m->hour = sqlite3_column_int64(st, 1) / (int64_t)HOUR_NS;
		if (!m->count || sqlite3_column_int64(st, 3) < m->generation)
			m->generation = sqlite3_column_int64(st, 3);
		m->ids[m->count++] = sqlite3_column_int64(st, 0);
		m->events += count;
	}
	sqlite3_finalize(st);
	return code == SQLITE_ROW || code == SQLITE_DONE ? 0 : store_sqlite_errno(code);
}

/*
 * Finds the blocks of level @level that are to be merged: the oldest hour's. Level 0: when there are many, or the oldest is
 * older than a minute. Level 1: when the hour is over, and level 0 has nothing of it.
 */
static int find_blocks(struct store_writer *w, int level, struct merge *m)
{
	const int64_t young = (int64_t)(clock_unix_ns() - LEVEL0_AGE_NS); /* what is later is */
	int err = find_rows(w,
			    "SELECT id, from_ns, events, generation FROM blocks INDEXED BY blocks_time WHERE "
			    "level = ?1 ORDER BY from_ns",
			    level, m);

	if (err)
		return err;
	if (w->merge_all)
		return 0;
	if (level == 0 && m->count < ENOUGH_BLOCKS && m->events < MERGE_EVENTS / 2 && m->oldest_ns > young)
		m->count = 0;
	if (level == 1 && m->hour >= young / (int64_t)HOUR_NS)
		m->count = 0;
	return 0;
}

int store_merge_step(struct store_writer *w)
{
	struct merge m;
	int err = 0;

	for (int level = 0; level < 2 && !err; level++) {
		err = find_blocks(w, level, &m);
		if (err || !m.count)
			continue;
		w->has_work = true;
		return merge_blocks(w, &m, level + 1);
	}
	return err;
}

/* --- thinning --- */

struct thinning {
	struct store_writer *w;
	struct store_names *names;
	struct map sets; /* a set's number -> 1 + that without the thread */
};

static bool is_lost(const char *key)
{
	return !strcmp(key, "thread.id") || !strcmp(key, "thread.name");
}

/* *@ret: the number of @set without the thread. 0 or -errno. */
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
		if (!is_lost(labels->labels[i]->key))
			numbers[count++] = labels->labels[i]->attribute;
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

/* Thins the events; replace_blocks() calls it. */
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
	/* Only whole hours are thinned, or their blocks would become many small ones. */
	before_ns -= before_ns % HOUR_NS;
	err = find_rows(w,
			"SELECT id, from_ns, events, generation FROM blocks INDEXED BY blocks_time WHERE "
			"level < 3 AND to_ns < ?1 ORDER BY from_ns",
			before_ns < INT64_MAX ? (int64_t)before_ns : INT64_MAX, &m);
	if (err || !m.count)
		return err;
	err = replace_blocks(w, &m, THIN_LEVEL, change_events);
	if (err) {
		w->is_stale = true; /* numbers may have been given out */
		return err;
	}
	metric_add(w->s->metrics.thinned_events, (uint64_t)m.events);
	return 1;
}
