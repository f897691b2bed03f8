/* SPDX-License-Identifier: Apache-2.0 */
/* The writer, for the files that it is made of. Everything belongs to its thread but what has a lock. */
#ifndef HEARTH_BACKEND_STORE_SQLITE_WRITE_H
#define HEARTH_BACKEND_STORE_SQLITE_WRITE_H

#include <stdatomic.h>

#include "backend/store/queue.h"
#include "backend/store/sqlite/keep.h"
#include "backend/store/store_maintain.h"
#include "backend/store/store_write.h"
#include "base/log.h"

enum { STORE_DENSE_LEVEL = 6 /* zstd's, for what stays */ };

/* Names given to addresses of one file. */
struct store_given {
	const char *build_id;
	const struct store_name *names;
	size_t count;
};

enum { TASK_NAME = STORE_CLEAR + 1 }; /* besides enum store_task */

struct store_writer {
	struct store_sqlite *s;
	pthread_t thread;
	struct store_queue *queue;
	_Atomic bool is_ending;
	pthread_mutex_t lock; /* the task */
	pthread_cond_t moved;
	struct keep keep;
	struct column_codec *codec;
	struct block block; /* being merged */
	struct buf parts[BLOCK_PARTS];
	sqlite3_stmt *insert_block;
	bool is_stale;	       /* the numbers in keep are not the store's: reload before the next write */
	bool has_work;	       /* the last step of work found more to do */
	bool has_merged;       /* there may be an hour to roll up */
	uint64_t rollup_ns;    /* not before: a process that prunes and ends has no time for it */
	int64_t pruned_hour;   /* retention has been there: its hours are not rolled up again and again */
	struct rollup *rollup; /* the one that is being made; NULL */
	uint64_t next_look_ns, next_prune_ns;
	uint64_t looked_bytes;	   /* the store's size when retention had nothing more to do */
	uint64_t generation_bytes; /* of blocks written since this generation began, or since the start */
	uint64_t start_unix_ns, start_boot_ns;
	int64_t start_newest_ns; /* of the samples then */
	bool is_asked;		 /* somebody wants retention to work now */
	int failing;		 /* -errno with which the last group was not kept; 0: it was */
	uint64_t refused_events; /* since that began */
	/* under lock; task itself is set before it is asked for */
	int task; /* enum store_task or TASK_NAME */
	bool task_asked;
	int task_result;
	const struct store_given *task_names; /* of TASK_NAME */
	bool merge_all;			      /* whatever its age */
	struct log_limit commit_limit, work_limit, size_limit, free_limit, doubt_limit;
	/* Samples from here on stay whatever the size, found at @newest_at_ns (CLOCK_MONOTONIC; 0: not yet). */
	int64_t newest_from_ns;
	uint64_t newest_at_ns, newest_bytes;
	uint64_t block_bytes, counted_ns; /* bytes of blocks, less those removed since counted_ns */
	uint64_t held_bytes;		  /* not to grow beyond, on a full disk; 0: no such limit */
	int little_part;		  /* of a step that has nothing but the reserve to work with: one of so many */
};

int store_writer_start(struct store_sqlite *s);
void store_writer_stop(struct store_sqlite *s); /* after what is queued was committed */
int store_writer_sink(struct store *s, struct sink **ret);
/* Says in metrics whether samples are refused because of the disk. Writer's thread. */
void store_writer_tell_refusing(const struct store_writer *w);

/* Packs sorted events, at most COLUMN_MAX_VALUES, into a row. Within a transaction. */
int store_insert_block(struct store_writer *w, const struct event *events, size_t count, int level, int64_t generation);

/* Statements and tables of the writer's connection. */
int store_writer_prepare(struct store_writer *w);
void store_writer_unprepare(struct store_writer *w);

/* Moves the damaged file aside and begins a new one for writer and readers. 0 or -errno: then nothing can be written. */
int store_writer_replace_file(struct store_writer *w);

/* Tries a store that is stuck: 0 when it can be written again, else -errno, as before. */
int store_writer_retry(struct store_writer *w);

/* --- prune.c --- */

/* At the start of the process, before somebody sets its clock. */
void store_prune_begin(struct store_writer *w);

/* One small step of retention: 1 when there is more to do, 0 or -errno. */
int store_prune_step(struct store_writer *w);

/* Whether the file system is fuller than retention wants it. */
bool store_disk_is_full(const struct store_sqlite *s);

/* --- rollup.c --- */

#define STORE_ROLLUP_NS (10 * NSEC_PER_SEC) /* after the start */

/* A step of adding up an hour: 1 when there is more to do, 0 or -errno. */
int store_rollup_step(struct store_writer *w);

/* Forgets the roll-up that is being made. */
void store_rollup_abandon(struct store_writer *w);

/* --- merge.c --- */

/* Reads the parts up to @last of the row that @st stands on, whose first columns they are. 0, -EBADMSG or -ENOMEM. */
int store_read_block(struct block *b, sqlite3_stmt *st, enum block_part last);

/* Merges some blocks, if there are such: w->has_work says whether it did. 0 or -errno. */
int store_merge_step(struct store_writer *w);

/* Thins some of the oldest blocks that end before @before_ns: 1 when it did, 0: there are none, or -errno. */
int store_thin_step(struct store_writer *w, uint64_t before_ns);

/* --- maintain.c --- */

/* Between groups: a step of what is to be done by itself, when it is time, and the task that was asked for. */
void store_maintain(struct store_writer *w);

/* Whether there is more to do at once. */
bool store_writer_is_busy(const struct store_writer *w);

/* The ops task and name_frames. Any thread: they wait for the writer's. */
int store_task(struct store *s, enum store_task task);
int store_name_frames(struct store *s, const char *build_id, const struct store_name *names, size_t count);

#endif
