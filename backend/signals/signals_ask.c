/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions about records, newest first. SQLite finds them by trace, span or time; all other conditions are judged here,
 * those on attributes once a resource.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backend/signals/signals_internal.h"
#include "backend/store/sqlite/db.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text/hex.h"
#include "base/text/pattern.h"
#include "base/vec.h"

enum { TRACE_BYTES = 16, SPAN_BYTES = 8, ID_TEXT = 2 * TRACE_BYTES + 1, CHECK_EACH = 256 };

enum verdict { UNKNOWN, FITS, FAILS };

/* What rows of all tables have in front, in this order, as the statements below select them. */
enum column { C_TRACE, C_SPAN, C_SERVICE, C_LABELS, C_RESOURCE, C_NAME, C_REST };

struct asking {
	const struct signals_question *q;
	const char *name_label; /* what C_NAME is the value of; NULL: of nothing */
	sqlite3_stmt *st;
	uint8_t *verdicts; /* by number of the resource; owned */
	size_t verdict_cap;
	unsigned rows;
};

static void asking_fini(struct asking *a)
{
	sqlite3_finalize(a->st);
	free(a->verdicts);
}

const char *signals_resource_value(const struct kept_resource *r, const char *key)
{
	for (const char *at = r->labels, *end = at + r->len; at < end;) {
		const char *value = at + strlen(at) + 1;

		if (!strcmp(at, key))
			return value;
		at = value + strlen(value) + 1;
	}
	return NULL;
}

static bool fits(const struct store_matcher *m, const char *value, int *err)
{
	bool is_match;

	if (m->match == MATCH_EQUAL || m->match == MATCH_NOT_EQUAL)
		return !strcmp(m->value, value) == (m->match == MATCH_EQUAL);
	is_match = pattern_matches(m->pattern, value, strlen(value));
	if (pattern_gave_up(m->pattern))
		*err = -ELOOP;
	return is_match == (m->match == MATCH_REGEX);
}

/* --- columns --- */

static void id_of(sqlite3_stmt *st, int column, uint8_t *ret, size_t len)
{
	const void *bytes = sqlite3_column_blob(st, column);

	if (bytes && (size_t)sqlite3_column_bytes(st, column) == len)
		memcpy(ret, bytes, len);
	else
		memset(ret, 0, len);
}

static const char *text_of(sqlite3_stmt *st, int column)
{
	const char *text = (const char *)sqlite3_column_text(st, column);

	return text ? text : "";
}

/* Keys and values end with a NUL each, which a damaged file may not have. */
static struct kept_resource resource_of(sqlite3_stmt *st)
{
	struct kept_resource r = { .service = text_of(st, C_SERVICE), .labels = sqlite3_column_blob(st, C_LABELS) };
	const size_t len = (size_t)sqlite3_column_bytes(st, C_LABELS);
	size_t ends = 0;

	for (size_t i = 0; r.labels && i < len; i++) {
		ends += !r.labels[i];
		if (!r.labels[i] && ends % 2 == 0)
			r.len = i + 1;
	}
	return r;
}

static bool is_of_row(const struct asking *a, const char *label)
{
	return !strcmp(label, STORE_TRACE_LABEL) || !strcmp(label, STORE_SPAN_LABEL) || !strcmp(label, SIGNAL_NAME_LABEL) ||
	       !strcmp(label, SIGNAL_METRIC_LABEL) || (a->name_label && !strcmp(label, a->name_label));
}

static enum verdict judge_resource(const struct asking *a, int *err)
{
	const struct kept_resource r = resource_of(a->st);

	for (size_t i = 0; i < a->q->matcher_count && !*err; i++) {
		const struct store_matcher *m = &a->q->matchers[i];
		const char *value = is_of_row(a, m->label) ? NULL : signals_resource_value(&r, m->label);

		if (!is_of_row(a, m->label) && !fits(m, value ? value : "", err))
			return FAILS;
	}
	return FITS;
}

static bool resource_fits(struct asking *a, int *err)
{
	const size_t number = (size_t)sqlite3_column_int64(a->st, C_RESOURCE);

	if (!a->q->matcher_count)
		return true;
	if (number > UINT32_MAX || vec_reach_zero(&a->verdicts, &a->verdict_cap, number)) {
		*err = -ENOMEM;
		return false;
	}
	if (a->verdicts[number] == UNKNOWN)
		a->verdicts[number] = (uint8_t)judge_resource(a, err);
	return a->verdicts[number] == FITS;
}

static const char *row_value(const struct asking *a, const char *label, char text[static ID_TEXT])
{
	static const uint8_t none[TRACE_BYTES];
	const bool is_trace = !strcmp(label, STORE_TRACE_LABEL);
	const size_t len = is_trace ? TRACE_BYTES : SPAN_BYTES;
	uint8_t id[TRACE_BYTES];

	if (a->name_label && !strcmp(label, a->name_label))
		return text_of(a->st, C_NAME);
	text[0] = '\0';
	if (!is_trace && strcmp(label, STORE_SPAN_LABEL) != 0)
		return text;
	id_of(a->st, is_trace ? C_TRACE : C_SPAN, id, len);
	if (memcmp(id, none, len) != 0)
		hex_encode(text, id, len);
	return text;
}

static bool row_fits(struct asking *a, int *err)
{
	char text[ID_TEXT];

	if (!resource_fits(a, err))
		return false;
	for (size_t i = 0; i < a->q->matcher_count && !*err; i++) {
		const struct store_matcher *m = &a->q->matchers[i];

		if (is_of_row(a, m->label) && !fits(m, row_value(a, m->label, text), err))
			return false;
	}
	return true;
}

/* --- rows --- */

/* Chooses by something better than time. */
static bool has_index(const struct signals_question *q)
{
	return q->trace || q->span || q->id;
}

/* The index is chosen by how the statement is written; what is not asked for is no condition. */
static int prepare(struct asking *a, sqlite3 *db, const char *columns, const char *from, const char *time_from,
		   const char *time_to)
{
	const struct signals_question *q = a->q;
	AUTO(buf_fini) struct buf sql = BUF_EMPTY;
	int code;

	buf_printf(&sql,
		   "SELECT t.trace, t.span, r.service, r.labels, t.resource, %s FROM %s JOIN resources AS r"
		   " ON r.id = t.resource WHERE %s%s >= ?1 AND %s%s < ?2",
		   columns, from, has_index(q) ? "+" : "", time_to, has_index(q) ? "+" : "", time_from);
	if (q->trace)
		buf_puts(&sql, " AND t.trace = ?3");
	if (q->span)
		buf_printf(&sql, " AND %st.span = ?4", q->trace ? "+" : "");
	if (q->id)
		buf_puts(&sql, " AND t.id = ?5");
	buf_printf(&sql, " ORDER BY %s%s DESC, t.id DESC", has_index(q) ? "+" : "", time_to);
	if (sql.failed)
		return -ENOMEM;
	code = sqlite3_prepare_v2(db, buf_text(&sql), -1, &a->st, NULL);
	if (code != SQLITE_OK)
		return store_sqlite_errno(code);
	sqlite3_bind_int64(a->st, 1, q->from_ns > INT64_MAX ? INT64_MAX : (int64_t)q->from_ns);
	sqlite3_bind_int64(a->st, 2, q->to_ns > INT64_MAX ? INT64_MAX : (int64_t)q->to_ns);
	if (q->trace)
		sqlite3_bind_blob64(a->st, 3, q->trace, TRACE_BYTES, SQLITE_STATIC);
	if (q->span)
		sqlite3_bind_blob64(a->st, 4, q->span, SPAN_BYTES, SQLITE_STATIC);
	if (q->id)
		sqlite3_bind_int64(a->st, 5, q->id);
	return 0;
}

/* The next row that fits: 1; 0: there is none; or -errno. */
static int next(struct asking *a)
{
	int code, err = 0;

	while ((code = sqlite3_step(a->st)) == SQLITE_ROW) {
		if (++a->rows % CHECK_EACH == 0 && a->q->deadline_ns && clock_mono_ns() > a->q->deadline_ns)
			return -ETIMEDOUT;
		if (row_fits(a, &err))
			return 1;
		if (err)
			return err;
	}
	return store_sqlite_errno(code);
}

int signals_spans(struct signals *s, const struct signals_question *q, int (*fn)(void *arg, const struct kept_span *span),
		  void *arg)
{
	sqlite3 *db = s->config.store ? NULL : signals_reader(s);
	AUTO(asking_fini) struct asking a = { .q = q, .name_label = SIGNAL_NAME_LABEL };
	int err, more = 0;

	if (s->config.store)
		return s->config.store->records->spans(s->config.store, q, fn, arg);
	if (!db)
		return 0;
	err = prepare(&a, db, "n.text, t.parent, t.start_ns, t.end_ns, t.kind, t.status, t.thread_id, w.text",
		      "spans AS t JOIN texts AS n ON n.id = t.name LEFT JOIN texts AS w ON w.id = t.thread_name",
		      "t.start_ns", "t.end_ns");
	while (!err && (more = next(&a)) > 0) {
		struct kept_span span = {
			.start_ns = (uint64_t)sqlite3_column_int64(a.st, C_REST + 1),
			.end_ns = (uint64_t)sqlite3_column_int64(a.st, C_REST + 2),
			.kind = (uint8_t)sqlite3_column_int(a.st, C_REST + 3),
			.status = (uint8_t)sqlite3_column_int(a.st, C_REST + 4),
			.thread_id = sqlite3_column_type(a.st, C_REST + 5) == SQLITE_NULL
					     ? -1
					     : sqlite3_column_int64(a.st, C_REST + 5),
			.thread_name = text_of(a.st, C_REST + 6),
			.name = text_of(a.st, C_NAME),
			.resource = resource_of(a.st),
		};

		id_of(a.st, C_TRACE, span.trace, sizeof(span.trace));
		id_of(a.st, C_SPAN, span.span, sizeof(span.span));
		id_of(a.st, C_REST, span.parent, sizeof(span.parent));
		err = fn(arg, &span);
	}
	asking_fini(&a);
	a = (struct asking){ 0 };
	signals_reader_end(s);
	return err ? err : more;
}

int signals_logs(struct signals *s, const struct signals_question *q, int (*fn)(void *arg, const struct kept_log *log),
		 void *arg)
{
	sqlite3 *db = s->config.store ? NULL : signals_reader(s);
	AUTO(asking_fini) struct asking a = { .q = q };
	int err, more = 0;

	if (s->config.store)
		return s->config.store->records->logs(s->config.store, q, fn, arg);
	if (!db)
		return 0;
	err = prepare(&a, db, "t.body, t.time_ns, t.severity, t.id", "logs AS t", "t.time_ns", "t.time_ns");
	while (!err && (more = next(&a)) > 0) {
		struct kept_log log = {
			.id = sqlite3_column_int64(a.st, C_REST + 2),
			.time_ns = (uint64_t)sqlite3_column_int64(a.st, C_REST),
			.severity = (uint8_t)sqlite3_column_int(a.st, C_REST + 1),
			.body = text_of(a.st, C_NAME),
			.resource = resource_of(a.st),
		};

		if (log.severity < q->severity || (q->text && !strcasestr(log.body, q->text)))
			continue;
		id_of(a.st, C_TRACE, log.trace, sizeof(log.trace));
		id_of(a.st, C_SPAN, log.span, sizeof(log.span));
		err = fn(arg, &log);
	}
	asking_fini(&a);
	a = (struct asking){ 0 };
	signals_reader_end(s);
	return err ? err : more;
}

int signals_exemplars(struct signals *s, const struct signals_question *q,
		      int (*fn)(void *arg, const struct kept_exemplar *exemplar), void *arg)
{
	sqlite3 *db = s->config.store ? NULL : signals_reader(s);
	AUTO(asking_fini) struct asking a = { .q = q, .name_label = SIGNAL_METRIC_LABEL };
	int err, more = 0;

	if (s->config.store)
		return s->config.store->records->exemplars(s->config.store, q, fn, arg);
	if (!db)
		return 0;
	err = prepare(&a, db, "m.text, t.time_ns, t.value, u.text",
		      "exemplars AS t JOIN texts AS m ON m.id = t.metric JOIN texts AS u ON u.id = t.unit", "t.time_ns",
		      "t.time_ns");
	while (!err && (more = next(&a)) > 0) {
		struct kept_exemplar e = {
			.time_ns = (uint64_t)sqlite3_column_int64(a.st, C_REST),
			.value = sqlite3_column_double(a.st, C_REST + 1),
			.metric = text_of(a.st, C_NAME),
			.unit = text_of(a.st, C_REST + 2),
			.resource = resource_of(a.st),
		};

		id_of(a.st, C_TRACE, e.trace, sizeof(e.trace));
		id_of(a.st, C_SPAN, e.span, sizeof(e.span));
		err = fn(arg, &e);
	}
	asking_fini(&a);
	a = (struct asking){ 0 };
	signals_reader_end(s);
	return err ? err : more;
}
