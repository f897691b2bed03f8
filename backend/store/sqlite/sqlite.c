/* SPDX-License-Identifier: Apache-2.0 */
/* The SQLite store as others see it: opening, closing, numbers to names, and its status. */
#include "backend/store/sqlite/sqlite.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/store/sqlite/names.h"
#include "backend/store/sqlite/query.h"
#include "backend/store/sqlite/reserve.h"
#include "backend/store/sqlite/schema.h"
#include "backend/store/sqlite/write.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"

#define KEEP_AGE_NS (7ull * 24 * 3600 * NSEC_PER_SEC)
#define KEEP_BYTES  (2ull << 30)

enum { READ_LEVEL = 1 }; /* readers compress nothing */

static uint32_t sqlite_node_count(struct store *store)
{
	struct store_sqlite *s = store_sqlite_of(store);
	int err = 0;
	uint32_t count;

	pthread_mutex_lock(&s->read_lock);
	count = names_node_count(s->names, &err);
	pthread_mutex_unlock(&s->read_lock);
	return count;
}

static int sqlite_nodes(struct store *store, uint32_t first, uint32_t count, struct store_node *ret)
{
	struct store_sqlite *s = store_sqlite_of(store);
	int err;

	pthread_mutex_lock(&s->read_lock);
	err = names_nodes(s->names, first, count, ret);
	pthread_mutex_unlock(&s->read_lock);
	return err;
}

static int sqlite_frame(struct store *store, uint32_t frame, struct store_frame *ret)
{
	struct store_sqlite *s = store_sqlite_of(store);
	int err;

	pthread_mutex_lock(&s->read_lock);
	err = names_store_frame(s->names, frame, ret);
	pthread_mutex_unlock(&s->read_lock);
	return err;
}

static int sqlite_bare_frames(struct store *store, uint32_t from, uint32_t *next_ret,
			      int (*fn)(void *arg, const struct store_frame *frame), void *arg)
{
	struct store_sqlite *s = store_sqlite_of(store);
	int64_t first, last, i;
	int err;

	pthread_mutex_lock(&s->read_lock);
	err = store_get_int(s->read_db, "SELECT min(first) FROM frames", 1, &first);
	err = err ? err : store_get_int(s->read_db, "SELECT max(first + count) FROM frames", 1, &last);
	i = err || (first < from && from <= last) ? from : first; /* in a new file numbers begin anew */
	for (; !err && i < last; i++) {
		const struct frame_row *row = names_frame(s->names, (uint32_t)i, &err);
		struct store_frame frame;

		if (!row || row->function || !row->mapping)
			continue;
		err = names_store_frame(s->names, (uint32_t)i, &frame);
		if (!err && *frame.build_id)
			err = fn(arg, &frame);
		if (err)
			break;
	}
	*next_ret = (uint32_t)i;
	pthread_mutex_unlock(&s->read_lock);
	return err;
}

static void sqlite_rest(struct store *store, bool is_idle)
{
	struct store_sqlite *s = store_sqlite_of(store);

	pthread_mutex_lock(&s->read_lock);
	names_rest(s->names, is_idle);
	if (is_idle && !s->in_memory) {
		block_fini(&s->block);
		block_init(&s->block, s->codec);
		sqlite3_db_release_memory(s->read_db);
	}
	pthread_mutex_unlock(&s->read_lock);
}

/* --- status --- */

static int sqlite_status(struct store *store, struct store_status *ret)
{
	struct store_sqlite *s = store_sqlite_of(store);
	const struct {
		const char *sql;
		uint64_t *value;
	} numbers[] = {
		{ "SELECT sum(events) FROM blocks", &ret->events },
		{ "SELECT min(from_ns) FROM blocks", &ret->first_ns },
		{ "SELECT max(to_ns) FROM blocks", &ret->last_ns },
		{ "SELECT sum(count) FROM series", &ret->series },
		{ "SELECT first + count - 1 FROM nodes ORDER BY first DESC LIMIT 1", &ret->nodes },
		{ "SELECT first + count - 1 FROM frames ORDER BY first DESC LIMIT 1", &ret->frames },
	};
	int err = 0;

	*ret = (struct store_status){ .kind = "sqlite", .place = s->place, .folder = s->in_memory ? NULL : s->place };
	pthread_mutex_lock(&s->read_lock);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers) && !err; i++) {
		int64_t value;

		err = store_get_int(s->read_db, numbers[i].sql, 0, &value);
		*numbers[i].value = (uint64_t)value;
	}
	ret->bytes = store_bytes(s, s->read_db);
	pthread_mutex_unlock(&s->read_lock);
	return err;
}

static int sqlite_tables(struct store *store, int (*fn)(void *arg, const char *name, uint64_t bytes), void *arg)
{
	struct store_sqlite *s = store_sqlite_of(store);
	sqlite3_stmt *st = NULL;
	int code, err = 0;

	pthread_mutex_lock(&s->read_lock);
	code = sqlite3_prepare_v2(s->read_db, "SELECT name, sum(pgsize) FROM dbstat GROUP BY name ORDER BY 2 DESC", -1, &st,
				  NULL);
	while (code == SQLITE_OK && !err && sqlite3_step(st) == SQLITE_ROW)
		err = fn(arg, (const char *)sqlite3_column_text(st, 0), (uint64_t)sqlite3_column_int64(st, 1));
	sqlite3_finalize(st); /* a SQLite that was built without dbstat tells nothing */
	pthread_mutex_unlock(&s->read_lock);
	return err;
}

/* --- opening and closing --- */

static void sqlite_close(struct store *store)
{
	struct store_sqlite *s = store_sqlite_of(store);

	store_writer_stop(s);
	store_names_free(s->names);
	block_fini(&s->block);
	column_codec_free(s->codec);
	store_files_close(s);
	pthread_mutex_destroy(&s->read_lock);
	free(s);
}

static int sqlite_reader(struct store *store, struct store **ret)
{
	const struct store_sqlite *s = store_sqlite_of(store);
	struct store_config config = s->config;
	struct store_error why;

	if (s->in_memory)
		return -ENOTSUP;
	config.read_only = true;
	return store_sqlite_open(&config, NULL, ret, &why);
}

static const struct store_read_ops read_ops = {
	.sum_stacks = store_sum_stacks,
	.sum_times = store_sum_times,
	.labels = store_labels,
	.label_values = store_label_values,
	.series = store_series,
	.kinds = store_kinds,
	.executables = store_executables,
	.export = store_export,
	.rest = sqlite_rest,
	.node_count = sqlite_node_count,
	.nodes = sqlite_nodes,
	.frame = sqlite_frame,
	.status = sqlite_status,
	.bare_frames = sqlite_bare_frames,
	.reader = sqlite_reader,
};

static const struct store_write_ops write_ops = { .writer = store_writer_sink, .name_frames = store_name_frames };

static const struct store_maintain_ops maintain_ops = { .task = store_task, .tables = sqlite_tables };

static void register_metrics(struct store_metrics *m, struct metrics *registry)
{
	if (!registry)
		return;
	m->registry = registry;
	m->events = metrics_counter(registry, "hearth_store_events_total", NULL, "Sample events kept in the store.");
	m->commits = metrics_counter(registry, "hearth_store_commits_total", NULL, "Transactions that kept samples.");
	m->commit_errors = metrics_counter(registry, "hearth_store_commit_errors_total", NULL,
					   "Transactions that failed; their samples are in hearth_store_lost_events_total.");
	m->lost_events = metrics_counter(registry, "hearth_store_lost_events_total", NULL,
					 "Sample events that could not be written to the store.");
	m->merges = metrics_counter(registry, "hearth_store_merges_total", NULL, "Times that blocks were merged.");
	m->damaged_blocks = metrics_counter(registry, "hearth_store_damaged_blocks_total", NULL,
					    "Blocks met whose content is not what was written.");
	m->moved_aside = metrics_counter(registry, "hearth_store_moved_aside_total", NULL,
					 "Damaged store files that were moved aside.");
	m->pruned_events = metrics_counter(registry, "hearth_store_pruned_events_total", NULL,
					   "Sample events removed by age, size or for free disk.");
	m->disk_lacks = metrics_gauge(registry, "hearth_store_disk_lacks_bytes", NULL,
				      "What --keep-free lacks and removing samples would not bring.");
	m->thinned_events = metrics_counter(registry, "hearth_store_thinned_events_total", NULL,
					    "Samples whose times became minutes, without cpu and thread.");
	m->is_refusing = metrics_gauge(registry, "hearth_store_is_refusing", NULL,
				       "1 while the disk is full, or not to be written, and samples are refused for it.");
	m->queue_bytes = metrics_gauge(registry, "hearth_store_queue_bytes", NULL,
				       "Profiles that wait to be kept, or are being kept.");
	m->bytes = metrics_gauge(registry, "hearth_store_bytes", NULL, "Size of the store with its log.");
}

int store_sqlite_open(const struct store_config *config, struct metrics *metrics, struct store **ret,
		      struct store_error *err)
{
	struct store_sqlite *s = calloc(1, sizeof(*s));
	int code = -ENOMEM;

	err->message[0] = '\0';
	if (!s || thread_lock_init_recursive(&s->read_lock)) {
		free(s);
		snprintf(err->message, sizeof(err->message), "cannot open the store: %s", strerror(ENOMEM));
		return -ENOMEM;
	}
	s->store.read = &read_ops;
	s->store.write = &write_ops;
	s->store.maintain = &maintain_ops;
	s->store.close = sqlite_close;
	s->config = *config;
	s->config.keep_age_ns = config->keep_age_ns ? config->keep_age_ns : KEEP_AGE_NS;
	s->config.keep_bytes = config->keep_bytes ? config->keep_bytes : KEEP_BYTES;
	s->lock_fd = -1;
	register_metrics(&s->metrics, metrics);
	s->codec = column_codec_new(READ_LEVEL);
	if (s->codec) {
		block_init(&s->block, s->codec);
		code = store_names_new(s, &s->read_db, &s->codec, &s->names);
	}
	if (!code)
		code = store_files_open(s, err);
	s->config.place = s->place;
	if (!code && !config->read_only)
		code = store_writer_start(s);
	if (code) {
		if (!err->message[0])
			snprintf(err->message, sizeof(err->message), "cannot open the store %s: %s", config->place,
				 strerror(-code));
		sqlite_close(&s->store);
		return code;
	}
	*ret = &s->store;
	return 0;
}

/* The names of readers and the statements of the writer belong to connections that end here. */
static int change_files(struct store_writer *w, int (*change)(struct store_sqlite *s, struct store_error *err))
{
	struct store_sqlite *s = w->s;
	struct store_error why;
	int err;

	pthread_mutex_lock(&s->read_lock);
	names_detach(s->names);
	atomic_fetch_add(&s->store.names_version, 1); /* numbers of frames begin anew */
	store_writer_unprepare(w);
	err = change(s, &why);
	err = err ? err : s->stuck ? s->stuck : store_writer_prepare(w);
	w->is_stale = err != 0;
	pthread_mutex_unlock(&s->read_lock);
	if (err && !s->stuck)
		log_limited(&w->commit_limit, 10 * NSEC_PER_SEC, LOG_ERROR, "no profiles are kept: %s",
			    why.message[0] ? why.message : strerror(-err));
	return err;
}

int store_writer_replace_file(struct store_writer *w)
{
	return change_files(w, store_files_replace);
}

int store_writer_retry(struct store_writer *w)
{
	int err = store_may_be_written(w->s) ? change_files(w, store_files_reopen) : w->s->stuck;

	if (!err)
		log_info("%s can be written again", w->s->place);
	return err;
}
