/* SPDX-License-Identifier: Apache-2.0 */
/* Records as rows of SQLite. The room's thread. */
#include <errno.h>
#include <string.h>

#include "backend/signals/signals_internal.h"
#include "backend/store/sqlite/db.h"
#include "base/cleanup.h"

int signals_prepare(struct signals *s)
{
	const struct {
		sqlite3_stmt **st;
		const char *sql;
	} all[] = {
		{ &s->put_text, "INSERT OR IGNORE INTO texts(text) VALUES(?1)" },
		{ &s->get_text, "SELECT id FROM texts WHERE text = ?1" },
		{ &s->put_resource, "INSERT OR IGNORE INTO resources(service, labels) VALUES(?1, ?2)" },
		{ &s->get_resource, "SELECT id FROM resources WHERE labels = ?1" },
		{ &s->put_span, "INSERT INTO spans(trace, span, parent, start_ns, end_ns, kind, status, name, resource,"
				" thread_id, thread_name) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)" },
		{ &s->put_log, "INSERT INTO logs(time_ns, trace, span, severity, resource, body)"
			       " VALUES(?1, ?2, ?3, ?4, ?5, ?6)" },
		{ &s->put_exemplar, "INSERT INTO exemplars(time_ns, trace, span, value, metric, unit, resource)"
				    " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)" },
	};
	int code = SQLITE_OK;

	for (size_t i = 0; i < ARRAY_LEN(all) && code == SQLITE_OK; i++)
		code = sqlite3_prepare_v3(s->write_db, all[i].sql, -1, SQLITE_PREPARE_PERSISTENT, all[i].st, NULL);
	return store_sqlite_errno(code);
}

void signals_unprepare(struct signals *s)
{
	sqlite3_stmt **const all[] = { &s->put_text, &s->get_text, &s->put_resource, &s->get_resource,
				       &s->put_span, &s->put_log,  &s->put_exemplar };

	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		sqlite3_finalize(*all[i]);
		*all[i] = NULL;
	}
}

/* Runs @st, whose values are bound. */
static int run(sqlite3_stmt *st)
{
	int code = sqlite3_step(st);

	sqlite3_reset(st);
	return store_sqlite_errno(code);
}

/* Puts a row where there is none, and gets its number. */
static int number_of(sqlite3_stmt *put, sqlite3_stmt *get, int64_t *ret)
{
	int err = 0, code = sqlite3_step(get);

	if (code == SQLITE_DONE) {
		sqlite3_reset(get);
		err = run(put);
		code = err ? SQLITE_DONE : sqlite3_step(get);
	}
	if (code == SQLITE_ROW)
		*ret = sqlite3_column_int64(get, 0);
	else if (!err)
		err = code == SQLITE_DONE ? -EIO : store_sqlite_errno(code);
	sqlite3_reset(get);
	return err;
}

static int number_of_text(struct signals *s, const char *text, int64_t *ret)
{
	sqlite3_bind_text(s->put_text, 1, text, -1, SQLITE_STATIC);
	sqlite3_bind_text(s->get_text, 1, text, -1, SQLITE_STATIC);
	return number_of(s->put_text, s->get_text, ret);
}

int signals_row_resource(struct signals *s, const struct kept_resource *r)
{
	sqlite3_bind_text(s->put_resource, 1, r->service, -1, SQLITE_STATIC);
	sqlite3_bind_blob64(s->put_resource, 2, r->labels, r->len, SQLITE_STATIC);
	sqlite3_bind_blob64(s->get_resource, 1, r->labels, r->len, SQLITE_STATIC);
	return number_of(s->put_resource, s->get_resource, &s->resource);
}

/* NULL for one that is none. */
static void bind_id(sqlite3_stmt *st, int at, const uint8_t *id, size_t len)
{
	static const uint8_t none[16];

	if (memcmp(id, none, len) != 0)
		sqlite3_bind_blob64(st, at, id, len, SQLITE_STATIC);
	else
		sqlite3_bind_null(st, at);
}

static int64_t time_of(uint64_t ns)
{
	return ns > INT64_MAX ? INT64_MAX : (int64_t)ns;
}

int signals_row_span(struct signals *s, const struct kept_span *span)
{
	sqlite3_stmt *st = s->put_span;
	int64_t name, thread = 0;
	int err = number_of_text(s, span->name, &name);

	if (!err && *span->thread_name)
		err = number_of_text(s, span->thread_name, &thread);
	if (err)
		return err;
	sqlite3_bind_blob64(st, 1, span->trace, sizeof(span->trace), SQLITE_STATIC);
	sqlite3_bind_blob64(st, 2, span->span, sizeof(span->span), SQLITE_STATIC);
	bind_id(st, 3, span->parent, sizeof(span->parent));
	sqlite3_bind_int64(st, 4, time_of(span->start_ns));
	sqlite3_bind_int64(st, 5, time_of(span->end_ns));
	sqlite3_bind_int(st, 6, span->kind);
	sqlite3_bind_int(st, 7, span->status);
	sqlite3_bind_int64(st, 8, name);
	sqlite3_bind_int64(st, 9, s->resource);
	if (span->thread_id >= 0)
		sqlite3_bind_int64(st, 10, span->thread_id);
	else
		sqlite3_bind_null(st, 10);
	if (*span->thread_name)
		sqlite3_bind_int64(st, 11, thread);
	else
		sqlite3_bind_null(st, 11);
	return run(st);
}

int signals_row_log(struct signals *s, const struct kept_log *log)
{
	sqlite3_stmt *st = s->put_log;

	sqlite3_bind_int64(st, 1, time_of(log->time_ns));
	bind_id(st, 2, log->trace, sizeof(log->trace));
	bind_id(st, 3, log->span, sizeof(log->span));
	sqlite3_bind_int(st, 4, log->severity);
	sqlite3_bind_int64(st, 5, s->resource);
	sqlite3_bind_text(st, 6, log->body, -1, SQLITE_STATIC);
	return run(st);
}

int signals_row_exemplar(struct signals *s, const struct kept_exemplar *e)
{
	sqlite3_stmt *st = s->put_exemplar;
	int64_t metric, unit;
	int err = number_of_text(s, e->metric, &metric);

	err = err ? err : number_of_text(s, e->unit, &unit);
	if (err)
		return err;
	sqlite3_bind_int64(st, 1, time_of(e->time_ns));
	bind_id(st, 2, e->trace, sizeof(e->trace));
	bind_id(st, 3, e->span, sizeof(e->span));
	sqlite3_bind_double(st, 4, e->value);
	sqlite3_bind_int64(st, 5, metric);
	sqlite3_bind_int64(st, 6, unit);
	sqlite3_bind_int64(st, 7, s->resource);
	return run(st);
}
