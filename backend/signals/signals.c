/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of small records, its thread and its retention.
 *
 * Tables: `texts` (names, each once), `resources` (the attributes of a resource, each list once), `spans`, `logs`,
 * `exemplars`, whose rows are numbered as they came, so that the oldest have the least numbers. Times are Unix ns. Texts and
 * resources that no record has go when records go.
 */
#include "backend/signals/signals_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/store/sqlite/db.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/queue.h"
#include "base/thread.h"

enum {
	QUEUE_ITEMS = 1024,
	QUEUE_BYTES = 32 << 20,
	GROUP_ITEMS = 256, /* requests of one transaction */
	MEMORY_PART = 16,  /* of the limit, without a folder */
	CACHE_KIB = 4096,  /* of SQLite, for each connection */
	REMOVED_PART = 10, /* of the records, where there are too many bytes */
	SCHEMA_VERSION = 1,
	APPLICATION_ID = 0x68727467, /* "hrtg" */
};

#define LOOK_NS	     (10 * NSEC_PER_SEC)
#define GROUP_NS     (100 * NSEC_PER_MSEC)
#define LEAST_MEMORY (1ull << 20)

struct item {
	enum otlp_signal signal;
	size_t len;
	uint8_t data[];
};

static const char schema[] =
	"CREATE TABLE IF NOT EXISTS texts(id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE) STRICT;"
	"CREATE TABLE IF NOT EXISTS resources(id INTEGER PRIMARY KEY, service TEXT NOT NULL, labels BLOB NOT NULL UNIQUE) "
	"STRICT;"
	"CREATE TABLE IF NOT EXISTS spans(id INTEGER PRIMARY KEY, trace BLOB NOT NULL, span BLOB NOT NULL, parent BLOB,"
	" start_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL, kind INTEGER NOT NULL, status INTEGER NOT NULL,"
	" name INTEGER NOT NULL, resource INTEGER NOT NULL, thread_id INTEGER, thread_name INTEGER) STRICT;"
	"CREATE INDEX IF NOT EXISTS spans_trace ON spans(trace);"
	"CREATE INDEX IF NOT EXISTS spans_span ON spans(span);"
	"CREATE INDEX IF NOT EXISTS spans_end ON spans(end_ns);"
	"CREATE TABLE IF NOT EXISTS logs(id INTEGER PRIMARY KEY, time_ns INTEGER NOT NULL, trace BLOB, span BLOB,"
	" severity INTEGER NOT NULL, resource INTEGER NOT NULL, body TEXT NOT NULL) STRICT;"
	"CREATE INDEX IF NOT EXISTS logs_time ON logs(time_ns);"
	"CREATE INDEX IF NOT EXISTS logs_trace ON logs(trace) WHERE trace IS NOT NULL;"
	"CREATE TABLE IF NOT EXISTS exemplars(id INTEGER PRIMARY KEY, time_ns INTEGER NOT NULL, trace BLOB, span BLOB,"
	" value REAL NOT NULL, metric INTEGER NOT NULL, unit INTEGER NOT NULL, resource INTEGER NOT NULL) STRICT;"
	"CREATE INDEX IF NOT EXISTS exemplars_time ON exemplars(time_ns);"
	"CREATE INDEX IF NOT EXISTS exemplars_trace ON exemplars(trace) WHERE trace IS NOT NULL;";

static const struct {
	const char *name, *time;
} tables[SIGNAL_TABLES] = { { "spans", "end_ns" }, { "logs", "time_ns" }, { "exemplars", "time_ns" } };

/* --- the connections --- */

static bool in_memory(const struct signals *s)
{
	return !s->path;
}

static int open_db(const char *path, bool writes, sqlite3 **ret)
{
	const int flags = writes ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READWRITE;
	char setup[128];
	int code = sqlite3_open_v2(path, ret, flags | SQLITE_OPEN_NOMUTEX, NULL);

	if (code != SQLITE_OK && !writes) { /* a folder that may only be read */
		sqlite3_close(*ret);
		code = sqlite3_open_v2(path, ret, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL);
	}
	if (code == SQLITE_OK)
		code = sqlite3_busy_timeout(*ret, STORE_BUSY_MS);
	if (code != SQLITE_OK) {
		sqlite3_close(MOVE(*ret));
		return store_sqlite_errno(code);
	}
	snprintf(setup, sizeof(setup), "PRAGMA cache_size = -%d; PRAGMA temp_store = MEMORY;%s", CACHE_KIB,
		 writes ? "" : " PRAGMA query_only = 1;");
	return store_exec(*ret, setup);
}

/* The file exists with mode 0600 before SQLite opens it, as the store's does. */
static int make_file(const char *path)
{
	AUTO(buf_fini) struct buf folder = BUF_EMPTY;
	AUTO_CLOSE int fd = -1;

	buf_append(&folder, path, (size_t)(strrchr(path, '/') - path));
	(void)mkdir(buf_text(&folder), 0700); /* beside ClickHouse nobody else has made it */
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	return fd < 0 ? -errno : 0;
}

static int check_version(sqlite3 *db)
{
	int64_t version, application;
	char text[128];
	int err = store_get_int(db, "PRAGMA user_version", 0, &version);

	err = err ? err : store_get_int(db, "PRAGMA application_id", 0, &application);
	if (err || (version && (version != SCHEMA_VERSION || application != APPLICATION_ID)))
		return err ? err : -EPROTO;
	snprintf(text, sizeof(text), "PRAGMA user_version = %d; PRAGMA application_id = %d", SCHEMA_VERSION, APPLICATION_ID);
	return store_exec(db, text);
}

static int open_writer(struct signals *s)
{
	int err = in_memory(s) ? 0 : make_file(s->path);

	err = err ? err : open_db(in_memory(s) ? ":memory:" : s->path, true, &s->write_db);
	if (!err && !in_memory(s))
		err = store_exec(s->write_db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"
					      "PRAGMA journal_size_limit = 4194304");
	err = err ? err : check_version(s->write_db);
	err = err ? err : store_exec(s->write_db, schema);
	err = err ? err : signals_prepare(s);
	if (err) {
		signals_unprepare(s);
		sqlite3_close(MOVE(s->write_db));
	}
	return err;
}

/* Opens for writing; what is damaged, or of another version, begins anew: these are records of days, which others have. */
static int begin_writing(struct signals *s)
{
	int err = s->write_db ? 0 : open_writer(s);

	if ((err == -EBADMSG || err == -EPROTO) && !in_memory(s)) {
		AUTO(buf_fini) struct buf aside = BUF_EMPTY;

		buf_printf(&aside, "%s.damaged", s->path);
		log_error("%s %s: it is moved aside as %s, and a new one begun", s->path,
			  err == -EBADMSG ? "is damaged" : "is of another version of hearth", buf_text(&aside));
		err = rename(s->path, buf_text(&aside)) ? -errno : open_writer(s);
	}
	return err;
}

sqlite3 *signals_reader(struct signals *s)
{
	pthread_mutex_lock(&s->read_lock);
	if (!s->read_db && !in_memory(s) && !access(s->path, F_OK) && open_db(s->path, false, &s->read_db))
		s->read_db = NULL;
	if (s->read_db)
		return s->read_db;
	pthread_mutex_unlock(&s->read_lock);
	return NULL;
}

void signals_reader_end(struct signals *s)
{
	pthread_mutex_unlock(&s->read_lock);
}

/* --- transactions --- */

/* In memory there is one connection, and so its readers wait. */
static int begin(struct signals *s)
{
	int err;

	if (s->config.store)
		return 0;
	if (in_memory(s))
		pthread_mutex_lock(&s->read_lock);
	err = begin_writing(s);
	if (!err && in_memory(s))
		s->read_db = s->write_db;
	err = err ? err : store_exec(s->write_db, "BEGIN IMMEDIATE");
	if (err && in_memory(s))
		pthread_mutex_unlock(&s->read_lock);
	return err;
}

static int end(struct signals *s, int err)
{
	if (s->config.store) { /* what was added before an error, too: it is whole */
		int commit_err = s->config.store->records->commit(s->config.store, s->config.age_ns, &s->is_ending);

		return err ? err : commit_err;
	}
	err = err ? err : store_exec(s->write_db, "COMMIT");
	if (err)
		(void)store_exec(s->write_db, "ROLLBACK");
	if (in_memory(s))
		pthread_mutex_unlock(&s->read_lock);
	return err;
}

/* --- retention --- */

/* Bytes in use; pages that are free will be used again. */
static uint64_t used_bytes(struct signals *s)
{
	struct store_pages pages;
	int err;

	if (in_memory(s))
		pthread_mutex_lock(&s->read_lock);
	err = store_count_pages(s->write_db, &pages);
	if (in_memory(s))
		pthread_mutex_unlock(&s->read_lock);
	return err ? 0 : (uint64_t)((pages.count - pages.free) * pages.bytes);
}

static uint64_t limit_bytes(const struct signals *s)
{
	const uint64_t part = s->config.bytes / MEMORY_PART;

	return !in_memory(s) ? s->config.bytes : part < LEAST_MEMORY ? LEAST_MEMORY : part;
}

static int remove_old(struct signals *s, uint64_t before_ns)
{
	int err = 0;

	for (size_t i = 0; i < SIGNAL_TABLES && !err; i++) {
		char text[128];

		snprintf(text, sizeof(text), "DELETE FROM %s WHERE %s < %lld", tables[i].name, tables[i].time,
			 (long long)before_ns);
		err = store_exec(s->write_db, text);
		metric_add(s->metrics.removed, err ? 0 : (uint64_t)sqlite3_changes(s->write_db));
	}
	return err;
}

/* Removes the part of each table that came first. */
static int remove_first(struct signals *s)
{
	int err = 0;

	for (size_t i = 0; i < SIGNAL_TABLES && !err; i++) {
		char text[192];

		snprintf(text, sizeof(text),
			 "DELETE FROM %s WHERE id <= (SELECT min(id) + (max(id) - min(id)) / %d FROM %s)", tables[i].name,
			 REMOVED_PART, tables[i].name);
		err = store_exec(s->write_db, text);
		metric_add(s->metrics.removed, err ? 0 : (uint64_t)sqlite3_changes(s->write_db));
	}
	return err;
}

static int remove_unused(struct signals *s)
{
	return store_exec(
		s->write_db,
		"DELETE FROM resources WHERE id NOT IN (SELECT resource FROM spans UNION SELECT resource FROM logs"
		" UNION SELECT resource FROM exemplars);"
		"DELETE FROM texts WHERE id NOT IN (SELECT name FROM spans UNION SELECT thread_name FROM spans"
		" WHERE thread_name IS NOT NULL UNION SELECT metric FROM exemplars UNION SELECT unit FROM exemplars)");
}

static void retain(struct signals *s)
{
	const uint64_t now_ns = clock_unix_ns();
	const bool is_large = used_bytes(s) > limit_bytes(s);
	int err;

	if (!is_large && !s->config.age_ns)
		return;
	err = begin(s);
	if (err)
		return;
	if (s->config.age_ns && s->config.age_ns < now_ns)
		err = remove_old(s, now_ns - s->config.age_ns);
	if (!err && is_large)
		err = remove_first(s);
	if (!err && is_large)
		err = remove_unused(s);
	err = end(s, err);
	if (err)
		log_limited(&s->limit, 60 * NSEC_PER_SEC, LOG_ERROR, "old spans and logs cannot be removed: %s",
			    strerror(-err));
	else if (is_large && used_bytes(s) > limit_bytes(s))
		s->look_ns = 0; /* again, after what waits */
}

static void look_after(struct signals *s)
{
	const uint64_t now_ns = clock_mono_ns();

	if (!s->write_db || now_ns < s->look_ns)
		return;
	s->look_ns = now_ns + LOOK_NS;
	retain(s);
	metric_set(s->metrics.bytes, used_bytes(s));
}

/* --- the thread --- */

static int keep_item(struct signals *s, const struct item *item, uint64_t *kept)
{
	struct otlp_other other;
	struct otlp_error why;
	int err = otlp_other_decode(item->signal, false, item->data, item->len, &other, &why);

	if (err)
		return err;
	err = signals_put(s, &other, kept);
	otlp_other_fini(&other);
	return err;
}

static void settle(struct signals *s, struct item **items, size_t count)
{
	pthread_mutex_lock(&s->lock);
	s->done += count;
	for (size_t i = 0; i < count; i++) {
		s->queued_bytes -= items[i]->len;
		free(items[i]);
	}
	pthread_cond_broadcast(&s->settled);
	pthread_mutex_unlock(&s->lock);
}

static void keep_group(struct signals *s, struct item **items, size_t count)
{
	uint64_t kept[OTLP_OTHERS] = { 0 };
	int err = begin(s);

	if (!err) {
		for (size_t i = 0; i < count && !err; i++)
			err = keep_item(s, items[i], &kept[items[i]->signal]);
		err = end(s, err);
	}
	for (size_t i = 0; i < OTLP_OTHERS && !err; i++)
		metric_add(s->metrics.kept[i], kept[i]);
	if (err) {
		metric_add(s->metrics.lost_write, count);
		log_limited(&s->limit, 60 * NSEC_PER_SEC, LOG_ERROR, "cannot keep spans and logs in %s: %s",
			    s->config.store ? "the store"
			    : s->path	    ? s->path
					    : "memory",
			    strerror(-err));
		if (err == -EBADMSG && s->write_db && !in_memory(s)) { /* looked at again when it is opened */
			signals_unprepare(s);
			sqlite3_close(MOVE(s->write_db));
		}
	}
	settle(s, items, count);
}

static void *run(void *arg)
{
	struct signals *s = arg;
	struct item *items[GROUP_ITEMS];

	for (;;) {
		size_t count = 0;
		uint64_t end_ns = clock_mono_ns() + LOOK_NS;

		while (count < GROUP_ITEMS && (items[count] = queue_pop(s->queue, end_ns)))
			end_ns = count++ ? end_ns : clock_mono_ns() + GROUP_NS;
		look_after(s);
		if (count)
			keep_group(s, items, count);
		else if (s->is_ending)
			return NULL;
	}
}

/* --- public --- */

static void register_metrics(struct signals *s, struct metrics *m)
{
	static const char name[] = "hearth_signals_kept_total",
			  help[] = "Spans, log records and exemplars that came in and were kept.",
			  lost[] = "hearth_signals_lost_requests_total",
			  lost_help[] = "Requests of other signals whose records could not be kept here.";

	if (!m)
		return;
	s->metrics.kept[OTLP_TRACES] = metrics_counter(m, name, "signal=\"traces\"", help);
	s->metrics.kept[OTLP_LOGS] = metrics_counter(m, name, "signal=\"logs\"", help);
	s->metrics.kept[OTLP_METRICS] = metrics_counter(m, name, "signal=\"metrics\"", help);
	s->metrics.incomplete = metrics_counter(
		m, "hearth_signals_incomplete_total", NULL,
		"Spans without sound ids and exemplars without a time, which nothing leads to "
		"and which are not kept.");
	s->metrics.lost_full = metrics_counter(m, lost, "reason=\"queue full\"", lost_help);
	s->metrics.lost_write = metrics_counter(m, lost, "reason=\"not written\"", lost_help);
	s->metrics.removed = metrics_counter(m, "hearth_signals_removed_total", NULL,
					     "Kept spans, log records and exemplars that made place, or were too old.");
	s->metrics.bytes = metrics_gauge(m, "hearth_signals_bytes", NULL, "What kept spans, logs and exemplars take.");
}

int signals_new(const struct signals_config *config, struct metrics *metrics, struct signals **ret)
{
	struct signals *s = calloc(1, sizeof(*s));
	int err = 0;

	if (!s)
		return -ENOMEM;
	s->config = *config;
	s->config.folder = NULL;
	pthread_mutex_init(&s->lock, NULL);
	pthread_mutex_init(&s->read_lock, NULL);
	thread_cond_init(&s->settled);
	register_metrics(s, metrics);
	s->queue = queue_new(QUEUE_ITEMS);
	if (!s->queue || (config->folder && !config->store && asprintf(&s->path, "%s/signals.db", config->folder) < 0))
		err = -ENOMEM;
	if (!err && !config->read_only) {
		err = thread_start(&s->thread, "signals", run, s);
		s->is_running = !err;
	}
	if (err) {
		signals_free(s);
		return err;
	}
	*ret = s;
	return 0;
}

void signals_free(struct signals *s)
{
	if (!s)
		return;
	if (s->is_running) {
		s->is_ending = true;
		queue_close(s->queue);
		pthread_join(s->thread, NULL);
	}
	if (s->queue)
		queue_free(s->queue);
	signals_unprepare(s);
	if (s->read_db != s->write_db)
		sqlite3_close(s->read_db);
	sqlite3_close(s->write_db);
	pthread_cond_destroy(&s->settled);
	pthread_mutex_destroy(&s->read_lock);
	pthread_mutex_destroy(&s->lock);
	free(s->path);
	free(s);
}

void signals_keep(struct signals *s, enum otlp_signal signal, const uint8_t *data, size_t len)
{
	struct item *item = s->is_running && len < QUEUE_BYTES ? malloc(sizeof(*item) + len) : NULL;
	int err = item ? 0 : -EAGAIN;

	if (item) {
		item->signal = signal;
		item->len = len;
		if (len)
			memcpy(item->data, data, len);
		pthread_mutex_lock(&s->lock);
		err = s->queued_bytes + len > QUEUE_BYTES ? -EAGAIN : queue_push(s->queue, item);
		if (!err) {
			s->pushed++;
			s->queued_bytes += len;
		}
		pthread_mutex_unlock(&s->lock);
	}
	if (!err)
		return;
	free(item);
	metric_add(s->metrics.lost_full, 1);
}

void signals_flush(struct signals *s)
{
	uint64_t wanted;

	pthread_mutex_lock(&s->lock);
	for (wanted = s->pushed; s->done < wanted;)
		pthread_cond_wait(&s->settled, &s->lock);
	pthread_mutex_unlock(&s->lock);
}

void signals_look(struct signals *s)
{
	s->look_ns = 0;
}

int signals_clear(struct signals *s)
{
	sqlite3 *db = NULL;
	int err;

	if (!s->is_running)
		return -EROFS;
	signals_flush(s);
	if (s->config.store)
		return s->config.store->records->clear(s->config.store);
	if (in_memory(s)) {
		db = signals_reader(s);
		err = db ? store_exec(db, "DELETE FROM spans; DELETE FROM logs; DELETE FROM exemplars;"
					  "DELETE FROM resources; DELETE FROM texts")
			 : 0;
		if (db)
			signals_reader_end(s);
		return err;
	}
	if (access(s->path, F_OK))
		return 0;
	err = open_db(s->path, true, &db);
	err = err ? err
		  : store_exec(db, "BEGIN IMMEDIATE; DELETE FROM spans; DELETE FROM logs; DELETE FROM exemplars;"
				   "DELETE FROM resources; DELETE FROM texts; COMMIT; VACUUM");
	sqlite3_close(db);
	return err;
}
