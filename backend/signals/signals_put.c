/* SPDX-License-Identifier: Apache-2.0 */
/* Turns requests into rows. The room's thread. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "backend/signals/signals_internal.h"
#include "backend/store/sqlite/db.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text/utf8.h"
#include "proto/otlp/metrics.h"

enum { TRACE_BYTES = 16, SPAN_BYTES = 8, ANY_DEPTH = 4 };

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

/* --- values as text --- */

static void append_text(const struct profiles *p, const struct any_value *v, unsigned depth, struct buf *out)
{
	if (profiles_value_append(p, v, out))
		return;
	switch (v->kind) {
	case VALUE_ARRAY:
		for (uint32_t i = 0; i < v->array.count && depth && out->len < SIGNAL_BODY_BYTES; i++) {
			buf_puts(out, i ? " " : "");
			append_text(p, &v->array.items[i], depth - 1, out);
		}
		break;
	case VALUE_KVLIST:
		for (uint32_t i = 0; i < v->kvlist.count && depth && out->len < SIGNAL_BODY_BYTES; i++) {
			const struct str key = profiles_key(p, &v->kvlist.items[i]);

			buf_printf(out, "%s%.*s=", i ? " " : "", (int)key.len, key.data);
			append_text(p, &v->kvlist.items[i].value, depth - 1, out);
		}
		break;
	default: /* bytes say nothing to readers */
		break;
	}
}

/* --- rows --- */

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

static int put_text(struct signals *s, struct str text, size_t most, int64_t *ret)
{
	const size_t len = text.len < most ? text.len : utf8_cut(text.data, text.len, most - 1);

	sqlite3_bind_text64(s->put_text, 1, text.data, len, SQLITE_STATIC, SQLITE_UTF8);
	sqlite3_bind_text64(s->get_text, 1, text.data, len, SQLITE_STATIC, SQLITE_UTF8);
	return number_of(s->put_text, s->get_text, ret);
}

static int put_resource(struct signals *s, const struct profiles *p, const struct resource *resource, int64_t *ret)
{
	AUTO(buf_fini) struct buf labels = BUF_EMPTY;
	AUTO(buf_fini) struct buf one = BUF_EMPTY;
	const struct str service = profiles_value_text(p, profiles_find_key(p, &resource->attributes, "service.name"));

	for (uint32_t i = 0; i < resource->attributes.count; i++) {
		const struct key_value *kv = &resource->attributes.items[i];
		const struct str key = profiles_key(p, kv);

		buf_reset(&one);
		buf_append(&one, key.data, key.len);
		buf_putc(&one, '\0');
		append_text(p, &kv->value, 1, &one);
		buf_putc(&one, '\0');
		if (labels.len + one.len <= SIGNAL_LABELS_BYTES && memchr(one.data, 0, one.len) == one.data + key.len)
			buf_append(&labels, one.data, one.len);
	}
	if (labels.failed || one.failed)
		return -ENOMEM;
	sqlite3_bind_text64(s->put_resource, 1, service.data, service.len, SQLITE_STATIC, SQLITE_UTF8);
	sqlite3_bind_blob64(s->put_resource, 2, buf_text(&labels), labels.len, SQLITE_STATIC);
	sqlite3_bind_blob64(s->get_resource, 1, buf_text(&labels), labels.len, SQLITE_STATIC);
	return number_of(s->put_resource, s->get_resource, ret);
}

static void bind_id(sqlite3_stmt *st, int at, struct str id, size_t len)
{
	if (id.len == len)
		sqlite3_bind_blob64(st, at, id.data, len, SQLITE_STATIC);
	else
		sqlite3_bind_null(st, at);
}

static int64_t time_of(uint64_t ns)
{
	return ns > INT64_MAX ? INT64_MAX : (int64_t)ns;
}

static int put_span(struct signals *s, const struct profiles *p, const struct span *span, int64_t resource, uint64_t *kept)
{
	const struct any_value *thread = profiles_find_key(p, &span->attributes, "thread.id"),
			       *thread_name = profiles_find_key(p, &span->attributes, "thread.name");
	const uint64_t end_ns = span->end_time_unix_ns < span->start_time_unix_ns ? span->start_time_unix_ns
										  : span->end_time_unix_ns;
	sqlite3_stmt *st = s->put_span;
	int64_t name, thread_text = 0;
	int err;

	if (span->trace_id.len != TRACE_BYTES || span->span_id.len != SPAN_BYTES)
		return 0;
	err = put_text(s, span->name, SIGNAL_NAME_BYTES, &name);
	if (!err && thread_name)
		err = put_text(s, profiles_value_text(p, thread_name), SIGNAL_NAME_BYTES, &thread_text);
	if (err)
		return err;
	bind_id(st, 1, span->trace_id, TRACE_BYTES);
	bind_id(st, 2, span->span_id, SPAN_BYTES);
	bind_id(st, 3, span->parent_span_id, SPAN_BYTES);
	sqlite3_bind_int64(st, 4, time_of(span->start_time_unix_ns));
	sqlite3_bind_int64(st, 5, time_of(end_ns));
	sqlite3_bind_int(st, 6, (uint8_t)span->kind);
	sqlite3_bind_int(st, 7, (uint8_t)(span->has_status ? span->status.code : 0));
	sqlite3_bind_int64(st, 8, name);
	sqlite3_bind_int64(st, 9, resource);
	if (thread && thread->kind == VALUE_INT)
		sqlite3_bind_int64(st, 10, thread->integer);
	else
		sqlite3_bind_null(st, 10);
	if (thread_name)
		sqlite3_bind_int64(st, 11, thread_text);
	else
		sqlite3_bind_null(st, 11);
	err = run(st);
	*kept += !err;
	return err;
}

static int put_spans(struct signals *s, const struct otlp_other *o, uint64_t *kept)
{
	const struct span_request *request = o->root;
	int err = 0;

	for (uint32_t r = 0; r < request->resource_count && !err; r++) {
		const struct resource_spans *of = &request->resources[r];
		int64_t resource;

		err = put_resource(s, o->memory, &of->resource, &resource);
		for (uint32_t i = 0; i < of->scope_count && !err; i++)
			for (uint32_t k = 0; k < of->scopes[i].span_count && !err; k++)
				err = put_span(s, o->memory, &of->scopes[i].spans[k], resource, kept);
	}
	return err;
}

static int put_log(struct signals *s, const struct profiles *p, const struct log_record *record, int64_t resource,
		   uint64_t *kept)
{
	const uint64_t time_ns = record->time_unix_ns ? record->time_unix_ns : record->observed_time_unix_ns;
	AUTO(buf_fini) struct buf body = BUF_EMPTY;
	sqlite3_stmt *st = s->put_log;
	size_t len;
	int err;

	append_text(p, &record->body, ANY_DEPTH, &body);
	if (!body.len)
		buf_append(&body, record->event_name.data, record->event_name.len);
	if (body.failed)
		return -ENOMEM;
	len = body.len < SIGNAL_BODY_BYTES ? body.len : utf8_cut(body.data, body.len, SIGNAL_BODY_BYTES - 1);
	sqlite3_bind_int64(st, 1, time_of(time_ns ? time_ns : clock_unix_ns()));
	bind_id(st, 2, record->trace_id, TRACE_BYTES);
	bind_id(st, 3, record->span_id, SPAN_BYTES);
	sqlite3_bind_int(st, 4, (uint8_t)record->severity_number);
	sqlite3_bind_int64(st, 5, resource);
	sqlite3_bind_text64(st, 6, buf_text(&body), len, SQLITE_STATIC, SQLITE_UTF8);
	err = run(st);
	*kept += !err;
	return err;
}

static int put_logs(struct signals *s, const struct otlp_other *o, uint64_t *kept)
{
	const struct logs *request = o->root;
	int err = 0;

	for (uint32_t r = 0; r < request->resource_count && !err; r++) {
		const struct resource_logs *of = &request->resources[r];
		int64_t resource;

		err = put_resource(s, o->memory, &of->resource, &resource);
		for (uint32_t i = 0; i < of->scope_count && !err; i++)
			for (uint32_t k = 0; k < of->scopes[i].record_count && !err; k++)
				err = put_log(s, o->memory, &of->scopes[i].records[k], resource, kept);
	}
	return err;
}

/* The resource is numbered when its first exemplar is met, as most metrics have none. */
struct exemplars_of {
	struct signals *s;
	const struct otlp_other *o;
	const struct resource *resource;
	const struct metric_data *metric;
	int64_t resource_number; /* 0: not yet */
	uint64_t *kept;
};

static int put_exemplar(struct exemplars_of *of, const struct exemplar *e)
{
	struct signals *s = of->s;
	sqlite3_stmt *st = s->put_exemplar;
	int64_t metric, unit;
	int err = of->resource_number ? 0 : put_resource(s, of->o->memory, of->resource, &of->resource_number);

	err = err ? err : put_text(s, of->metric->name, SIGNAL_NAME_BYTES, &metric);
	err = err ? err : put_text(s, of->metric->unit, SIGNAL_NAME_BYTES, &unit);
	if (err)
		return err;
	sqlite3_bind_int64(st, 1, time_of(e->time_unix_ns));
	bind_id(st, 2, e->trace_id, TRACE_BYTES);
	bind_id(st, 3, e->span_id, SPAN_BYTES);
	sqlite3_bind_double(st, 4, e->has_int ? (double)e->as_int : e->as_double);
	sqlite3_bind_int64(st, 5, metric);
	sqlite3_bind_int64(st, 6, unit);
	sqlite3_bind_int64(st, 7, of->resource_number);
	err = run(st);
	*of->kept += !err;
	return err;
}

static int put_points(struct exemplars_of *of, const struct points *points)
{
	int err = 0;

	for (uint32_t i = 0; i < points->count && !err; i++)
		for (uint32_t k = 0; k < points->items[i].exemplar_count && !err; k++)
			if (points->items[i].exemplars[k].time_unix_ns)
				err = put_exemplar(of, &points->items[i].exemplars[k]);
	return err;
}

static int put_metric(struct exemplars_of *of)
{
	const struct metric_data *m = of->metric;
	const struct points *const all[] = { &m->gauge, &m->sum, &m->histogram, &m->exponential_histogram };
	int err = 0;

	for (size_t i = 0; i < ARRAY_LEN(all) && !err; i++)
		err = put_points(of, all[i]);
	return err;
}

static int put_exemplars(struct signals *s, const struct otlp_other *o, uint64_t *kept)
{
	const struct metric_request *request = o->root;
	int err = 0;

	for (uint32_t r = 0; r < request->resource_count && !err; r++) {
		const struct resource_metrics *resource = &request->resources[r];
		struct exemplars_of of = { .s = s, .o = o, .resource = &resource->resource, .kept = kept };

		for (uint32_t i = 0; i < resource->scope_count && !err; i++) {
			for (uint32_t k = 0; k < resource->scopes[i].metric_count && !err; k++) {
				of.metric = &resource->scopes[i].metrics[k];
				err = put_metric(&of);
			}
		}
	}
	return err;
}

int signals_put(struct signals *s, const struct otlp_other *other, uint64_t *kept_ret)
{
	switch (other->signal) {
	case OTLP_TRACES:
		return put_spans(s, other, kept_ret);
	case OTLP_LOGS:
		return put_logs(s, other, kept_ret);
	case OTLP_METRICS:
		return put_exemplars(s, other, kept_ret);
	default:
		return 0;
	}
}
