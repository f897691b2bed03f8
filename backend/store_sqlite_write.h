/* SPDX-License-Identifier: Apache-2.0 */
/* The writer among the files it is made of. All on its thread but what has a lock. */
#ifndef HEARTH_BACKEND_STORE_SQLITE_WRITE_H
#define HEARTH_BACKEND_STORE_SQLITE_WRITE_H

#include <stdatomic.h>

#include "backend/store_queue.h"
#include "backend/store_sqlite_keep.h"
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
	struct rollup *rollup; /* that is being made; NULL */
	uint64_t next_look_ns, next_prune_ns, last_checkpoint_ns;
	uint64_t generation_bytes; /* of blocks written since this generation began, or since the start */
	uint64_t start_unix_ns, start_boot_ns;
	/* under lock; task itself is set before it is asked for */
	int task; /* enum store_task or TASK_NAME */
	bool task_asked;
	int task_result;
	const struct store_given *task_names; /* of TASK_NAME */
	bool merge_all;			      /* whatever its age */
	struct log_limit commit_limit, work_limit, size_limit, free_limit;
	/* Samples from here on stay whatever the size, found at @newest_at_ns (CLOCK_MONOTONIC; 0: not yet). */
	int64_t newest_from_ns;
	uint64_t newest_at_ns, newest_bytes;
	uint64_t block_bytes, counted_ns; /* what blocks take, and when that was counted; less what was removed since */
	uint64_t held_bytes;		  /* not to grow beyond, on a full disk; 0: no such limit */
};

/* A transaction; in memory it holds the readers off. store_end() commits, or rolls back when @err is not 0. */
int store_begin(struct store_writer *w);
int store_end(struct store_writer *w, int err);

/* Brings the log back into the file, which then may shrink, and with @shrink cuts the log unless somebody reads in it; never
 * waits for readers. Not within a transaction. */
int store_checkpoint(struct store_writer *w, bool shrink);

/* Packs sorted events, at most COLUMN_MAX_VALUES, into a row. Within a transaction. */
int store_insert_block(struct store_writer *w, const struct event *events, size_t count, int level, int64_t generation);

/* Statements and tables of the writer's connection. */
int store_writer_prepare(struct store_writer *w);
void store_writer_unprepare(struct store_writer *w);

/* Moves the damaged file aside and begins a new one for writer and readers. 0 or -errno: then nothing can be written. */
int store_writer_replace_file(struct store_writer *w);

/* --- store_sqlite_prune.c --- */

/* At the start of the process, before somebody sets its clock. */
void store_prune_begin(struct store_writer *w);

/* One small step of retention: 1 when there is more to do, 0 or -errno. */
int store_prune_step(struct store_writer *w);

/* Whether the file system is fuller than retention wants it. */
bool store_disk_is_full(const struct store_sqlite *s);

/* --- store_sqlite_memory.c --- */

/* Says in the metrics what the store holds; the readers' part is left out while somebody reads. */
void store_tell_memory(struct store_writer *w);

/* --- store_sqlite_tasks.c --- */

/* Does what store_sqlite_task() asked for, if it did. */
void store_writer_task(struct store_writer *w);

/* Rows that become others: of one hour, oldest first, and what they hold. */
enum { MERGE_BLOCKS = 256 };

struct merge {
	int64_t ids[MERGE_BLOCKS];
	size_t count;
	int64_t events;
	int64_t generation;	 /* the oldest of theirs */
	int64_t hour, oldest_ns; /* since 1970; the first time */
};

/* Collects rows id, from_ns, events, generation of @sql with ?1 bound to @value, until a step's worth is there. */
int store_merge_find(struct store_writer *w, const char *sql, int64_t value, struct merge *m);

/* Puts blocks of @level in the place of @m's, their events changed by @change (NULL: as they were), in one transaction. */
int store_merge_blocks(struct store_writer *w, const struct merge *m, int level, int (*change)(struct store_writer *w));

/* --- store_sqlite_rollup.c --- */

#define STORE_ROLLUP_NS (10 * NSEC_PER_SEC) /* after the start */

/* A step of adding up an hour: 1 when there is more to do, 0 or -errno. */
int store_rollup_step(struct store_writer *w);

/* Forgets the one that is being made. */
void store_rollup_abandon(struct store_writer *w);

/* --- store_sqlite_thin.c --- */

/* Thins some of the oldest blocks that end before @before_ns: 1 when it did, 0: there are none, or -errno. */
int store_thin_step(struct store_writer *w, uint64_t before_ns);

/* --- store_sqlite_merge.c --- */

/* Reads the parts up to @last of the row that @st stands on, whose first columns they are. 0, -EBADMSG or -ENOMEM. */
int store_read_block(struct block *b, sqlite3_stmt *st, enum block_part last);

/* Whether there is more to merge at once; and one step of it, of checkpoints and of retention. */
int store_merge_step(struct store_writer *w);
bool store_writer_is_busy(const struct store_writer *w);
void store_writer_work(struct store_writer *w);

#endif
