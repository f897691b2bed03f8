/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store's one writer: a bounded queue, a thread that commits what came in groups, and acknowledgements after the commit.
 * Between groups the same thread merges blocks, brings the log back into the file and lets old data go, one small step at a
 * time (maintain.c).
 *
 * Invariant: a batch is acknowledged as kept only after the commit that has all of it; a commit that failed leaves nothing
 * of its batches, and their acks say why.
 */
#include "backend/store/sqlite/write.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"

enum {
	QUEUE_ITEMS = 64,
	GROUP_ITEMS = 32,
	GROUP_NS = 150 * 1000 * 1000,	 /* a group stays open so long at most: with its commit 200 ms */
	LINGER_NS = 10 * 1000 * 1000,	 /* how long it waits for company when nothing more is queued */
	IDLE_NS = 500 * 1000 * 1000,	 /* between looks for something to do while nothing comes */
	QUEUE_BYTES = 128 * 1024 * 1024, /* of profiles that wait */
	FAST_LEVEL = 1,			 /* zstd's, for blocks that live for a minute */
	BLOCK_EVENTS = 1 << 16,
	SAY_AGAIN_S = 600, /* that samples are not kept */
};

/* --- blocks --- */

int store_insert_block(struct store_writer *w, const struct event *events, size_t count, int level, int64_t generation)
{
	sqlite3_stmt *st = w->insert_block;
	uint64_t first = UINT64_MAX, last = 0;
	uint32_t first_link = UINT32_MAX, last_link = 0; /* the first less one, so that 0, which is none, is the largest */
	int code, err;

	for (size_t i = 0; i < count; i++) {
		first = events[i].time_ns < first ? events[i].time_ns : first;
		last = events[i].time_ns > last ? events[i].time_ns : last;
		first_link = events[i].link - 1 < first_link ? events[i].link - 1 : first_link;
		last_link = events[i].link > last_link ? events[i].link : last_link;
	}
	for (size_t i = 0; i < BLOCK_PARTS; i++)
		buf_reset(&w->parts[i]);
	err = block_pack(w->codec, events, count, w->parts);
	if (err)
		return err;
	sqlite3_bind_int64(st, 1, level);
	sqlite3_bind_int64(st, 2, (int64_t)first);
	sqlite3_bind_int64(st, 3, (int64_t)last);
	sqlite3_bind_int64(st, 4, (int64_t)count);
	sqlite3_bind_int64(st, 5, generation);
	sqlite3_bind_int64(st, 6, last_link ? first_link + 1ll : 0);
	sqlite3_bind_int64(st, 7, last_link);
	for (size_t i = 0; i < BLOCK_PARTS; i++)
		sqlite3_bind_blob64(st, (int)i + 8, w->parts[i].len ? (void *)w->parts[i].data : "", w->parts[i].len,
				    SQLITE_STATIC);
	for (size_t i = 0; i < BLOCK_PARTS; i++)
		w->generation_bytes += level ? w->parts[i].len : 0;
	code = sqlite3_step(st);
	sqlite3_reset(st);
	return store_sqlite_errno(code);
}

static int compare_hours(const void *a, const void *b)
{
	uint64_t x = ((const struct event *)a)->time_ns / HOUR_NS, y = ((const struct event *)b)->time_ns / HOUR_NS;

	return x < y ? -1 : x > y;
}

/* Writes the group's events as blocks, none of which crosses the end of an hour. */
static int write_events(struct store_writer *w)
{
	struct event *events = w->keep.events;
	size_t count = w->keep.event_count, end;
	bool is_one_hour = true;
	int err = 0;

	for (size_t i = 1; i < count && is_one_hour; i++)
		is_one_hour = events[i].time_ns / HOUR_NS == events[0].time_ns / HOUR_NS;
	if (!is_one_hour)
		qsort(events, count, sizeof(*events), compare_hours);
	for (size_t start = 0; start < count && !err; start = end) {
		end = start + 1;
		while (end < count && end - start < BLOCK_EVENTS &&
		       (is_one_hour || events[end].time_ns / HOUR_NS == events[start].time_ns / HOUR_NS))
			end++;
		events_sort(events + start, end - start);
		err = store_insert_block(w, events + start, end - start, 0, w->keep.generation);
	}
	return err;
}

/* --- groups --- */

static int write_group(struct store_writer *w, struct store_item *const *items, size_t count)
{
	int err = store_begin(w->s);

	w->keep.event_count = 0;
	column_codec_set_level(w->codec, FAST_LEVEL);
	for (size_t i = 0; i < count && !err; i++)
		err = keep_profiles(&w->keep, items[i]->p);
	if (!err)
		err = keep_write(&w->keep);
	if (!err)
		err = write_events(w);
	return store_end(w->s, err);
}

/* Recovers from a failure: numbers given out in the transaction become free again; a damaged file is replaced. 0: try again.
 */
static int recover(struct store_writer *w, int err)
{
	if (err != -EBADMSG && w->insert_block) {
		int again = keep_reload(&w->keep);

		if (again != -EBADMSG) {
			w->is_stale = again != 0;
			return err;
		}
	}
	return store_writer_replace_file(w);
}

/* Keeps the items. 0 or -errno: then nothing of them is kept. */
static int keep_group(struct store_writer *w, struct store_item **items, size_t count)
{
	int err = w->s->stuck ? w->s->stuck : w->s->is_reserve_used ? -ENOSPC : 0;

	if (err)
		return err;
	err = w->is_stale ? recover(w, -EIO) : 0;
	if (w->is_stale)
		return err;
	err = write_group(w, items, count);
	return err && recover(w, err) == 0 ? write_group(w, items, count) : err;
}

/* --- a disk that does not take them --- */

static bool is_of_disk(int err)
{
	return store_is_closed_disk(err) || err == -EIO;
}

static const char *advice(int err)
{
	switch (err) {
	case -ENOSPC:
	case -EDQUOT:
		return "; make room there, or lower --keep-size: then samples are kept again";
	case -EROFS:
		return "; mount it for writing: then samples are kept again. If the kernel mounted it read-only for an "
		       "error "
		       "(dmesg), stop hearth first, and repair it";
	case -EIO:
		return "; the kernel's messages (dmesg) say what is wrong with the disk";
	default:
		return "";
	}
}

void store_writer_tell_refusing(const struct store_writer *w)
{
	metric_set(w->s->metrics.is_refusing, w->s->stuck || w->s->is_reserve_used || is_of_disk(w->failing));
}

/* Says once why samples are not kept, again when the reason is another or it lasts, and when they are. */
static void tell_outcome(struct store_writer *w, int err, uint64_t events)
{
	if (err && err != w->failing)
		w->commit_limit = (struct log_limit){ 0 };
	if (err)
		log_limited(&w->commit_limit, SAY_AGAIN_S * NSEC_PER_SEC, LOG_ERROR,
			    "cannot keep %" PRIu64 " samples in %s: %s%s", events, w->s->path, strerror(-err), advice(err));
	else if (w->failing)
		log_info("samples are kept again in %s; %" PRIu64 " were refused meanwhile", w->s->path, w->refused_events);
	w->refused_events = err ? w->refused_events + events : 0;
	w->failing = err;
	store_writer_tell_refusing(w);
}

static void commit_group(struct store_writer *w, struct store_item **items, size_t count)
{
	struct store_metrics *metrics = &w->s->metrics;
	int err = keep_group(w, items, count);
	uint64_t lost = 0;

	metric_add(err ? metrics->commit_errors : metrics->commits, 1);
	if (!err)
		metric_add(metrics->events, w->keep.event_count);
	for (size_t i = 0; i < count; i++)
		lost += items[i]->p->sample_events;
	if (err)
		metric_add(metrics->lost_events, lost);
	tell_outcome(w, err, lost);
	store_queue_settle(w->queue, items, count, err);
}

/* --- the thread --- */

static void *run_writer(void *arg)
{
	struct store_writer *w = arg;

	for (;;) {
		struct store_item *items[GROUP_ITEMS];
		size_t count = 0;
		uint64_t end, now = clock_mono_ns();
		struct store_item *item = store_queue_pop(w->queue, now + (store_writer_is_busy(w) ? 0 : IDLE_NS));

		if (item) {
			end = clock_mono_ns() + GROUP_NS;
			items[count++] = item;
			while (count < GROUP_ITEMS) {
				now = clock_mono_ns();
				item = store_queue_pop(w->queue, now + LINGER_NS < end ? now + LINGER_NS : end);
				if (!item)
					break;
				items[count++] = item;
			}
			commit_group(w, items, count);
		} else if (atomic_load(&w->is_ending)) {
			return NULL;
		}
		store_maintain(w);
	}
}

static int refuse(struct sink *sink, struct profiles *p, struct ack *ack)
{
	(void)sink, (void)p, (void)ack;
	return -EROFS;
}

static void free_refusing(struct sink *sink)
{
	(void)sink;
}

int store_writer_sink(struct store *store, struct sink **ret)
{
	static const struct sink_ops refusing_ops = {
		.name = "store", .durable = true, .consume = refuse, .free = free_refusing
	};
	static struct sink refusing = { &refusing_ops };
	struct store_writer *w = store_sqlite_of(store)->writer;

	if (w)
		return store_queue_sink(w->queue, "store", ret);
	*ret = &refusing;
	return 0;
}

/* --- start and stop --- */

int store_writer_prepare(struct store_writer *w)
{
	int err, code;

	code = sqlite3_prepare_v3(
		w->s->write_db,
		"INSERT INTO blocks(level, from_ns, to_ns, events, generation, first_link, last_link, head, stacks,"
		" cells, cpus, labels, weights, times, links)"
		" VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
		-1, SQLITE_PREPARE_PERSISTENT, &w->insert_block, NULL);
	err = store_sqlite_errno(code);
	return err ? err : keep_init(&w->keep, w->s->write_db, w->codec);
}

void store_writer_unprepare(struct store_writer *w)
{
	store_rollup_abandon(w);
	keep_fini(&w->keep);
	sqlite3_finalize(w->insert_block);
	w->insert_block = NULL;
}

static void writer_free(struct store_writer *w)
{
	store_writer_unprepare(w);
	for (size_t i = 0; i < BLOCK_PARTS; i++)
		buf_fini(&w->parts[i]);
	block_fini(&w->block);
	column_codec_free(w->codec);
	store_queue_free(w->queue);
	pthread_mutex_destroy(&w->lock);
	pthread_cond_destroy(&w->moved);
	free(w);
}

int store_writer_start(struct store_sqlite *s)
{
	struct store_writer *w = calloc(1, sizeof(*w));
	int err = -ENOMEM;

	if (!w)
		return -ENOMEM;
	w->s = s;
	w->has_merged = true;
	w->rollup_ns = clock_mono_ns() + STORE_ROLLUP_NS;
	w->pruned_hour = -1;
	store_prune_begin(w);
	pthread_mutex_init(&w->lock, NULL);
	thread_cond_init(&w->moved);
	w->codec = column_codec_new(FAST_LEVEL);
	if (w->codec && !store_queue_new(QUEUE_ITEMS, QUEUE_BYTES, s->metrics.registry, &w->queue)) {
		block_init(&w->block, w->codec);
		w->is_stale = s->stuck != 0;
		err = s->stuck ? 0 : store_writer_prepare(w);
		if (err == -EBADMSG)
			err = store_writer_replace_file(w);
	}
	if (!err)
		err = thread_start(&w->thread, "store", run_writer, w);
	if (err)
		writer_free(w);
	else
		s->writer = w;
	return err;
}

void store_writer_stop(struct store_sqlite *s)
{
	if (!s->writer)
		return;
	atomic_store(&s->writer->is_ending, true);
	store_queue_close(s->writer->queue);
	pthread_join(s->writer->thread, NULL);
	writer_free(MOVE(s->writer));
}
