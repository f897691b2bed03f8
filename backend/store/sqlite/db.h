/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The SQLite store's connections, and the transactions on them: below all that reads, writes and tidies. The schema, with
 * what every column means, stands in schema.c and docs/store.md.
 *
 * Two connections: the writer thread's, which alone writes, and the readers', used under @read_lock by one question at a
 * time. A store in memory has one connection for both; there the writer takes @read_lock around its transactions too.
 * Nothing else is shared: the reader keeps names of its own, read as they are met.
 *
 * Invariants: transactions begin and end in db.c alone. The file has room for all that the log has: a transaction is
 * committed only after the file was made as long as it needs, so bringing the log back takes no room, however full the disk
 * is meanwhile.
 */
#ifndef HEARTH_BACKEND_STORE_SQLITE_DB_H
#define HEARTH_BACKEND_STORE_SQLITE_DB_H

#include <pthread.h>
#include <sqlite3.h>

#include "backend/store/store.h"
#include "backend/store/block.h"
#include "base/log.h"
#include "base/metrics.h"

enum { STORE_BUSY_MS = 5000 /* a connection waits for another one's lock */ };

struct store_names;
struct store_writer;

struct store_sqlite {
	struct store store;
	sqlite3 *write_db; /* NULL when read only */
	sqlite3 *read_db;
	bool is_writing; /* a transaction of the writer is open */
	bool in_memory;	 /* read_db is write_db */
	int lock_fd;	 /* of the folder's lock file; -1 */
	/* The writer's, but while it opens. */
	int stuck; /* -errno: nothing can be written for now, read_db alone is open; 0 */
	struct log_limit stuck_limit;
	bool is_reserve_used;		/* no samples are taken until it is remade */
	_Atomic uint64_t reserve_bytes; /* of the reserve, where it is there */
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
		struct metric *merges, *bytes, *queue_bytes, *is_refusing;
	} metrics;
};

static inline struct store_sqlite *store_sqlite_of(struct store *s)
{
	return (struct store_sqlite *)s;
}

/* SQLite's result code as -errno. */
int store_sqlite_errno(int code);

/* Whether @err, an -errno, says that the disk takes no more: no room, a quota, or it is mounted read-only. */
bool store_is_closed_disk(int err);

/* Runs statements without results. 0 or -errno. */
int store_exec(sqlite3 *db, const char *sql);

/* Reads one integer; @fallback when there is no row or it is NULL. 0 or -errno. */
int store_get_int(sqlite3 *db, const char *sql, int64_t fallback, int64_t *ret);

/* The file as it is made of pages. */
struct store_pages {
	int64_t count, free; /* free ones are among the count */
	int64_t bytes;	     /* of one */
};

/* 0 or -errno. */
int store_count_pages(sqlite3 *db, struct store_pages *ret);

/* The bytes that the store takes on disk, the log and the reserve included; or in memory. */
uint64_t store_bytes(struct store_sqlite *s, sqlite3 *db);

/* --- transactions --- */

/* Lets the writer's file be made longer by store_end(): called once, when it was opened. */
void store_grow_by_pages(sqlite3 *db);

/* A transaction of the writer's connection; in memory it holds the readers off. 0 or -errno: then there is none, and
 * store_end() only hands the error on. */
int store_begin(struct store_sqlite *s);

/* Commits, or rolls back when @err is not 0. @err, or 0 or -errno of the commit, which is rolled back then; -ENOSPC also
 * when the file cannot become as long as the transaction makes it. */
int store_end(struct store_sqlite *s, int err);

/* Runs statements without results in a transaction of their own. 0 or -errno. */
int store_write(struct store_sqlite *s, const char *sql);

/* One snapshot for all that is read until store_read_end(), which ends it after an error, too. Holds the read lock. 0 or
 * -errno. */
int store_read_begin(struct store_sqlite *s);
void store_read_end(struct store_sqlite *s);

enum store_checkpoint {
	CHECKPOINT_PASSIVE, /* never waits for readers */
	CHECKPOINT_SHRINK,  /* nor does this, and it cuts the log unless somebody reads in it */
	CHECKPOINT_WAIT,    /* waits for readers for STORE_BUSY_MS, to cut the log */
};

/* Brings the log back into the file, which then may shrink. Not within a transaction. 0, also when readers were in the way,
 * or -errno; -ENOSPC: the file cannot grow so far, nothing was done. */
int store_checkpoint(struct store_sqlite *s, enum store_checkpoint how);

#endif
