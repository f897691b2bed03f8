/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A selection in ClickHouse's SQL. A label's value is looked for as in the other store: among the labels of the series (the
 * resource's attributes, the profile's, the scope), and where the series has none, among those of the sample. Texts are
 * bound, numbers are written out. Regular expressions are RE2's.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "backend/store/clickhouse/click.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text/pattern.h"

#define SERVICE_LABEL "service.name"

/* Labels that are columns of the samples, and their texts; an id of zeros alone is none. */
static const struct event_label {
	const char *label, *column, *text;
} event_labels[] = {
	{ "cpu.logical_number", "cpu", "if(cpu = 0, '', toString(cpu - 1))" },
	{ STORE_TRACE_LABEL, "trace", "if(hex(trace) IN ('', '00000000000000000000000000000000'), '', lower(hex(trace)))" },
	{ STORE_SPAN_LABEL, "span", "if(hex(span) IN ('', '0000000000000000'), '', lower(hex(span)))" },
};

/* The one of them that is called @label; NULL: none is. */
static const struct event_label *find_event_label(const char *label)
{
	for (size_t i = 0; i < ARRAY_LEN(event_labels); i++)
		if (!strcmp(event_labels[i].label, label))
			return &event_labels[i];
	return NULL;
}

enum { MAX_MEMORY_MB = 8192, SPILL_MB = 2048, MAX_QUERY_MB = 64, ANY_TIME_S = 60 };

void click_sql_fini(struct click_sql *q)
{
	buf_fini(&q->text);
	buf_fini(&q->params);
}

void click_bind(struct click_sql *q, const char *value)
{
	char name[32];

	snprintf(name, sizeof(name), "param_p%u", q->count);
	click_param(&q->params, name, value);
	buf_printf(&q->text, "{p%u:String}", q->count++);
}

static void bind_pattern(struct click_sql *q, const char *pattern)
{
	AUTO(buf_fini) struct buf whole = BUF_EMPTY;

	buf_printf(&whole, "^(?:%s)$", pattern);
	click_bind(q, buf_text(&whole));
}

void click_compare(struct click_sql *q, const struct store_matcher *m, const char *value)
{
	switch (m->match) {
	case MATCH_EQUAL:
	case MATCH_NOT_EQUAL:
		buf_printf(&q->text, "%s %s ", value, m->match == MATCH_EQUAL ? "=" : "!=");
		click_bind(q, m->value);
		break;
	case MATCH_REGEX:
	case MATCH_NOT_REGEX:
		buf_printf(&q->text, "%smatch(%s, ", m->match == MATCH_REGEX ? "" : "NOT ", value);
		bind_pattern(q, m->value);
		buf_puts(&q->text, ")");
		break;
	}
}

void click_compare_label(struct click_sql *q, const struct store_matcher *m)
{
	char value[64];

	snprintf(value, sizeof(value), "value[indexOf(key, {p%u:String})]", q->count);
	{
		char name[32];

		snprintf(name, sizeof(name), "param_p%u", q->count++);
		click_param(&q->params, name, m->label);
	}
	click_compare(q, m, value);
}

static void where_series_have(struct click_sql *q, const char *label)
{
	buf_puts(&q->text, "(SELECT id FROM hearth_series WHERE has(key, ");
	click_bind(q, label);
	buf_puts(&q->text, ")");
}

/* "(...)": the value of @m's label, which is not '', is as @m says. */
static void where_label(struct click_sql *q, const struct store_matcher *m)
{
	static const struct store_matcher is_there = { .match = MATCH_NOT_EQUAL, .value = "" };
	struct store_matcher has = is_there;
	struct buf *sql = &q->text;

	has.label = m->label;
	buf_puts(sql, "(series IN ");
	where_series_have(q, m->label);
	buf_puts(sql, " AND ");
	click_compare_label(q, &has);
	buf_puts(sql, " AND ");
	click_compare_label(q, m);
	buf_puts(sql, ") OR series NOT IN ");
	where_series_have(q, m->label);
	buf_puts(sql, " AND ");
	click_compare_label(q, &has);
	buf_puts(sql, ") AND labels IN (SELECT id FROM hearth_labels WHERE ");
	click_compare_label(q, &has);
	buf_puts(sql, " AND ");
	click_compare_label(q, m);
	buf_puts(sql, "))");
}

static bool matches_nothing(const struct store_matcher *m)
{
	return m->pattern ? pattern_matches(m->pattern, "", 0) : !*m->value;
}

/* The names of thread and process, of which either meets the matcher; where neither is known, '' must. */
static void where_comm(struct click_sql *q, const struct store_matcher *m)
{
	const bool is_positive = m->match == MATCH_EQUAL || m->match == MATCH_REGEX;
	const bool is_text = m->match == MATCH_EQUAL || m->match == MATCH_NOT_EQUAL;
	const struct store_matcher there = { STORE_THREAD_LABEL, MATCH_NOT_EQUAL, "", NULL };
	struct store_matcher part = { STORE_THREAD_LABEL, is_text ? MATCH_EQUAL : MATCH_REGEX, m->value, NULL };
	struct buf *sql = &q->text;

	buf_printf(sql, " AND %s(", is_positive ? "" : "NOT ");
	where_label(q, &part);
	buf_puts(sql, " OR ");
	part.label = STORE_EXE_LABEL;
	where_label(q, &part);
	if (matches_nothing(m)) {
		part = there;
		buf_puts(sql, " OR NOT (");
		where_label(q, &part);
		part.label = STORE_EXE_LABEL;
		buf_puts(sql, " OR ");
		where_label(q, &part);
		buf_puts(sql, ")");
	}
	buf_puts(sql, ")");
}

/* Trace and span are never a series'. One that is asked for is found by the column's index. */
static void where_link(struct click_sql *q, const struct store_matcher *m, const struct event_label *link)
{
	buf_puts(&q->text, " AND ");
	click_compare(q, m, link->text);
	if (m->match != MATCH_EQUAL || !*m->value)
		return;
	buf_printf(&q->text, " AND %s = unhex(", link->column);
	click_bind(q, m->value);
	buf_puts(&q->text, ")");
}

static void where_matches(struct click_sql *q, const struct store_matcher *m)
{
	const struct event_label *of_event = find_event_label(m->label);
	struct buf *sql = &q->text;

	if (!strcmp(m->label, STORE_COMM_LABEL)) {
		where_comm(q, m);
		return;
	}
	if (of_event && strcmp(of_event->column, "cpu") != 0) {
		where_link(q, m, of_event);
		return;
	}
	if (!strcmp(m->label, SERVICE_LABEL) && m->match == MATCH_EQUAL && *m->value) {
		/* Samples are sorted by service; '' stands for series that have no such label, though their samples may have
		 * it. */
		buf_puts(sql, " AND service IN (");
		click_bind(q, m->value);
		buf_puts(sql, ", '')");
	}
	buf_puts(sql, " AND (series IN ");
	where_series_have(q, m->label);
	buf_puts(sql, " AND ");
	click_compare_label(q, m);
	buf_puts(sql, ") OR (series NOT IN ");
	where_series_have(q, m->label);
	buf_puts(sql, ") AND ");
	if (of_event) {
		click_compare(q, m, of_event->text);
	} else {
		buf_puts(sql, "labels IN (SELECT id FROM hearth_labels WHERE ");
		click_compare_label(q, m);
		buf_puts(sql, ")");
	}
	buf_puts(sql, "))");
}

int64_t click_clamp_time(uint64_t ns)
{
	return ns > INT64_MAX ? INT64_MAX : (int64_t)ns;
}

void click_where(struct click_sql *q, const struct store_selection *sel, bool any_kind)
{
	buf_printf(&q->text, "time >= fromUnixTimestamp64Nano(%" PRId64 ") AND time < fromUnixTimestamp64Nano(%" PRId64 ")",
		   click_clamp_time(sel->from_ns), click_clamp_time(sel->to_ns));
	if (sel->kind && !any_kind) {
		buf_puts(&q->text, " AND sample_type = ");
		click_bind(q, sel->kind);
	}
	for (size_t i = 0; i < sel->matcher_count; i++)
		where_matches(q, &sel->matchers[i]);
}

/* --- sums --- */

static void begin_sums(struct click_sql *q, const struct store_selection *sel, bool any_kind, const char *keys,
		       const char *more_keys, const char *names)
{
	buf_printf(&q->text, "SELECT %s%s%s, sum(weight) AS w, count() AS n FROM hearth_samples WHERE ", more_keys,
		   *more_keys && *keys ? ", " : "", keys);
	click_where(q, sel, any_kind);
	buf_printf(&q->text, " GROUP BY %s%s%s", more_keys, *more_keys && *names ? ", " : "", names);
}

/* "(SELECT id, TEXT AS thread, TEXT AS exe FROM @table ...)", '' where there is none. */
static void select_comm(struct click_sql *q, const char *table)
{
	static const char *const labels[] = { STORE_THREAD_LABEL, STORE_EXE_LABEL }, *const names[] = { "thread", "exe" };
	struct buf *sql = &q->text;

	buf_puts(sql, "(SELECT id");
	for (size_t i = 0; i < ARRAY_LEN(labels); i++) {
		buf_puts(sql, ", value[indexOf(key, ");
		click_bind(q, labels[i]);
		buf_printf(sql, ")] AS %s", names[i]);
	}
	buf_printf(sql, " FROM %s WHERE has(key, ", table);
	click_bind(q, labels[0]);
	buf_puts(sql, ") OR has(key, ");
	click_bind(q, labels[1]);
	buf_puts(sql, "))");
}

/* Sums by the thread's name, or by the process's when that is not known. */
static void sum_by_comm(struct click_sql *q, const struct store_selection *sel, bool any_kind, const char *keys,
			const char *names)
{
	const char *comma = *names ? ", " : "";
	struct buf *sql = &q->text;

	buf_printf(sql,
		   "SELECT multiIf(s.thread != '', s.thread, l.thread != '', l.thread, s.exe != '', s.exe, l.exe) AS g%s%s,"
		   " sum(w), sum(n) FROM (",
		   comma, names);
	begin_sums(q, sel, any_kind, keys, "series, labels", names);
	buf_puts(sql, ") AS e ANY LEFT JOIN ");
	select_comm(q, "hearth_series");
	buf_puts(sql, " AS s ON e.series = s.id ANY LEFT JOIN ");
	select_comm(q, "hearth_labels");
	buf_printf(sql, " AS l ON e.labels = l.id GROUP BY g%s%s ORDER BY g", comma, names);
}

/* By service or cpu no label needs to be looked up, or only those of few series. */
static void sum_by_label(struct click_sql *q, const struct store_selection *sel, bool any_kind, const char *keys,
			 const char *names, const char *by)
{
	const struct event_label *of_event = find_event_label(by);
	char columns[32] = "series, labels";
	const char *comma = *names ? ", " : "";
	struct buf *sql = &q->text;

	if (of_event)
		snprintf(columns, sizeof(columns), "series, %s", of_event->column);
	buf_printf(sql, "SELECT if(s.is_there, s.text, %s) AS g%s%s, sum(w), sum(n) FROM (",
		   of_event ? of_event->text : "l.text", comma, names);
	begin_sums(q, sel, any_kind, keys, columns, names);
	buf_puts(sql, ") AS e ANY LEFT JOIN (SELECT id, true AS is_there, value[indexOf(key, ");
	click_bind(q, by);
	buf_puts(sql, ")] AS text FROM hearth_series WHERE has(key, ");
	click_bind(q, by);
	buf_puts(sql, ")) AS s ON e.series = s.id");
	if (!of_event) {
		buf_puts(sql, " ANY LEFT JOIN (SELECT id, value[indexOf(key, ");
		click_bind(q, by);
		buf_puts(sql, ")] AS text FROM hearth_labels WHERE has(key, ");
		click_bind(q, by);
		buf_puts(sql, ")) AS l ON e.labels = l.id");
	}
	buf_printf(sql, " GROUP BY g%s%s ORDER BY g", comma, names);
}

void click_sum(struct click_sql *q, const struct store_selection *sel, bool any_kind, const char *keys, const char *names,
	       const char *by)
{
	if (by && !strcmp(by, STORE_COMM_LABEL))
		sum_by_comm(q, sel, any_kind, keys, names);
	else if (by)
		sum_by_label(q, sel, any_kind, keys, names, by);
	else
		begin_sums(q, sel, any_kind, keys, "", names);
}

/* --- asking --- */

int click_ask(struct store_clickhouse *s, struct click_sql *q, const struct store_selection *sel, struct buf *answer)
{
	const uint64_t now_ns = clock_mono_ns(), end_ns = sel ? sel->deadline_ns : 0;
	struct click_request r = { .sql = buf_text(&q->text), .timeout_ns = ANY_TIME_S * NSEC_PER_SEC };

	int err = sel ? store_selection_check(sel) : 0;

	if (err)
		return err;
	if (sel && sel->matcher_count > STORE_MAX_MATCHERS)
		return -E2BIG;
	if (end_ns)
		r.timeout_ns = end_ns - now_ns;
	buf_printf(&q->params,
		   "&max_execution_time=%" PRIu64 "&max_memory_usage=%" PRIu64 "&max_bytes_before_external_group_by=%" PRIu64
		   "&max_query_size=%" PRIu64 "&distributed_product_mode=global&join_use_nulls=0",
		   (uint64_t)(r.timeout_ns / NSEC_PER_SEC + 1), (uint64_t)MAX_MEMORY_MB << 20, (uint64_t)SPILL_MB << 20,
		   (uint64_t)MAX_QUERY_MB << 20);
	r.params = buf_text(&q->params);
	if (q->text.failed || q->params.failed)
		return -ENOMEM;
	return click_request(s->reader, &r, answer);
}
