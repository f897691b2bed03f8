/* SPDX-License-Identifier: Apache-2.0 */
/* Work on the whole store that somebody asked for: run by the writer's thread between commits, waited for by the caller.
 * And the check of everything in it, which only reads. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/store_sqlite_names.h"
#include "backend/store_sqlite_write.h"
#include "base/cleanup.h"
#include "base/clock.h"

/* --- tasks --- */

static int prune_all(struct store_writer *w)
{
	int more;

	while ((more = store_prune_step(w)) > 0)
		;
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
	if (!err && w->s->in_memory)
		pthread_mutex_lock(&w->s->read_lock);
	err = err ? err : store_exec(w->s->write_db, "VACUUM");
	if (w->s->in_memory)
		pthread_mutex_unlock(&w->s->read_lock);
	return err;
}

static int clear(struct store_writer *w)
{
	char sql[64];
	int err = store_begin(w);

	if (err)
		return err;
	err = store_exec(w->s->write_db, "DELETE FROM blocks");
	/* Numbers go on: readers may still have some in hand. */
	err = err ? err : keep_begin_generation(&w->keep, clock_unix_ns());
	for (int i = 0; i < KEPT_MAX && !err; i++) {
		snprintf(sql, sizeof(sql), "DELETE FROM %s", kept_tables[i]);
		err = store_exec(w->s->write_db, sql);
	}
	err = store_end(w, err);
	w->is_stale |= err != 0;
	return err ? err : compact(w);
}

static int give_names(struct store_writer *w)
{
	const struct store_given *given = w->task_names;
	sqlite3_stmt *st = NULL;
	int err = store_begin(w), code;

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
	code = store_end(w, store_sqlite_errno(code));
	if (!code)
		atomic_fetch_add(&w->s->store.names_version, 1);
	return code;
}

void store_writer_task(struct store_writer *w)
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
	err = tasks[w->task](w);
	if (!err && !w->s->in_memory) {
		int code = sqlite3_wal_checkpoint_v2(w->s->write_db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);

		err = code == SQLITE_BUSY ? 0 : store_sqlite_errno(code);
	}
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

int store_sqlite_task(struct store *store, enum store_task task)
{
	return run_task(store, task, NULL);
}

int store_sqlite_name_frames(struct store *store, const char *build_id, const struct store_name *names, size_t count)
{
	const struct store_given given = { build_id, names, count };

	return count && *build_id ? run_task(store, TASK_NAME, &given) : -EINVAL;
}

int store_sqlite_bare_frames(struct store *store, uint32_t from, uint32_t *next_ret,
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

/* --- verify --- */

struct verify {
	struct store_sqlite *s;
	int (*fn)(void *arg, const char *problem);
	void *arg;
	uint32_t nodes; /* that there are */
};

__attribute__((format(printf, 2, 3))) static int problem(const struct verify *v, const char *fmt, ...)
{
	char text[256];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	return v->fn(v->arg, text);
}

static int verify_pages(const struct verify *v)
{
	sqlite3_stmt *st = NULL;
	int code = sqlite3_prepare_v2(v->s->read_db, "PRAGMA integrity_check(20)", -1, &st, NULL), err = 0;

	while (code == SQLITE_OK || code == SQLITE_ROW) {
		const char *text;

		code = sqlite3_step(st);
		text = code == SQLITE_ROW ? (const char *)sqlite3_column_text(st, 0) : NULL;
		if (text && strcmp(text, "ok") != 0 && !err)
			err = problem(v, "%s", text);
	}
	sqlite3_finalize(st);
	code = store_sqlite_errno(code);
	return err ? err : code == -EBADMSG ? problem(v, "a page is damaged: %s", sqlite3_errmsg(v->s->read_db)) : code;
}

/* What the block refers to is there. @table and @id: which block it is. */
static int verify_references(const struct verify *v, const struct block *b, const char *table, int64_t id)
{
	int err = 0;

	for (uint32_t i = 0; i < b->series_count && !err; i++) {
		if (!names_series(v->s->names, b->series[i], &err) && err == -EBADMSG)
			err = problem(v, "%s %" PRId64 ": series %" PRIu32 " is missing", table, id, b->series[i]);
	}
	for (uint32_t i = 0; i < b->cell_count && !err; i++) {
		if (!names_set(v->s->names, b->cell_set[i], &err) && err == -EBADMSG)
			err = problem(v, "%s %" PRId64 ": set %" PRIu32 " is missing or broken", table, id, b->cell_set[i]);
	}
	for (uint32_t i = 0; i < b->run_count && !err; i++) {
		uint32_t node = b->run_stack[i];
		struct store_node row = { 0 };

		err = node < v->nodes ? names_nodes(v->s->names, node, 1, &row) : -EBADMSG;
		if (!err && !names_frame(v->s->names, row.frame, &err) && !err)
			err = -EBADMSG;
		if (err == -EBADMSG)
			return problem(v, "%s %" PRId64 ": stack %" PRIu32 " is missing or broken", table, id, node);
	}
	return err;
}

/* Rows of @sql: the parts up to @last, then an id and a number of events. */
static int verify_rows(const struct verify *v, const char *table, const char *sql, enum block_part last)
{
	struct block *b = &v->s->block;
	sqlite3_stmt *st = NULL;
	int code = sqlite3_prepare_v2(v->s->read_db, sql, -1, &st, NULL), err = 0;

	while (!err && (code == SQLITE_OK || code == SQLITE_ROW)) {
		int64_t id;
		int columns;

		code = sqlite3_step(st);
		if (code != SQLITE_ROW)
			break;
		columns = sqlite3_column_count(st);
		id = sqlite3_column_int64(st, columns - 2);
		err = store_read_block(b, st, last);
		if (!err && b->event_count != sqlite3_column_int64(st, columns - 1))
			err = -EBADMSG;
		err = err == -EBADMSG ? problem(v, "%s %" PRId64 " is damaged", table, id)
		      : err	      ? err
				      : verify_references(v, b, table, id);
	}
	sqlite3_finalize(st);
	code = err ? 0 : store_sqlite_errno(code);
	return code == -EBADMSG ? problem(v, "the table of %ss is damaged", table) : err ? err : code;
}

/* A roll-up has as many events as its hour's blocks. */
static int verify_hours(const struct verify *v)
{
	sqlite3_stmt *st = NULL;
	int code = sqlite3_prepare_v2(v->s->read_db,
				      "SELECT hour, sum(events), (SELECT coalesce(sum(b.events), 0) FROM blocks b WHERE "
				      "b.from_ns >= hour * 3600000000000"
				      " AND b.from_ns < (hour + 1) * 3600000000000) AS there FROM rollups GROUP BY hour "
				      "HAVING sum(events) != there",
				      -1, &st, NULL);
	int err = 0;

	while (!err && (code == SQLITE_OK || code == SQLITE_ROW)) {
		code = sqlite3_step(st);
		if (code == SQLITE_ROW)
			err = problem(v, "the roll-up of hour %lld has %lld samples of %lld", sqlite3_column_int64(st, 0),
				      sqlite3_column_int64(st, 1), sqlite3_column_int64(st, 2));
	}
	sqlite3_finalize(st);
	return err ? err : store_sqlite_errno(code);
}

int store_sqlite_verify(struct store *store, int (*fn)(void *arg, const char *problem), void *arg)
{
	struct verify v = { store_sqlite_of(store), fn, arg, 0 };
	int err;

	pthread_mutex_lock(&v.s->read_lock);
	err = store_exec(v.s->read_db, "BEGIN");
	err = err ? err : verify_pages(&v);
	if (!err)
		v.nodes = names_node_count(v.s->names, &err);
	err = err ? err
		  : verify_rows(&v, "block",
				"SELECT head, stacks, cells, cpus, labels, weights, times, links, id, events FROM blocks",
				BLOCK_LINKS);
	err = err ? err : verify_rows(&v, "roll-up", "SELECT head, stacks, cells, id, events FROM rollups", BLOCK_CELLS);
	err = err ? err : verify_hours(&v);
	store_exec(v.s->read_db, "COMMIT");
	pthread_mutex_unlock(&v.s->read_lock);
	return err;
}
