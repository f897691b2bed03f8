/* SPDX-License-Identifier: Apache-2.0 */
/* Lists (labels, values, series) and weights over time (timeline, heat map). */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "backend/api/api_call.h"
#include "backend/store/store_read.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/intern.h"
#include "base/vec.h"
#include "proto/profiles.h"

enum {
	DEFAULT_VALUES = 1000,
	MOST_VALUES = 100000,
	DEFAULT_POINTS = 240,
	MOST_POINTS = 20000,
	DEFAULT_SERIES = 10,
	MOST_SERIES = 1000,
	DEFAULT_COLUMNS = 120,
	DEFAULT_HEAT_ROWS = 50,
	MOST_CELLS = 1 << 20,
};

/* --- labels --- */

static int write_label(void *arg, const char *label)
{
	json_string(arg, label);
	return 0;
}

static int list_labels(struct api_call *call, const struct store_selection *sel)
{
	return call->ctx.store->read->labels(call->ctx.store, sel, write_label, &call->json);
}

int api_labels(struct api_call *call)
{
	return api_write_list(call, "labels", list_labels);
}

/* --- values of a label --- */

struct value {
	char *text; /* owned */
	int64_t weight;
	uint64_t events;
};

struct values {
	struct value *items;
	size_t count, cap;
	const char *prefix;
};

static void values_fini(struct values *v)
{
	for (size_t i = 0; i < v->count; i++)
		free(v->items[i].text);
	free(v->items);
}

static int take_value(void *arg, const char *text, int64_t weight, uint64_t events)
{
	struct values *v = arg;

	if (v->prefix && strncmp(text, v->prefix, strlen(v->prefix)) != 0)
		return 0;
	if (vec_reach(&v->items, &v->cap, v->count))
		return -ENOMEM;
	v->items[v->count] = (struct value){ .text = strdup(text), .weight = weight, .events = events };
	return v->items[v->count++].text ? 0 : -ENOMEM;
}

static int heaviest_value(const void *a, const void *b)
{
	const struct value *x = a, *y = b;

	if (x->weight != y->weight)
		return x->weight > y->weight ? -1 : 1;
	return strcmp(x->text, y->text);
}

/* The values of @label, heaviest first. */
static int read_values(struct api_call *call, const struct query *q, const char *label, struct values *v)
{
	int err = call->ctx.store->read->label_values(call->ctx.store, &q->sel, label, take_value, v);

	if (!err && v->count)
		qsort(v->items, v->count, sizeof(*v->items), heaviest_value);
	return err;
}

int api_values(struct api_call *call)
{
	AUTO(values_fini) struct values v = { .prefix = query_param(call->params, "prefix") };
	AUTO(query_fini) struct query q = { 0 };
	const char *label = api_label(call, "label");
	struct json *j = &call->json;
	uint64_t limit;
	int err = query_number(call->params, "limit", DEFAULT_VALUES, 1, MOST_VALUES, &limit, &call->error);

	if (!err && !label) {
		buf_puts(&call->error, "label: say of which label; /api/v1/labels lists them");
		err = -EINVAL;
	}
	if (!err)
		err = api_read(call, &q, "");
	if (!err)
		err = read_values(call, &q, label, &v);
	if (err)
		return err;
	json_object_begin(j);
	api_write_about(call, &q);
	json_key(j, "values");
	json_array_begin(j);
	for (size_t i = 0; i < v.count && i < limit; i++) {
		json_object_begin(j);
		api_write_text(j, "value", v.items[i].text);
		api_write_number(j, "weight", v.items[i].weight);
		api_write_number(j, "events", (int64_t)v.items[i].events);
		json_object_end(j);
	}
	json_array_end(j);
	json_object_end(j);
	return 0;
}

/* --- series --- */

struct series_fill {
	struct values values; /* text: the labels as a JSON object */
	struct buf json;
};

static int take_series(void *arg, const struct key_values *labels, int64_t weight, uint64_t events)
{
	struct series_fill *fill = arg;
	AUTO(buf_fini) struct buf text = BUF_EMPTY;
	struct json j;

	buf_reset(&fill->json);
	json_init(&j, &fill->json, 0);
	json_object_begin(&j);
	for (uint32_t i = 0; i < labels->count; i++) {
		const struct key_value *kv = &labels->items[i];

		buf_reset(&text);
		profiles_value_append(NULL, &kv->value, &text); /* lists and bytes are no labels to choose by */
		json_key_n(&j, kv->key.data, kv->key.len);
		json_string_n(&j, buf_text(&text), text.len);
	}
	json_object_end(&j);
	return take_value(&fill->values, buf_text(&fill->json), weight, events);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(((const struct value *)a)->text, ((const struct value *)b)->text);
}

/* Equal ones become one; then the heaviest comes first. */
static void merge_values(struct values *v)
{
	size_t kept = 0;

	if (!v->count)
		return;
	qsort(v->items, v->count, sizeof(*v->items), by_text);
	for (size_t i = 1; i < v->count; i++) {
		if (by_text(&v->items[kept], &v->items[i])) {
			v->items[++kept] = v->items[i];
			continue;
		}
		v->items[kept].weight = weights_add(v->items[kept].weight, v->items[i].weight);
		v->items[kept].events += v->items[i].events;
		free(v->items[i].text);
	}
	v->count = kept + 1;
	qsort(v->items, v->count, sizeof(*v->items), heaviest_value);
}

int api_series(struct api_call *call)
{
	struct series_fill fill = { .json = BUF_EMPTY };
	AUTO(query_fini) struct query q = { 0 };
	struct json *j = &call->json;
	uint64_t limit;
	int err = query_number(call->params, "limit", DEFAULT_VALUES, 1, MOST_VALUES, &limit, &call->error);

	if (!err)
		err = query_read(&q, &call->ctx, call->params, "", &call->error);
	if (!err)
		err = call->ctx.store->read->series(call->ctx.store, &q.sel, take_series, &fill);
	if (!err) {
		merge_values(&fill.values);
		json_object_begin(j);
		json_key(j, "series");
		json_array_begin(j);
		for (size_t i = 0; i < fill.values.count && i < limit; i++) {
			const struct value *v = &fill.values.items[i];

			json_object_begin(j);
			json_key(j, "labels");
			json_raw(j, v->text);
			api_write_number(j, "weight", v->weight);
			api_write_number(j, "events", (int64_t)v->events);
			json_object_end(j);
		}
		json_array_end(j);
		json_object_end(j);
	}
	values_fini(&fill.values);
	buf_fini(&fill.json);
	return err;
}

/* --- timeline --- */

struct timeline_fill {
	struct intern *names; /* of the series that are shown, heaviest first */
	uint32_t shown;
	int64_t *weights; /* [series][point]; the last series is all others */
	uint64_t points, events;
	int64_t total;
};

static int take_bucket(void *arg, const char *group, uint32_t bucket, int64_t weight, uint64_t events)
{
	struct timeline_fill *fill = arg;
	uint32_t series = fill->shown;
	int is_new;

	if (bucket >= fill->points)
		return 0;
	fill->events += events;
	if (fill->names) {
		is_new = intern_add(fill->names, group, strlen(group), &series);
		if (is_new < 0)
			return is_new;
		if (series > fill->shown)
			series = fill->shown;
	}
	fill->weights[series * fill->points + bucket] = weights_add(fill->weights[series * fill->points + bucket], weight);
	fill->total = weights_add(fill->total, weight);
	return 0;
}

static void write_weights(struct json *j, const char *value, const int64_t *weights, uint64_t points)
{
	int64_t total = 0;

	for (uint64_t i = 0; i < points; i++)
		total = weights_add(total, weights[i]);
	json_object_begin(j);
	api_write_text(j, "value", value);
	api_write_number(j, "total", total);
	json_key(j, "weights");
	json_array_begin(j);
	for (uint64_t i = 0; i < points; i++)
		json_i64(j, weights[i]);
	json_array_end(j);
	json_object_end(j);
}

/* The store has sums of minutes: has the range begin with one, and returns how long a piece is when there are @points. */
static uint64_t whole_minutes(struct store_selection *sel, uint64_t points)
{
	sel->from_ns -= sel->from_ns % MINUTE_NS;
	return ((sel->to_ns - sel->from_ns + points - 1) / points + MINUTE_NS - 1) / MINUTE_NS * MINUTE_NS;
}

/* How long a piece is, and how many there are: step=SECONDS, or points. */
static int read_step(struct api_call *call, struct query *q, uint64_t *step_ns, uint64_t *points)
{
	const char *step = query_param(call->params, "step");
	uint64_t range_ns = q->sel.to_ns - q->sel.from_ns;
	char *end = NULL;
	double seconds = step && *step ? strtod(step, &end) : 0;
	int err;

	if (end && (*end || !(seconds > 0) || seconds > 1e9)) {
		buf_printf(&call->error, "step: '%s' is no number of seconds", step);
		return -EINVAL;
	}
	err = query_number(call->params, "points", DEFAULT_POINTS, 1, MOST_POINTS, points, &call->error);
	if (err)
		return err;
	*step_ns = end ? (uint64_t)(seconds * (double)NSEC_PER_SEC) : (range_ns + *points - 1) / *points;
	if (!*step_ns)
		*step_ns = 1;
	if (!end && *step_ns >= MINUTE_NS) {
		*step_ns = whole_minutes(&q->sel, *points);
		range_ns = q->sel.to_ns - q->sel.from_ns;
	}
	*points = (range_ns + *step_ns - 1) / *step_ns;
	if (*points <= MOST_POINTS)
		return 0;
	buf_printf(&call->error, "step: more than %d pieces", MOST_POINTS);
	return -EINVAL;
}

/* Chooses the values that are shown by themselves: the heaviest ones, in their order. */
static int choose_series(struct api_call *call, const struct query *q, const char *by, uint64_t limit,
			 struct timeline_fill *fill, struct values *values)
{
	int err = read_values(call, q, by, values);

	fill->names = intern_new();
	if (!fill->names)
		return -ENOMEM;
	for (size_t i = 0; !err && i < values->count && i < limit; i++) {
		uint32_t number;

		err = intern_add(fill->names, values->items[i].text, strlen(values->items[i].text), &number);
		err = err < 0 ? err : 0;
		fill->shown++;
	}
	return err;
}

static int write_timeline(struct api_call *call, const struct query *q, const struct values *values,
			  const struct timeline_fill *fill, uint64_t step_ns)
{
	struct json *j = &call->json;
	const int64_t *rest = fill->weights + fill->shown * fill->points;
	bool has_rest = !fill->names;
	int err;

	for (uint64_t i = 0; i < fill->points; i++)
		has_rest |= rest[i] != 0;
	json_object_begin(j);
	api_write_about(call, q);
	api_write_time(j, "step", step_ns);
	api_write_number(j, "total", fill->total);
	err = api_write_nearest(call, q, "", fill->events);
	json_key(j, "series");
	json_array_begin(j);
	for (uint32_t i = 0; i < fill->shown; i++)
		write_weights(j, values->items[i].text, fill->weights + i * fill->points, fill->points);
	if (has_rest)
		write_weights(j, fill->names ? "(other)" : "", rest, fill->points);
	json_array_end(j);
	json_object_end(j);
	return err;
}

int api_timeline(struct api_call *call)
{
	AUTO(values_fini) struct values values = { 0 };
	AUTO(query_fini) struct query q = { 0 };
	struct timeline_fill fill = { 0 };
	const char *by = api_label(call, "by");
	uint64_t limit, step_ns;
	int err = query_number(call->params, "limit", DEFAULT_SERIES, 1, MOST_SERIES, &limit, &call->error);

	if (!err)
		err = query_read(&q, &call->ctx, call->params, "", &call->error);
	if (!err)
		err = read_step(call, &q, &step_ns, &fill.points);
	if (!err)
		err = query_cover(&q, &call->ctx);
	if (!err && by)
		err = choose_series(call, &q, by, limit, &fill, &values);
	if (!err) {
		fill.weights = calloc((fill.shown + 1) * fill.points + 1, sizeof(*fill.weights));
		err = fill.weights
			      ? call->ctx.store->read->sum_times(call->ctx.store, &q.sel, step_ns, by, take_bucket, &fill)
			      : -ENOMEM;
	}
	if (!err)
		err = write_timeline(call, &q, &values, &fill, step_ns);
	intern_free(fill.names);
	free(fill.weights);
	return err;
}

/* --- heat map --- */

struct heat {
	uint64_t columns, rows;
	int64_t *cells;
	int64_t total;
	uint64_t events;
};

static int take_cell(void *arg, const char *group, uint32_t bucket, int64_t weight, uint64_t events)
{
	struct heat *heat = arg;

	(void)group;
	heat->events += events;
	/* The range is no multiple of the step: what is left goes to the last cell. */
	if (bucket >= heat->columns * heat->rows)
		bucket = heat->columns * heat->rows - 1;
	heat->cells[bucket] = weights_add(heat->cells[bucket], weight);
	heat->total = weights_add(heat->total, weight);
	return 0;
}

int api_heatmap(struct api_call *call)
{
	AUTO(query_fini) struct query q = { 0 };
	struct heat heat = { 0 };
	struct json *j = &call->json;
	uint64_t step_ns;
	int err = query_number(call->params, "columns", DEFAULT_COLUMNS, 1, MOST_POINTS, &heat.columns, &call->error);

	if (!err)
		err = query_number(call->params, "rows", DEFAULT_HEAT_ROWS, 1, MOST_POINTS, &heat.rows, &call->error);
	if (!err && heat.columns * heat.rows > MOST_CELLS) {
		buf_printf(&call->error, "columns, rows: more than %d cells", MOST_CELLS);
		err = -EINVAL;
	}
	if (!err)
		err = api_read(call, &q, "");
	if (err)
		return err;
	step_ns = (q.sel.to_ns - q.sel.from_ns) / (heat.columns * heat.rows);
	if (!step_ns)
		step_ns = 1;
	heat.cells = calloc(heat.columns * heat.rows, sizeof(*heat.cells));
	err = heat.cells ? call->ctx.store->read->sum_times(call->ctx.store, &q.sel, step_ns, NULL, take_cell, &heat)
			 : -ENOMEM;
	if (!err) {
		json_object_begin(j);
		api_write_about(call, &q);
		api_write_number(j, "columns", (int64_t)heat.columns);
		api_write_number(j, "rows", (int64_t)heat.rows);
		api_write_time(j, "column_seconds", step_ns * heat.rows);
		api_write_number(j, "total", heat.total);
		err = api_write_nearest(call, &q, "", heat.events);
		json_key(j, "weights");
		json_array_begin(j);
		for (uint64_t i = 0; i < heat.columns * heat.rows; i++)
			json_i64(j, heat.cells[i]);
		json_array_end(j);
		json_object_end(j);
	}
	free(heat.cells);
	return err;
}
