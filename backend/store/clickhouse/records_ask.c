/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions about records of other signals. All conditions are ClickHouse's to judge; the answer is read as a whole, and
 * told row by row. Tables that are not there have no rows.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "backend/store/clickhouse/click.h"
#include "base/cleanup.h"
#include "base/text/hex.h"

enum { MOST_SPANS = 200001, MOST_OTHERS = 5001 }; /* one more than is ever shown */

/* What each row of an answer begins with. */
#define COMMON "SELECT trace, span, service, key, value, "

/* A row that is read; texts are terminated there. */
struct row {
	uint8_t trace[16], span[8];
	struct kept_resource resource;
	struct buf labels, texts; /* owned */
};

static void row_fini(struct row *row)
{
	buf_fini(&row->labels);
	buf_fini(&row->texts);
}

/* The question as it comes together, its answer, and where in that reading is. */
struct asking {
	struct click_sql sql;
	struct buf answer;
	struct row row;
	struct row_reader reader;
};

static void asking_fini(struct asking *a)
{
	click_sql_fini(&a->sql);
	buf_fini(&a->answer);
	row_fini(&a->row);
}

/* --- conditions --- */

/* How SQL writes what @label is in a row whose own name is in the column @name, which is the label @name_label (both NULL:
 * it has none); NULL: it is a label of the resource. */
static const char *find_text(const char *label, const char *name_label, const char *name)
{
	if (!strcmp(label, STORE_TRACE_LABEL))
		return "lower(hex(trace))";
	if (!strcmp(label, STORE_SPAN_LABEL))
		return "lower(hex(span))";
	if (name_label && !strcmp(label, name_label))
		return name;
	return !strcmp(label, SIGNAL_NAME_LABEL) || !strcmp(label, SIGNAL_METRIC_LABEL) ? "''" : NULL;
}

static void where_id(struct click_sql *q, const char *column, const uint8_t *id, size_t len)
{
	char text[33];

	if (!id)
		return;
	hex_encode(text, id, len);
	buf_printf(&q->text, " AND %s = unhex('%s')", column, text);
}

static void where(struct click_sql *q, const struct signals_question *question, const char *from, const char *to,
		  const char *name_label, const char *name)
{
	buf_printf(&q->text,
		   " WHERE %s >= fromUnixTimestamp64Nano(%" PRId64 ") AND %s < fromUnixTimestamp64Nano(%" PRId64 ")", to,
		   click_clamp_time(question->from_ns), from, click_clamp_time(question->to_ns));
	where_id(q, "trace", question->trace, 16);
	where_id(q, "span", question->span, 8);
	for (size_t i = 0; i < question->matcher_count; i++) {
		const struct store_matcher *m = &question->matchers[i];
		const char *text = find_text(m->label, name_label, name);

		buf_puts(&q->text, " AND ");
		if (text)
			click_compare(q, m, text);
		else
			click_compare_label(q, m);
	}
}

/* Asks; what comes back is in @a's reader. */
static int ask(struct store *store, const struct signals_question *question, struct asking *a, const char *order,
	       unsigned most)
{
	struct store_clickhouse *s = store_clickhouse_of(store);
	const struct store_selection sel = { .deadline_ns = question->deadline_ns };
	int err;

	buf_printf(&a->sql.text, " ORDER BY %s DESC LIMIT %u", order, most);
	pthread_mutex_lock(&s->read_lock);
	err = question->matcher_count > STORE_MAX_MATCHERS ? -E2BIG : click_ask(s, &a->sql, &sel, &a->answer);
	pthread_mutex_unlock(&s->read_lock);
	if (err == -ENOENT)
		err = 0;
	a->reader = rows_of(&a->answer);
	return err;
}

/* --- rows --- */

static void read_id(struct row_reader *r, uint8_t *to, size_t len)
{
	const struct str id = get_text(r);

	memset(to, 0, len);
	if (id.len == len)
		memcpy(to, id.data, len);
}

/* Appends the text that stands next, and a NUL. Where it stands in @to, until more is appended. */
static size_t append_text(struct row_reader *r, struct buf *to)
{
	const struct str text = get_text(r);
	const size_t at = to->len;

	buf_append(to, text.data, strnlen(text.data, text.len));
	buf_putc(to, '\0');
	return at;
}

/* Reads the labels: all keys come first, then all values, in the same order. */
static int read_labels(struct row_reader *r, struct buf *labels)
{
	struct row_reader keys = *r, values;
	const uint64_t count = get_count(&keys);

	values = keys;
	for (uint64_t i = 0; i < count && !values.is_bad; i++)
		(void)get_text(&values);
	if (get_count(&values) != count || values.is_bad)
		return -EBADMSG;
	buf_reset(labels);
	for (uint64_t i = 0; i < count && !values.is_bad; i++) {
		append_text(&keys, labels);
		append_text(&values, labels);
	}
	*r = values;
	return values.is_bad ? -EBADMSG : labels->failed ? -ENOMEM : 0;
}

/* Begins the next row: its texts' places are in row->texts, that of the service at 0. */
static int begin_row(struct asking *a)
{
	struct row *row = &a->row;

	read_id(&a->reader, row->trace, sizeof(row->trace));
	read_id(&a->reader, row->span, sizeof(row->span));
	buf_reset(&row->texts);
	append_text(&a->reader, &row->texts);
	return read_labels(&a->reader, &row->labels);
}

/* Once all is read: texts stand. */
static int end_row(struct asking *a)
{
	struct row *row = &a->row;

	if (a->reader.is_bad)
		return -EBADMSG;
	row->resource = (struct kept_resource){ buf_text(&row->texts), buf_text(&row->labels), row->labels.len };
	return row->texts.failed || row->labels.failed ? -ENOMEM : 0;
}

int click_spans(struct store *s, const struct signals_question *q, int (*fn)(void *arg, const struct kept_span *span),
		void *arg)
{
	AUTO(asking_fini) struct asking a = { 0 };
	int err;

	buf_puts(&a.sql.text,
		 COMMON "toUnixTimestamp64Nano(start_time), toUnixTimestamp64Nano(end_time), parent, kind, status,"
			" thread_id, name, thread_name FROM hearth_spans");
	where(&a.sql, q, "start_time", "end_time", SIGNAL_NAME_LABEL, "name");
	err = ask(s, q, &a, "end_time", MOST_SPANS);
	while (!err && has_row(&a.reader)) {
		struct kept_span span = { 0 };
		size_t name, thread;

		err = begin_row(&a);
		span.start_ns = get_number(&a.reader, 8);
		span.end_ns = get_number(&a.reader, 8);
		read_id(&a.reader, span.parent, sizeof(span.parent));
		span.kind = (uint8_t)get_number(&a.reader, 1);
		span.status = (uint8_t)get_number(&a.reader, 1);
		span.thread_id = (int64_t)get_number(&a.reader, 8);
		name = append_text(&a.reader, &a.row.texts);
		thread = append_text(&a.reader, &a.row.texts);
		err = err ? err : end_row(&a);
		if (err)
			break;
		memcpy(span.trace, a.row.trace, sizeof(span.trace));
		memcpy(span.span, a.row.span, sizeof(span.span));
		span.name = buf_text(&a.row.texts) + name;
		span.thread_name = buf_text(&a.row.texts) + thread;
		span.resource = a.row.resource;
		err = fn(arg, &span);
	}
	return err;
}

int click_logs(struct store *s, const struct signals_question *q, int (*fn)(void *arg, const struct kept_log *log),
	       void *arg)
{
	AUTO(asking_fini) struct asking a = { 0 };
	int err;

	buf_puts(&a.sql.text, COMMON "id, toUnixTimestamp64Nano(time), severity, body FROM hearth_logs");
	where(&a.sql, q, "time", "time", NULL, NULL);
	if (q->id)
		buf_printf(&a.sql.text, " AND id = %" PRId64, q->id);
	if (q->severity)
		buf_printf(&a.sql.text, " AND severity >= %u", q->severity);
	if (q->text) {
		buf_puts(&a.sql.text, " AND positionCaseInsensitive(body, ");
		click_bind(&a.sql, q->text);
		buf_puts(&a.sql.text, ") > 0");
	}
	err = ask(s, q, &a, "time", MOST_OTHERS);
	while (!err && has_row(&a.reader)) {
		struct kept_log log = { 0 };
		size_t body;

		err = begin_row(&a);
		log.id = (int64_t)get_number(&a.reader, 8);
		log.time_ns = get_number(&a.reader, 8);
		log.severity = (uint8_t)get_number(&a.reader, 1);
		body = append_text(&a.reader, &a.row.texts);
		err = err ? err : end_row(&a);
		if (err)
			break;
		memcpy(log.trace, a.row.trace, sizeof(log.trace));
		memcpy(log.span, a.row.span, sizeof(log.span));
		log.body = buf_text(&a.row.texts) + body;
		log.resource = a.row.resource;
		err = fn(arg, &log);
	}
	return err;
}

int click_exemplars(struct store *s, const struct signals_question *q,
		    int (*fn)(void *arg, const struct kept_exemplar *exemplar), void *arg)
{
	AUTO(asking_fini) struct asking a = { 0 };
	int err;

	buf_puts(&a.sql.text, COMMON "toUnixTimestamp64Nano(time), number, metric, unit FROM hearth_exemplars");
	where(&a.sql, q, "time", "time", SIGNAL_METRIC_LABEL, "metric");
	err = ask(s, q, &a, "time", MOST_OTHERS);
	while (!err && has_row(&a.reader)) {
		struct kept_exemplar e = { 0 };
		size_t metric, unit;
		uint64_t bits;

		err = begin_row(&a);
		e.time_ns = get_number(&a.reader, 8);
		bits = get_number(&a.reader, 8);
		memcpy(&e.value, &bits, sizeof(bits));
		metric = append_text(&a.reader, &a.row.texts);
		unit = append_text(&a.reader, &a.row.texts);
		err = err ? err : end_row(&a);
		if (err)
			break;
		memcpy(e.trace, a.row.trace, sizeof(e.trace));
		memcpy(e.span, a.row.span, sizeof(e.span));
		e.metric = buf_text(&a.row.texts) + metric;
		e.unit = buf_text(&a.row.texts) + unit;
		e.resource = a.row.resource;
		err = fn(arg, &e);
	}
	return err;
}
