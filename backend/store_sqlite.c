/* SPDX-License-Identifier: Apache-2.0 */
/* The SQLite store as store.h's interface: opening, closing, numbers to names, and what it says of itself. */
#include "backend/store_sqlite.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "backend/store_sqlite_names.h"
#include "backend/store_sqlite_write.h"
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

static uint64_t file_bytes(const char *path, const char *suffix)
{
	char name[4096];
	struct stat st;

	snprintf(name, sizeof(name), "%s%s", path, suffix);
	return stat(name, &st) ? 0 : (uint64_t)st.st_size;
}

uint64_t store_bytes(struct store_sqlite *s, sqlite3 *db)
{
	int64_t pages = 0, size = 0;

	if (!s->in_memory)
		return file_bytes(s->path, "") + file_bytes(s->path, "-wal");
	if (store_get_int(db, "PRAGMA page_count", 0, &pages) || store_get_int(db, "PRAGMA page_size", 0, &size))
		return 0;
	return (uint64_t)(pages * size);
}

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

static const struct store_ops sqlite_ops = {
	.sum_stacks = store_sum_stacks,
	.sum_times = store_sum_times,
	.labels = store_labels,
	.label_values = store_label_values,
	.series = store_series,
	.kinds = store_kinds,
	.executables = store_executables,
	.export = store_export,
	.name_frames = store_sqlite_name_frames,
	.bare_frames = store_sqlite_bare_frames,
	.task = store_sqlite_task,
	.node_count = sqlite_node_count,
	.nodes = sqlite_nodes,
	.frame = sqlite_frame,
	.rest = sqlite_rest,
	.status = sqlite_status,
	.writer = store_writer_sink,
	.close = sqlite_close,
};

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
	s->store.ops = &sqlite_ops;
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
int store_writer_replace_file(struct store_writer *w)
{
	struct store_sqlite *s = w->s;
	struct store_error why;
	int err;

	pthread_mutex_lock(&s->read_lock);
	names_detach(s->names);
	atomic_fetch_add(&s->store.names_version, 1); /* numbers of frames begin anew */
	store_writer_unprepare(w);
	err = store_files_replace(s, &why);
	err = err ? err : store_writer_prepare(w);
	w->is_stale = err != 0;
	pthread_mutex_unlock(&s->read_lock);
	if (err)
		log_limited(&w->commit_limit, 10 * NSEC_PER_SEC, LOG_ERROR, "no profiles are kept: %s",
			    why.message[0] ? why.message : strerror(-err));
	return err;
}
