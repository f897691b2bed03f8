/* SPDX-License-Identifier: Apache-2.0 */
/* The check of everything in the store; it only reads, in one snapshot. Any thread that asks questions. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "backend/store/sqlite/names.h"
#include "backend/store/sqlite/sqlite.h"
#include "backend/store/sqlite/write.h"

struct verify {
	struct store_sqlite *s;
	int (*fn)(void *arg, const char *problem);
	void *arg;
	uint32_t nodes; /* number of nodes in the store */
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

/* Checks that all that @b refers to is there. @table and @id name the block. */
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

/* Whether all links of the row's block are among those that it says it has; of old blocks it is not said. */
static bool has_said_links(const struct block *b, sqlite3_stmt *st)
{
	const int64_t first = sqlite3_column_int64(st, BLOCK_PARTS), last = sqlite3_column_int64(st, BLOCK_PARTS + 1);

	if (sqlite3_column_type(st, BLOCK_PARTS + 1) == SQLITE_NULL)
		return true;
	for (uint32_t e = 0; b->link && e < b->event_count; e++)
		if (b->link[e] && (b->link[e] < first || b->link[e] > last))
			return false;
	return true;
}

/* Rows of @sql: the parts up to @last, after links the first and the last of them, then an id and a number of events. */
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
		if (!err && (b->event_count != sqlite3_column_int64(st, columns - 1) ||
			     (last == BLOCK_LINKS && !has_said_links(b, st))))
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

	err = store_read_begin(v.s);
	err = err ? err : verify_pages(&v);
	if (!err)
		v.nodes = names_node_count(v.s->names, &err);
	err = err ? err
		  : verify_rows(&v, "block",
				"SELECT head, stacks, cells, cpus, labels, weights, times, links, first_link, last_link, id,"
				" events FROM blocks",
				BLOCK_LINKS);
	err = err ? err : verify_rows(&v, "roll-up", "SELECT head, stacks, cells, id, events FROM rollups", BLOCK_CELLS);
	err = err ? err : verify_hours(&v);
	store_read_end(v.s);
	return err;
}
