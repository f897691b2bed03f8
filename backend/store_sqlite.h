/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of the SQLite store among themselves; others see backend/store.h alone. The schema, with what every column
 * means, stands in store_sqlite_schema.c and docs/store.md.
 *
 * Two connections: the writer thread's, which alone writes, and the readers', used under @read_lock by one question at a
 * time. A store in memory has one connection for both; there the writer takes @read_lock around its transactions too.
 * Nothing else is shared: the reader keeps names of its own, read as they are met.
 */
#ifndef HEARTH_BACKEND_STORE_SQLITE_H
#define HEARTH_BACKEND_STORE_SQLITE_H

#include <pthread.h>
#include <sqlite3.h>

#include "backend/store.h"
#include "backend/store_block.h"
#include "base/metrics.h"

enum {
	STORE_SCHEMA_VERSION = 3,
	STORE_BUSY_MS = 5000, /* a connection waits for another one's lock */
};

struct store_names;
struct store_writer;

struct store_sqlite {
	struct store store;
	sqlite3 *write_db; /* NULL when read only */
	sqlite3 *read_db;
	bool in_memory; /* read_db is write_db */
	int lock_fd;	/* of the folder's lock file; -1 */
	char *place, *path;
	struct store_config config;
	pthread_mutex_t read_lock;   /* recursive: there are questions within questions */
	struct store_names *names;   /* reader's */
	struct column_codec *codec;  /* reader's */
	struct block block;	     /* reader's */
	struct store_writer *writer; /* NULL when read only */
	struct store_metrics {
		struct metrics *registry;
		struct metric *events, *commits, *commit_errors, *lost_events, *moved_aside, *damaged_blocks, *pruned_events,
			*disk_lacks, *thinned_events;
		struct metric *merges, *bytes, *queue_bytes;
	} metrics;
};

static inline struct store_sqlite *store_sqlite_of(struct store *s)
{
	return (struct store_sqlite *)s;
}

/* --- store_sqlite_schema.c: files, versions --- */

/* Opens what config names: makes the folder, takes the lock, makes or migrates the schema. 0 or -errno with @err filled. */
int store_files_open(struct store_sqlite *s, struct store_error *err);
void store_files_close(struct store_sqlite *s);

/* Moves the damaged file aside and opens a new one for both connections; nothing of the old ones may be in use. */
int store_files_replace(struct store_sqlite *s, struct store_error *err);

/* On disk, the log included; or in memory. */
uint64_t store_bytes(struct store_sqlite *s, sqlite3 *db);

/* SQLite's result code as -errno. */
int store_sqlite_errno(int code);

/* Runs statements without results. 0 or -errno. */
int store_exec(sqlite3 *db, const char *sql);

/* One integer; @fallback when there is no row or it is NULL. 0 or -errno. */
int store_get_int(sqlite3 *db, const char *sql, int64_t fallback, int64_t *ret);

/* --- store_sqlite_write.c: the writer thread and its sink --- */

int store_writer_start(struct store_sqlite *s);
void store_writer_stop(struct store_sqlite *s); /* after what is queued was committed */
int store_writer_sink(struct store *s, struct sink **ret);

/* --- store_sqlite_query.c, store_sqlite_labels.c, store_sqlite_export.c: the questions of store.h --- */

int store_sum_stacks(struct store *s, const struct store_selection *sel, const char *by,
		     int (*fn)(void *arg, const char *group, uint32_t node, int64_t weight, uint64_t events), void *arg);
int store_sum_times(struct store *s, const struct store_selection *sel, uint64_t step_ns, const char *by,
		    int (*fn)(void *arg, const char *group, uint32_t bucket, int64_t weight, uint64_t events), void *arg);
int store_labels(struct store *s, const struct store_selection *sel, int (*fn)(void *arg, const char *label), void *arg);
int store_series(struct store *s, const struct store_selection *sel,
		 int (*fn)(void *arg, const struct key_values *labels, int64_t weight, uint64_t events), void *arg);
int store_label_values(struct store *s, const struct store_selection *sel, const char *label,
		       int (*fn)(void *arg, const char *value, int64_t weight, uint64_t events), void *arg);
int store_kinds(struct store *s, const struct store_selection *sel, int (*fn)(void *arg, const struct store_kind *kind),
		void *arg);
int store_executables(struct store *s, const struct store_selection *sel,
		      int (*fn)(void *arg, const struct store_executable *e), void *arg);
int store_export(struct store *s, const struct store_selection *sel, int (*fn)(void *arg, struct profiles *p), void *arg);

#endif
