/* SPDX-License-Identifier: Apache-2.0 */
/* Lists to choose from: keys of labels, series, kinds of samples, executables. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "backend/store/executables.h"
#include "backend/store/clickhouse/click.h"
#include "base/cleanup.h"

/* Asks and keeps the answer's rows; the lock is held from here to finish(). */
static int start(struct store *store, struct click_sql *q, const struct store_selection *sel, struct buf *answer,
		 struct row_reader *r)
{
	struct store_clickhouse *s = store_clickhouse_of(store);
	int err;

	pthread_mutex_lock(&s->read_lock);
	err = click_ask(s, q, sel, answer);
	*r = rows_of(answer);
	return err;
}

static int finish(struct store *store, const struct row_reader *r, int err)
{
	pthread_mutex_unlock(&store_clickhouse_of(store)->read_lock);
	return err ? err : r->is_bad ? -EBADMSG : 0;
}

/* --- keys --- */

int click_labels(struct store *store, const struct store_selection *sel, int (*fn)(void *arg, const char *label), void *arg)
{
	static const char *const tables[] = { "series", "labels" };
	AUTO(click_sql_fini) struct click_sql q = { 0 };
	AUTO(buf_fini) struct buf answer = BUF_EMPTY, text = BUF_EMPTY;
	struct row_reader r;
	int err;

	buf_puts(&q.text, "SELECT DISTINCT name FROM (");
	for (size_t i = 0; i < ARRAY_LEN(tables); i++) {
		buf_printf(&q.text,
			   "SELECT toString(arrayJoin(key)) AS name FROM hearth_%s WHERE id IN (SELECT %s FROM "
			   "hearth_samples WHERE ",
			   tables[i], tables[i]);
		click_where(&q, sel, false);
		buf_puts(&q.text, ") UNION ALL ");
	}
	buf_puts(&q.text, "SELECT 'cpu.logical_number' FROM (SELECT max(cpu) AS most FROM hearth_samples WHERE ");
	click_where(&q, sel, false);
	buf_puts(&q.text, ") WHERE most > 0 UNION ALL SELECT arrayJoin(['" STORE_TRACE_LABEL "', '" STORE_SPAN_LABEL
			  "']) FROM (SELECT max(span) AS most FROM hearth_samples WHERE ");
	click_where(&q, sel, false);
	buf_puts(&q.text, ") WHERE most != '') ORDER BY name");
	err = start(store, &q, sel, &answer, &r);
	while (!err && has_row(&r)) {
		struct str s = get_text(&r);

		buf_reset(&text);
		buf_append(&text, s.data, s.len);
		if (!r.is_bad)
			err = text.failed ? -ENOMEM : fn(arg, buf_text(&text));
	}
	return finish(store, &r, err);
}

/* --- kinds --- */

static void add_text(struct buf *texts, struct str s)
{
	buf_append(texts, s.data, s.len);
	buf_putc(texts, 0);
}

int click_kinds(struct store *store, const struct store_selection *sel, int (*fn)(void *arg, const struct store_kind *kind),
		void *arg)
{
	AUTO(click_sql_fini) struct click_sql q = { 0 };
	AUTO(buf_fini) struct buf answer = BUF_EMPTY, texts = BUF_EMPTY;
	struct row_reader r;
	int err;

	buf_puts(&q.text,
		 "SELECT sample_type, sample_unit, period_type, period_unit, period, sum(e.n) AS events FROM (SELECT series,"
		 " count() AS n FROM hearth_samples WHERE ");
	click_where(&q, sel, true);
	buf_puts(&q.text, " GROUP BY series) AS e ANY INNER JOIN hearth_series AS s ON e.series = s.id GROUP BY sample_type,"
			  " sample_unit, period_type, period_unit, period ORDER BY events DESC, sample_type LIMIT 64");
	err = start(store, &q, sel, &answer, &r);
	while (!err && has_row(&r)) {
		struct store_kind kind;
		const char *at[4];

		buf_reset(&texts);
		for (size_t i = 0; i < 4; i++)
			add_text(&texts, get_text(&r));
		at[0] = buf_text(&texts);
		for (size_t i = 1; i < 4; i++)
			at[i] = texts.failed ? "" : at[i - 1] + strlen(at[i - 1]) + 1;
		kind = (struct store_kind){ at[0], at[1], at[2], at[3], (int64_t)get_number(&r, 8), get_number(&r, 8) };
		if (!r.is_bad)
			err = texts.failed ? -ENOMEM : fn(arg, &kind);
	}
	return finish(store, &r, err);
}

/* --- series --- */

static void skip_texts(struct row_reader *r)
{
	for (uint64_t i = get_count(r); i > 0 && !r->is_bad; i--)
		(void)get_text(r);
}

/* One resource: columns of keys, values and kinds, and what it weighs. Lists and bytes are no labels to choose by. */
static int tell_series(struct row_reader *r,
		       int (*fn)(void *arg, const struct key_values *labels, int64_t weight, uint64_t events), void *arg)
{
	struct row_reader keys = *r;
	const uint64_t count = get_count(&keys); /* the table has them in 16 bits */
	AUTO_FREE struct key_value *items = count <= UINT16_MAX ? calloc(count + 1, sizeof(*items)) : NULL;
	struct key_values labels = { items, (uint32_t)count };
	int64_t weight;
	uint64_t events;

	if (!items)
		return count <= UINT16_MAX ? -ENOMEM : -EBADMSG;
	skip_texts(r);
	for (uint64_t i = 0; i < count; i++)
		items[i].key = get_text(&keys);
	(void)get_count(r);
	for (uint64_t i = 0; i < count; i++)
		items[i].value = (struct any_value){ .kind = VALUE_STRING, .string = get_text(r) };
	(void)get_count(r);
	for (uint64_t i = 0; i < count; i++)
		if (get_number(r, 1) >= VALUE_ARRAY)
			items[i].value.string = STR("");
	weight = (int64_t)get_number(r, 8);
	events = get_number(r, 8);
	return r->is_bad || keys.is_bad ? -EBADMSG : fn(arg, &labels, weight, events);
}

int click_series(struct store *store, const struct store_selection *sel,
		 int (*fn)(void *arg, const struct key_values *labels, int64_t weight, uint64_t events), void *arg)
{
	AUTO(click_sql_fini) struct click_sql q = { 0 };
	AUTO(buf_fini) struct buf answer = BUF_EMPTY;
	struct row_reader r;
	int err;

	buf_puts(&q.text, "SELECT arraySlice(s.key, 1, s.resource_keys) AS k, arraySlice(s.value, 1, s.resource_keys) AS v,"
			  " arraySlice(s.kind, 1, s.resource_keys) AS t, sum(e.w) AS w, sum(e.n) AS n FROM (");
	click_sum(&q, sel, false, "series", "series", NULL);
	buf_puts(&q.text, ") AS e ANY INNER JOIN hearth_series AS s ON e.series = s.id GROUP BY k, v, t");
	err = start(store, &q, sel, &answer, &r);
	while (!err && has_row(&r))
		err = tell_series(&r, fn, arg);
	return finish(store, &r, err);
}

/* --- executables --- */

static int exe_of_frame(struct store *store, uint32_t frame, struct store_executable *ret)
{
	const struct click_frame_more *more = click_frame_more(store_clickhouse_of(store)->names, frame);
	struct store_frame f;
	int err = click_frame(store, frame, &f);

	if (err)
		return err;
	ret->named_frames = *f.function != '\0';
	if (!*f.path && !*f.build_id && !more->memory_start && !more->memory_limit)
		return 0; /* without a mapping */
	ret->path = f.path;
	ret->build_id = f.build_id;
	ret->id_kind = more->id_kind;
	ret->process = f.process;
	return 0;
}

int click_executables(struct store *store, const struct store_selection *sel,
		      int (*fn)(void *arg, const struct store_executable *e), void *arg)
{
	struct store_clickhouse *s = store_clickhouse_of(store);
	int err;

	pthread_mutex_lock(&s->read_lock); /* texts of frames are used after the sums, too */
	err = executables_count(store, sel, exe_of_frame, fn, arg);
	pthread_mutex_unlock(&s->read_lock);
	return err;
}
