/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The work of the writer's thread between commits: steps of merging, of checkpoints, of retention and of rolling up, each
 * short, in this order; and work on the whole store that somebody asked for and waits for.
 *
 * Invariant: a step that fails leaves nothing half done, and the next commit does not wait for more than one step.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "backend/store/sqlite/names.h"
#include "backend/store/sqlite/write.h"
#include "base/clock.h"
#include "base/memory.h"

#define LOOK_NS	 (2 * NSEC_PER_SEC)
#define PRUNE_NS (10 * NSEC_PER_SEC)

enum { GROWN_BYTES = 1 << 20 };

/* --- by itself --- */

static size_t parts_bytes(const struct store_writer *w)
{
	size_t bytes = 0;

	for (size_t i = 0; i < BLOCK_PARTS; i++)
		bytes += w->parts[i].cap;
	return bytes;
}

/* Sets the metrics of the memory that the store holds; the readers' part is left out while somebody reads. */
static void tell_memory(struct store_writer *w)
{
	struct store_sqlite *s = w->s;
	struct metrics *m = s->metrics.registry;
	size_t numbers, buffers;

	keep_memory(&w->keep, &numbers, &buffers);
	memory_tell(m, "store numbers", numbers);
	memory_tell(m, "store writer",
		    buffers + column_codec_memory_bytes(w->codec) + block_memory_bytes(&w->block) + parts_bytes(w));
	memory_tell(m, "SQLite", (size_t)sqlite3_memory_used());
	metric_set(s->metrics.queue_bytes, store_queue_bytes(w->queue));
	if (pthread_mutex_trylock(&s->read_lock))
		return;
	memory_tell(m, "store names", store_names_memory_bytes(s->names));
	memory_tell(m, "store readers", column_codec_memory_bytes(s->codec) + block_memory_bytes(&s->block));
	pthread_mutex_unlock(&s->read_lock);
}

bool store_writer_is_busy(const struct store_writer *w)
{
	return w->has_work;
}

/* Whether the files have grown so much that retention must not wait for its time: a store that is fed fast would fill the
 * disk meanwhile. The log counts. */
static bool has_grown(const struct store_writer *w)
{
	const uint64_t reserve = w->s->reserve_bytes, least = reserve > GROWN_BYTES ? reserve : GROWN_BYTES;

	return !w->s->in_memory && !w->s->stuck && store_bytes(w->s, w->s->write_db) > w->looked_bytes + least;
}

/* Does a step of retention when it is time: also when merging finds no room, because retention makes some. */
static int work_on_retention(struct store_writer *w, uint64_t now)
{
	int done;

	if (now < w->next_prune_ns && !has_grown(w))
		return 0;
	tell_memory(w);
	done = store_prune_step(w);
	w->has_work |= done > 0;
	w->next_prune_ns = done > 0 ? 0 : now + PRUNE_NS;
	if (done <= 0)
		w->looked_bytes = store_bytes(w->s, w->s->write_db);
	return done > 0 ? 0 : done;
}

static int work_once(struct store_writer *w, uint64_t now)
{
	struct store_sqlite *s = w->s;
	int err = s->is_reserve_used ? 0 : store_merge_step(w), pruned;

	if (!err && !s->in_memory)
		err = store_checkpoint(s, s->is_reserve_used ? CHECKPOINT_SHRINK : CHECKPOINT_PASSIVE);
	if (err && err != -ENOSPC)
		return err;
	pruned = work_on_retention(w, now);
	err = err ? err : pruned;
	if (err || w->has_work || now < w->rollup_ns || s->is_reserve_used || store_disk_is_full(s))
		return err;
	err = store_rollup_step(w);
	w->has_work = err > 0;
	return err > 0 ? 0 : err;
}

static void work(struct store_writer *w)
{
	uint64_t now = clock_mono_ns();
	int err;

	if (!w->has_work && now < w->next_look_ns && !has_grown(w))
		return;
	w->has_work = false;
	w->next_look_ns = now + LOOK_NS;
	if (w->s->stuck)
		store_writer_retry(w);
	store_writer_tell_refusing(w);
	if (w->is_stale)
		return;
	err = work_once(w, now);
	if (err == -EBADMSG)
		w->is_stale = store_writer_replace_file(w) != 0;
	else if (err)
		log_limited(&w->work_limit, 60 * NSEC_PER_SEC, LOG_WARN, "cannot merge blocks in %s: %s", w->s->path,
			    strerror(-err));
}

/* --- as asked --- */

static int prune_all(struct store_writer *w)
{
	int more;

	w->is_asked = true;
	while ((more = store_prune_step(w)) > 0)
		;
	w->is_asked = false;
	return more;
}

static int merge_all(struct store_writer *w)
{
	int err = 0;

	w->merge_all = true;
	do {
		w->has_work = false;
		err = store_merge_step(w);
	} while (!err && w->has_work);
	w->merge_all = false;
	while (!err && (err = store_rollup_step(w)) > 0)
		err = 0;
	return err;
}

static int compact(struct store_writer *w)
{
	int err = prune_all(w);

	err = err ? err : merge_all(w);
	if (err)
		return err;
	if (w->s->in_memory)
		pthread_mutex_lock(&w->s->read_lock);
	err = store_exec(w->s->write_db, "VACUUM");
	if (w->s->in_memory)
		pthread_mutex_unlock(&w->s->read_lock);
	return err;
}

static int clear(struct store_writer *w)
{
	char sql[64];
	int err = store_begin(w->s);

	if (err)
		return err;
	err = store_exec(w->s->write_db, "DELETE FROM blocks");
	/* Numbers go on: readers may still have some in hand. */
	err = err ? err : keep_begin_generation(&w->keep, clock_unix_ns());
	for (int i = 0; i < KEPT_MAX && !err; i++) {
		snprintf(sql, sizeof(sql), "DELETE FROM %s", kept_tables[i]);
		err = store_exec(w->s->write_db, sql);
	}
	err = store_end(w->s, err);
	w->is_stale |= err != 0;
	return err ? err : compact(w);
}

static int give_names(struct store_writer *w)
{
	const struct store_given *given = w->task_names;
	sqlite3_stmt *st = NULL;
	int err = store_begin(w->s), code;

	if (err)
		return err;
	code = sqlite3_prepare_v2(w->s->write_db, "INSERT OR REPLACE INTO names VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)", -1, &st,
				  NULL);
	for (size_t i = 0; i < given->count && code == SQLITE_OK; i++) {
		const struct store_name *name = &given->names[i];

		sqlite3_bind_text(st, 1, given->build_id, -1, SQLITE_STATIC);
		sqlite3_bind_int64(st, 2, (int64_t)name->address);
		sqlite3_bind_text(st, 3, name->function, -1, SQLITE_STATIC);
		sqlite3_bind_text(st, 4, name->system_name, -1, SQLITE_STATIC);
		sqlite3_bind_text(st, 5, name->file, -1, SQLITE_STATIC);
		sqlite3_bind_int64(st, 6, name->line);
		sqlite3_bind_int64(st, 7, name->start_line);
		sqlite3_step(st);
		code = sqlite3_reset(st);
	}
	sqlite3_finalize(st);
	code = store_end(w->s, store_sqlite_errno(code));
	if (!code)
		atomic_fetch_add(&w->s->store.names_version, 1);
	return code;
}

/* Does the task that was asked for, if there is one. */
static void do_task(struct store_writer *w)
{
	static int (*const tasks[])(struct store_writer * w) = {
		[STORE_PRUNE] = prune_all, [STORE_MERGE] = merge_all, [STORE_COMPACT] = compact,
		[STORE_CLEAR] = clear,	   [TASK_NAME] = give_names,
	};
	int err;

	pthread_mutex_lock(&w->lock);
	if (!w->task_asked) {
		pthread_mutex_unlock(&w->lock);
		return;
	}
	pthread_mutex_unlock(&w->lock);
	err = w->s->stuck ? store_writer_retry(w) : 0;
	err = err ? err : tasks[w->task](w);
	if (!err && !w->s->in_memory)
		err = store_checkpoint(w->s, CHECKPOINT_WAIT);
	pthread_mutex_lock(&w->lock);
	w->task_asked = false;
	w->task_result = err;
	pthread_cond_broadcast(&w->moved);
	pthread_mutex_unlock(&w->lock);
}

static int run_task(struct store *store, int task, const struct store_given *names)
{
	struct store_writer *w = store_sqlite_of(store)->writer;
	int err;

	if (!w)
		return -EROFS;
	pthread_mutex_lock(&w->lock);
	while (w->task_asked)
		pthread_cond_wait(&w->moved, &w->lock);
	w->task = task;
	w->task_names = names;
	w->task_asked = true;
	while (w->task_asked)
		pthread_cond_wait(&w->moved, &w->lock);
	err = w->task_result;
	pthread_mutex_unlock(&w->lock);
	return err;
}

int store_task(struct store *store, enum store_task task)
{
	return run_task(store, task, NULL);
}

int store_name_frames(struct store *store, const char *build_id, const struct store_name *names, size_t count)
{
	const struct store_given given = { build_id, names, count };

	return count && *build_id ? run_task(store, TASK_NAME, &given) : -EINVAL;
}

void store_maintain(struct store_writer *w)
{
	work(w);
	do_task(w);
}
