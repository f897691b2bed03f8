/* SPDX-License-Identifier: Apache-2.0 */
/* Pyroscope's SelectSeries, SelectMergeStacktraces and Series: weights over time, the flame graph, the series. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "backend/compat/pyroscope.h"
#include "backend/query/graph_json.h"
#include "backend/store/store_read.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/intern.h"
#include "base/vec.h"
#include "proto/profiles.h"

enum {
	DEFAULT_NODES = 16384,
	LEAST_NODES = 2,
	MOST_NODES = 200000,
	MOST_POINTS = 20000,
	MOST_SERIES = 10000,
	NS_PER_MS = 1000000,
};

/* A count of 0 or less, or none, means @preset: "no limit". */
static int read_count(struct api_call *call, const char *key, uint64_t preset, uint64_t least, uint64_t most, uint64_t *ret)
{
	const char *text = query_param(call->params, key);

	*ret = preset;
	if (!text || text[0] == '-' || !strcmp(text, "0"))
		return 0;
	return query_number(call->params, key, preset, least, most, ret, &call->error);
}

/* --- SelectSeries --- */

struct point {
	uint32_t group, bucket;
	int64_t weight;
};

struct points {
	struct intern *groups;
	struct buf items; /* struct point */
	int64_t *totals;  /* of groups, once all is there */
	uint32_t *order;  /* heaviest first */
};

static void points_fini(struct points *p)
{
	intern_free(p->groups);
	buf_fini(&p->items);
	free(p->totals);
	free(p->order);
}

static int take_point(void *arg, const char *group, uint32_t bucket, int64_t weight, uint64_t events)
{
	struct points *p = arg;
	struct point point = { .bucket = bucket, .weight = weight };
	int err = intern_add(p->groups, group, strlen(group) + 1, &point.group);

	(void)events;
	if (err < 0)
		return err;
	buf_append(&p->items, &point, sizeof(point));
	return p->items.failed ? -ENOMEM : 0;
}

static int by_bucket(const void *a, const void *b)
{
	const struct point *x = a, *y = b;

	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	return x->bucket < y->bucket ? -1 : x->bucket > y->bucket;
}

static int heaviest_group(const void *a, const void *b, void *arg)
{
	const struct points *p = arg;
	int64_t x = p->totals[*(const uint32_t *)a], y = p->totals[*(const uint32_t *)b];

	return x > y   ? -1
	       : x < y ? 1
		       : strcmp(intern_get(p->groups, *(const uint32_t *)a, NULL),
				intern_get(p->groups, *(const uint32_t *)b, NULL));
}

/* Points by group and time; groups by weight. */
static int sort_points(struct points *p)
{
	uint32_t groups = intern_count(p->groups);
	size_t count = p->items.len / sizeof(struct point);
	const struct point *items = (const struct point *)p->items.data;

	p->totals = calloc(groups + 1, sizeof(*p->totals));
	p->order = calloc(groups + 1, sizeof(*p->order));
	if (!p->totals || !p->order)
		return -ENOMEM;
	if (count)
		qsort(p->items.data, count, sizeof(*items), by_bucket);
	for (size_t i = 0; i < count; i++)
		p->totals[items[i].group] += items[i].weight;
	for (uint32_t i = 0; i < groups; i++)
		p->order[i] = i;
	qsort_r(p->order, groups, sizeof(*p->order), heaviest_group, p);
	return 0;
}

/* A point stands at the end of its step, as Pyroscope has it. */
static void write_points(struct connect_writer *w, const struct points *p, uint32_t group, const struct question *qu,
			 uint64_t step_ns)
{
	const struct point *items = (const struct point *)p->items.data;
	size_t count = p->items.len / sizeof(*items), i = 0;

	while (i < count && items[i].group != group)
		i++;
	connect_list_begin(w, "points");
	while (i < count && items[i].group == group) {
		uint64_t end_ns = qu->q.sel.from_ns + (items[i].bucket + 1) * step_ns;
		uint32_t bucket = items[i].bucket;
		int64_t weight = 0;

		for (; i < count && items[i].group == group && items[i].bucket == bucket; i++)
			weight = weights_add(weight, items[i].weight);
		connect_message_begin(w, 2, NULL);
		connect_double(w, 1, "value", (double)weight * (double)qu->scale);
		connect_int64(w, 2, "timestamp",
			      (int64_t)((end_ns < qu->q.sel.to_ns ? end_ns : qu->q.sel.to_ns) / NS_PER_MS));
		connect_message_end(w);
	}
	connect_list_end(w);
}

static void write_label(struct connect_writer *w, const char *name, const char *value)
{
	connect_message_begin(w, 1, NULL);
	connect_text(w, 1, "name", name);
	connect_text(w, 2, "value", value);
	connect_message_end(w);
}

static void write_series(struct api_call *call, const struct points *p, const struct question *qu, const char *by,
			 uint64_t step_ns, uint64_t limit)
{
	uint32_t groups = intern_count(p->groups);
	struct connect_writer w;

	pyroscope_answer(call, &w);
	connect_list_begin(&w, "series");
	for (uint32_t i = 0; i < groups && i < limit; i++) {
		const char *value = intern_get(p->groups, p->order[i], NULL);

		connect_message_begin(&w, 1, NULL);
		connect_list_begin(&w, "labels");
		if (*by && *value)
			write_label(&w, by, value);
		connect_list_end(&w);
		write_points(&w, p, p->order[i], qu, step_ns);
		connect_message_end(&w);
	}
	connect_list_end(&w);
	connect_writer_end(&w);
}

static int read_step(struct api_call *call, const struct question *qu, uint64_t *ret)
{
	const char *text = query_param(call->params, "step");
	double seconds = text ? strtod(text, NULL) : 0;
	uint64_t range_ns = qu->q.sel.to_ns - qu->q.sel.from_ns;

	if (!(seconds >= 0.001) || seconds > 1e9) {
		buf_puts(&call->error, "step: seconds, 0.001 and more");
		return -EINVAL;
	}
	*ret = (uint64_t)(seconds * (double)NSEC_PER_SEC);
	if (range_ns / *ret < MOST_POINTS)
		return 0;
	buf_printf(&call->error, "step: more than %d points", MOST_POINTS);
	return -EINVAL;
}

int api_select_series(struct api_call *call)
{
	AUTO(question_fini) struct question qu = { 0 };
	AUTO(points_fini) struct points points = { .groups = intern_new() };
	const char *by;
	uint64_t step_ns, limit;
	int err = points.groups ? pyroscope_read(call, &qu) : -ENOMEM;

	err = err ? err : pyroscope_param(call, "by", &by);
	err = err ? err : read_step(call, &qu, &step_ns);
	err = err ? err : read_count(call, "limit", MOST_SERIES, 1, MOST_SERIES, &limit);
	if (!err && *by)
		err = pyroscope_label(call, &qu.q.sel, by, &qu.by);
	if (!err && !qu.is_absent)
		err = call->ctx.store->read->sum_times(call->ctx.store, &qu.q.sel, step_ns, qu.by, take_point, &points);
	err = err ? err : sort_points(&points);
	if (!err)
		write_series(call, &points, &qu, by, step_ns, limit);
	return err;
}

/* --- SelectMergeStacktraces --- */

/* Rows of boxes, callers above. A box is four numbers: how far it is from the end of the box before it, its total, its own,
 * its name. */
struct level {
	struct buf boxes; /* int64_t */
	int64_t end;	  /* of the last box */
	int64_t next;	  /* where the next one begins */
};

struct levels {
	struct level *items;
	uint32_t count, cap;
	struct intern *names;
	int64_t scale, most_self, total;
};

static void levels_fini(struct levels *l)
{
	for (uint32_t i = 0; i < l->count; i++)
		buf_fini(&l->items[i].boxes);
	free(l->items);
	intern_free(l->names);
}

static int make_level(struct levels *l, uint32_t depth)
{
	if (depth < l->count)
		return 0;
	if (vec_reach(&l->items, &l->cap, l->count))
		return -ENOMEM;
	l->items[l->count++] = (struct level){ .end = 0 };
	return 0;
}

static int take_box(void *arg, const struct graph_row *row)
{
	struct levels *l = arg;
	const char *name = strcmp(row->name, "(other)") ? row->name : "other"; /* Grafana knows that name */
	int64_t self = row->self * l->scale, total = row->total * l->scale;
	uint32_t number;
	int err = intern_add(l->names, name, strlen(name) + 1, &number);

	err = err < 0 ? err : make_level(l, row->depth);
	err = err ? err : make_level(l, row->depth + 1);
	if (err)
		return err;
	struct level *level = &l->items[row->depth];
	const int64_t box[] = { level->next - level->end, total, self, number };

	buf_append(&level->boxes, box, sizeof(box));
	l->items[row->depth + 1].next = level->next + self; /* callees stand behind what is its own */
	level->end = level->next = level->next + total;
	l->most_self = self > l->most_self ? self : l->most_self;
	l->total = row->depth ? l->total : total;
	return level->boxes.failed ? -ENOMEM : 0;
}

static void write_levels(struct api_call *call, const struct levels *l)
{
	struct connect_writer w;

	pyroscope_answer(call, &w);
	connect_message_begin(&w, 1, "flamegraph");
	connect_list_begin(&w, "names");
	for (uint32_t i = 0; i < intern_count(l->names); i++)
		connect_text(&w, 1, NULL, intern_get(l->names, i, NULL));
	connect_list_end(&w);
	connect_list_begin(&w, "levels");
	for (uint32_t i = 0; i < l->count && l->items[i].boxes.len; i++) {
		connect_message_begin(&w, 2, NULL);
		connect_int64s(&w, 1, "values", (const int64_t *)l->items[i].boxes.data,
			       l->items[i].boxes.len / sizeof(int64_t));
		connect_message_end(&w);
	}
	connect_list_end(&w);
	connect_int64(&w, 3, "total", l->total);
	connect_int64(&w, 4, "maxSelf", l->most_self);
	connect_message_end(&w);
	connect_writer_end(&w);
}

static int check_format(struct api_call *call)
{
	static const char *const good[] = { "0", "1", "PROFILE_FORMAT_UNSPECIFIED", "PROFILE_FORMAT_FLAMEGRAPH" };
	const char *format = query_param(call->params, "format");

	for (size_t i = 0; format && i < ARRAY_LEN(good); i++)
		if (!strcmp(format, good[i]))
			return 0;
	if (!format)
		return 0;
	buf_puts(&call->error, "format: hearth has flame graphs only");
	return -EINVAL;
}

static int fill_graph(struct api_call *call, const struct query *q, struct graph *graph)
{
	struct api_fill fill = { .sides = { q }, .place = api_place, .arg = graph };

	return api_fill(call, &fill);
}

int api_select_stacktraces(struct api_call *call)
{
	AUTO(question_fini) struct question qu = { 0 };
	AUTO(levels_fini) struct levels levels = { .names = intern_new() };
	struct graph *graph = NULL;
	uint64_t nodes;
	int err = levels.names ? check_format(call) : -ENOMEM;

	err = err ? err : pyroscope_read(call, &qu);
	err = err ? err : read_count(call, "max_nodes", DEFAULT_NODES, LEAST_NODES, MOST_NODES, &nodes);
	if (!err) {
		graph = graph_new(call->ctx.functions, 0, (uint32_t)nodes);
		err = graph ? 0 : -ENOMEM;
	}
	if (!err && !qu.is_absent)
		err = fill_graph(call, &qu.q, graph);
	if (!err)
		graph_sum(graph);
	levels.scale = qu.scale;
	err = err ? err : graph_each_row(graph, "total", (uint32_t)nodes, take_box, &levels);
	if (!err)
		write_levels(call, &levels);
	graph_free(graph);
	return err;
}

/* --- Series --- */

struct series_list {
	struct api_call *call;
	struct intern *sets; /* each a written list of labels */
	const char *type;    /* the profile type that is being listed */
};

static bool is_wanted(const struct api_call *call, const char *name)
{
	bool any = false;

	for (size_t i = 0; i < call->params->count; i++) {
		if (strcmp(call->params->items[i].key, "by") != 0)
			continue;
		any = true;
		if (!strcmp(call->params->items[i].value, name))
			return true;
	}
	return !any;
}

/* Names and values, each with a NUL behind it: one set of labels. */
static void add_pair(struct buf *set, const char *name, const char *value)
{
	buf_append(set, name, strlen(name) + 1);
	buf_append(set, value, strlen(value) + 1);
}

static int take_series(void *arg, const struct key_values *labels, int64_t weight, uint64_t events)
{
	struct series_list *list = arg;
	AUTO(buf_fini) struct buf set = BUF_EMPTY;
	AUTO(buf_fini) struct buf name = BUF_EMPTY;
	AUTO(buf_fini) struct buf value = BUF_EMPTY;
	uint32_t number;
	int err;

	(void)weight;
	(void)events;
	if (is_wanted(list->call, PROFILE_TYPE_LABEL))
		add_pair(&set, PROFILE_TYPE_LABEL, list->type);
	for (uint32_t i = 0; i < labels->count; i++) {
		const struct key_value *kv = &labels->items[i];

		buf_reset(&name);
		buf_reset(&value);
		for (size_t c = 0; c < kv->key.len; c++)
			buf_putc(&name, pyroscope_char(kv->key.data[c]));
		profiles_value_append(NULL, &kv->value, &value);
		if (value.len && is_wanted(list->call, buf_text(&name)))
			add_pair(&set, buf_text(&name), buf_text(&value));
	}
	if (set.failed || name.failed || value.failed)
		return -ENOMEM;
	err = set.len ? intern_add(list->sets, set.data, set.len, &number) : 0;
	return err < 0 ? err : 0;
}

static void write_sets(struct api_call *call, const struct intern *sets)
{
	struct connect_writer w;

	pyroscope_answer(call, &w);
	connect_list_begin(&w, "labelsSet");
	for (uint32_t i = 0; i < intern_count(sets); i++) {
		size_t len;
		const char *at = intern_get(sets, i, &len), *end = at + len;

		connect_message_begin(&w, 2, NULL);
		connect_list_begin(&w, "labels");
		while (at < end) {
			const char *value = at + strlen(at) + 1;

			write_label(&w, at, value);
			at = value + strlen(value) + 1;
		}
		connect_list_end(&w);
		connect_message_end(&w);
	}
	connect_list_end(&w);
	connect_writer_end(&w);
}

/* Id NUL kind NUL: the types come first, for no question can be asked in the midst of another. */
static int take_type(void *arg, const struct profile_type *type)
{
	struct buf *items = arg;

	profile_type_id(type, items);
	buf_putc(items, '\0');
	buf_append(items, type->kind, strlen(type->kind) + 1);
	return items->failed ? -ENOMEM : 0;
}

int api_series_labels(struct api_call *call)
{
	AUTO(question_fini) struct question qu = { 0 };
	AUTO(buf_fini) struct buf types = BUF_EMPTY;
	struct series_list list = { .call = call, .sets = intern_new() };
	struct store *store = call->ctx.store;
	int err = list.sets ? pyroscope_read(call, &qu) : -ENOMEM;
	const char *at, *end;

	if (!err && !qu.is_absent)
		err = pyroscope_types(call, &qu.q.sel, take_type, &types);
	at = (const char *)types.data;
	end = at ? at + types.len : NULL;
	while (!err && at < end) {
		list.type = at;
		at += strlen(at) + 1;
		qu.q.sel.kind = at;
		if (!qu.kind || !strcmp(qu.kind, at))
			err = store->read->series(store, &qu.q.sel, take_series, &list);
		at += strlen(at) + 1;
	}
	if (!err)
		write_sets(call, list.sets);
	intern_free(list.sets);
	return err;
}
