/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the writer does between commits. Blocks of commits (level 0) are merged by the minute into blocks of level 1, and
 * those of an hour that is over into level 2: fewer and larger blocks are smaller and faster. A merge reads some blocks,
 * sorts their events together and puts new blocks in their place, in one transaction of a bounded number of events, so that
 * it holds up the next commit for tens of milliseconds at most.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/store_sqlite_write.h"
#include "base/cleanup.h"
#include "base/clock.h"

enum {
	MERGE_EVENTS = 1 << 16,	 /* of one step: 8 MB while it lasts */
	SPLIT_EVENTS = 1 << 13,	 /* a block ends with the series that has so many in it */
	ENOUGH_BLOCKS = 32,	 /* of level 0 before they are merged at once */
	CHECKPOINT_PAGES = 1000, /* of the log */
};

#define LOOK_NS	      (2 * NSEC_PER_SEC)
#define PRUNE_NS      (10 * NSEC_PER_SEC)
#define LEVEL0_AGE_NS (60 * NSEC_PER_SEC)

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
			/* The row is found, its content is not what was written: it goes, the rest stays. */
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

static int raise_level(struct store_writer *w, const struct merge *m, int level)
{
	char sql[96];

	snprintf(sql, sizeof(sql), "UPDATE blocks SET level = %d WHERE id = %" PRId64, level, m->ids[0]);
	return store_exec(w->s->write_db, sql);
}

int store_merge_blocks(struct store_writer *w, const struct merge *m, int level, int (*change)(struct store_writer *w))
{
	int err = store_begin(w);

	if (err)
		return err;
	column_codec_set_level(w->codec, STORE_DENSE_LEVEL);
	err = read_blocks(w, m);
	err = err || !change ? err : change(w);
	err = err ? err : delete_blocks(w, m);
	err = err ? err : write_blocks(w, level, m->generation);
	err = store_end(w, err);
	keep_forget_events(&w->keep);
	block_fini(&w->block);
	block_init(&w->block, w->codec);
	metric_add(w->s->metrics.merges, !err);
	w->has_merged |= level > 1;
	return err;
}

/* One block alone is only said to be of the next level, when it is packed densely already. */
static int merge_blocks(struct store_writer *w, const struct merge *m, int level)
{
	int err;

	if (m->count != 1 || level == 1)
		return store_merge_blocks(w, m, level, NULL);
	w->has_merged |= level > 1;
	err = store_begin(w);
	return err ? err : store_end(w, raise_level(w, m, level));
}

int store_merge_find(struct store_writer *w, const char *sql, int64_t value, struct merge *m)
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
 * What of level @level is to be merged: the oldest hour's blocks. Level 0: when there are many, or the oldest is older than
 * a minute. Level 1: when the hour is over, and level 0 has nothing of it.
 */
static int find_blocks(struct store_writer *w, int level, struct merge *m)
{
	int64_t now = (int64_t)clock_unix_ns();
	int err = store_merge_find(w,
				   "SELECT id, from_ns, events, generation FROM blocks INDEXED BY blocks_time WHERE "
				   "level = ?1 ORDER BY from_ns",
				   level, m);

	if (err)
		return err;
	if (w->merge_all)
		return 0;
	if (level == 0 && m->count < ENOUGH_BLOCKS && m->events < MERGE_EVENTS / 2 &&
	    m->oldest_ns + (int64_t)LEVEL0_AGE_NS > now)
		m->count = 0;
	if (level == 1 && (m->hour + 1) * (int64_t)HOUR_NS + (int64_t)LEVEL0_AGE_NS > now)
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

int store_checkpoint(struct store_writer *w, bool shrink)
{
	int in_log = 0, moved = 0;
	int code;

	if (shrink)
		sqlite3_busy_timeout(w->s->write_db, 0);
	code = sqlite3_wal_checkpoint_v2(w->s->write_db, NULL,
					 shrink ? SQLITE_CHECKPOINT_TRUNCATE : SQLITE_CHECKPOINT_PASSIVE, &in_log, &moved);
	if (shrink)
		sqlite3_busy_timeout(w->s->write_db, STORE_BUSY_MS);
	return code == SQLITE_BUSY ? 0 : store_sqlite_errno(code);
}

bool store_writer_is_busy(const struct store_writer *w)
{
	return w->has_work;
}

void store_writer_work(struct store_writer *w)
{
	uint64_t now = clock_mono_ns();
	int err;

	if (!w->has_work && now < w->next_look_ns)
		return;
	w->has_work = false;
	w->next_look_ns = now + LOOK_NS;
	err = store_merge_step(w);
	if (!err && !w->s->in_memory)
		err = store_checkpoint(w, false);
	if (now >= w->next_prune_ns)
		store_tell_memory(w);
	if (!err && now >= w->next_prune_ns) {
		err = store_prune_step(w);
		w->has_work |= err > 0;
		w->next_prune_ns = err > 0 ? 0 : now + PRUNE_NS;
		err = err > 0 ? 0 : err;
	}
	if (!err && !w->has_work && now >= w->rollup_ns && !store_disk_is_full(w->s)) {
		err = store_rollup_step(w);
		w->has_work = err > 0;
		err = err > 0 ? 0 : err;
	}
	if (err == -EBADMSG)
		w->is_stale = store_writer_replace_file(w) != 0;
	else if (err)
		log_limited(&w->work_limit, 60 * NSEC_PER_SEC, LOG_WARN, "cannot merge blocks in %s: %s", w->s->path,
			    strerror(-err));
}
