/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of functions, also of two selections side by side. A function's total counts a stack once, where it is
 * outermost, and its self wherever it is the leaf: so one walk over the stacks, added up, is enough, with the functions of
 * the path.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backend/api_call.h"
#include "backend/functions.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/map.h"

enum {
	DEFAULT_ROWS = 200,
	MOST_ROWS = 100000,
	MOST_STRIP = 240,
	NO_GROUP = UINT32_MAX,
	NO_FUNCTION = UINT32_MAX,
	NO_STRIP = UINT32_MAX
};

struct row {
	uint32_t function, group; /* group: the label's function, or NO_GROUP */
	int64_t self[2], total[2];
	double sort;
	uint32_t strip; /* index of its strip among all, plus 1; 0: none */
};

/* What a function is to the stacks of one group, while they are walked. */
struct place {
	uint32_t row;	 /* and 1; 0: none yet */
	uint32_t active; /* how often it is on the path */
};

struct table {
	struct api_call *call;
	struct row *rows;
	uint32_t count, cap;
	struct place *places; /* by function */
	uint32_t place_count;
	struct buf path; /* uint32_t: the functions of the path, with an inlined call that does not count its caller's */
	struct map by_function; /* for strips: group and function: number of the row plus 1 */
	int64_t *strips;
	uint32_t strip_points;
	uint64_t strip_hours; /* of a piece; 0: pieces are of no whole hours */
	int64_t whole[2];
	bool two_sides, no_inline;
};

static void table_fini(struct table *t)
{
	free(t->rows);
	free(t->places);
	buf_fini(&t->path);
	map_fini(&t->by_function);
	free(t->strips);
}

static const struct row *find_row(const struct table *t, uint32_t group, uint32_t function)
{
	uintptr_t number = (uintptr_t)map_get(&t->by_function, (uint64_t)group << 32 | function);

	return number ? &t->rows[number - 1] : NULL;
}

static int grow_places(struct table *t, uint32_t function)
{
	uint32_t count = function + function / 2 + 1024;
	struct place *grown = reallocarray(t->places, count, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	memset(grown + t->place_count, 0, (count - t->place_count) * sizeof(*grown));
	t->places = grown;
	t->place_count = count;
	return 0;
}

/* @function has a place then, with a row. 0 or -ENOMEM. */
static int find_place(struct table *t, uint32_t group, uint32_t function)
{
	int err = function >= t->place_count ? grow_places(t, function) : 0;

	if (err || t->places[function].row)
		return err;
	if (t->count == t->cap) {
		uint32_t cap = t->cap ? t->cap * 2 : 256;
		struct row *rows = reallocarray(t->rows, cap, sizeof(*rows));

		if (!rows)
			return -ENOMEM;
		t->rows = rows;
		t->cap = cap;
	}
	t->rows[t->count++] = (struct row){ .function = function, .group = group };
	t->places[function].row = t->count;
	return 0;
}

static uint32_t *path_end(const struct table *t)
{
	return (uint32_t *)(t->path.data + t->path.len) - 1;
}

static void add_weight(int64_t *to, int64_t weight)
{
	*to = weights_add(*to, weight);
}

/* Over the stacks of one group. */
struct walk {
	struct table *table;
	const struct stacks *stacks;
	uint32_t group;
};

/* What a stack weighs is its function's, but not what it weighs where it is in another. */
static int enter(void *arg, uint32_t stack)
{
	const struct walk *walk = arg;
	const struct stacks *s = walk->stacks;
	struct table *t = walk->table;
	const uint32_t caller = t->path.len ? *path_end(t) : NO_FUNCTION;
	struct function_call call;
	struct place *place;
	int err = functions_of_frame(t->call->ctx.functions, s->items[stack].frame, &call);

	if (!err && call.inlined && t->no_inline)
		call.function = caller;
	else if (!err)
		err = find_place(t, walk->group, call.function);
	if (err)
		return err;
	buf_append(&t->path, &call.function, sizeof(call.function));
	if (t->path.failed)
		return -ENOMEM;
	if (call.function == NO_FUNCTION)
		return 0;
	place = &t->places[call.function];
	for (unsigned side = 0; side < 2 && s->weights[side]; side++) {
		const int64_t weight = s->weights[side][stack];

		add_weight(&t->rows[place->row - 1].self[side], weight);
		if (!place->active)
			add_weight(&t->rows[place->row - 1].total[side], weight);
		if (caller != NO_FUNCTION)
			add_weight(&t->rows[t->places[caller].row - 1].self[side], (int64_t) - (uint64_t)weight);
	}
	place->active++;
	return 0;
}

static void leave(void *arg, uint32_t stack)
{
	struct table *t = ((const struct walk *)arg)->table;
	const uint32_t function = *path_end(t);

	(void)stack;
	if (function != NO_FUNCTION)
		t->places[function].active--;
	t->path.len -= sizeof(function);
}

/* Adds the rows of one group. */
static int add_up(struct api_fill *fill, struct stacks *s, const char *label)
{
	struct table *t = fill->arg;
	struct walk walk = { t, s, NO_GROUP };
	const uint32_t first = t->count;
	int err = label ? functions_of_label(t->call->ctx.functions, label, &walk.group) : 0;

	err = err ? err : stacks_walk(s, enter, leave, &walk);
	for (uint32_t i = first; i < t->count; i++)
		t->places[t->rows[i].function].row = 0;
	fill->kept_bytes = t->cap * sizeof(*t->rows) + t->place_count * sizeof(*t->places);
	return err;
}

static int by_sort(const void *a, const void *b, void *arg)
{
	const struct row *x = a, *y = b;
	const struct functions *functions = arg;
	struct function f, g;
	int order;

	if (x->sort != y->sort)
		return x->sort > y->sort ? -1 : 1;
	if (x->total[0] + x->total[1] != y->total[0] + y->total[1])
		return x->total[0] + x->total[1] > y->total[0] + y->total[1] ? -1 : 1;
	f = functions_get(functions, x->function);
	g = functions_get(functions, y->function);
	order = strcmp(f.name, g.name);
	order = order ? order : (x->group > y->group) - (x->group < y->group);
	order = order ? order : strcmp(f.module, g.module);
	return order ? order : strcmp(f.type, g.type);
}

static double share(int64_t part, int64_t whole)
{
	return whole ? (double)part / (double)whole : 0;
}

static void sort_rows(struct table *t)
{
	const char *sort = query_param(t->call->params, "sort");
	bool by_total = sort && !strcmp(sort, "total");

	for (uint32_t i = 0; i < t->count; i++) {
		struct row *row = &t->rows[i];
		const int64_t *w = by_total ? row->total : row->self;

		row->sort = t->two_sides ? fabs(share(w[1], t->whole[1]) - share(w[0], t->whole[0])) : (double)w[0];
	}
	if (t->count)
		qsort_r(t->rows, t->count, sizeof(*t->rows), by_sort, t->call->ctx.functions);
}

/* --- strips --- */

struct strip_fill {
	struct table *table;
	bool has_groups, no_inline;
	uint32_t point;
	/* Without groups: by stack, its row's strip as rows have it, NO_STRIP where there is none; 0: not looked for yet. */
	uint32_t *strips;
	uint32_t strip_count;
};

static void strip_fill_fini(struct strip_fill *fill)
{
	free(fill->strips);
}

/* The function at the leaf of @node: of inlined calls the one they are in, where they do not count. */
static int leaf_function(const struct strip_fill *fill, uint32_t node, uint32_t *ret)
{
	const struct query_context *ctx = &fill->table->call->ctx;

	for (;;) {
		struct function_call call;
		struct store_node at;
		int err = ctx->store->ops->nodes(ctx->store, node, 1, &at);

		if (!err)
			err = functions_of_frame(ctx->functions, at.frame, &call);
		if (err)
			return err;
		*ret = call.function;
		if (!fill->no_inline || !call.inlined || !at.parent)
			return 0;
		node = at.parent;
	}
}

/* The strip of the row that @node is in, as rows have it, or NO_STRIP. */
static int find_strip(const struct strip_fill *fill, const char *group, uint32_t node, uint32_t *ret)
{
	const struct table *t = fill->table;
	uint32_t function, label = NO_GROUP;
	const struct row *row;
	int err = leaf_function(fill, node, &function);

	if (!err && fill->has_groups)
		err = functions_of_label(t->call->ctx.functions, group, &label);
	if (err)
		return err;
	row = find_row(t, label, function);
	*ret = row && row->strip ? row->strip : NO_STRIP;
	return 0;
}

static int take_point(void *arg, const char *group, uint32_t node, int64_t weight, uint64_t events)
{
	struct strip_fill *fill = arg;
	struct table *t = fill->table;
	uint32_t strip = node < fill->strip_count ? fill->strips[node] : 0;
	int err = strip || !node ? 0 : find_strip(fill, group, node, &strip);

	(void)events;
	if (err || !node)
		return err;
	if (node < fill->strip_count)
		fill->strips[node] = strip;
	if (strip != NO_STRIP)
		add_weight(&t->strips[(size_t)(strip - 1) * t->strip_points + fill->point], weight);
	return 0;
}

/* Where piece @i begins. Pieces are equal, or whole hours where those are not much longer: the store has sums of hours. */
static uint64_t piece_start(const struct table *t, const struct store_selection *sel, uint32_t i)
{
	const uint64_t range_ns = sel->to_ns - sel->from_ns, hour = sel->from_ns - sel->from_ns % HOUR_NS;
	uint64_t at;

	if (t->strip_hours)
		at = i ? hour + i * t->strip_hours * HOUR_NS : sel->from_ns;
	else
		at = sel->from_ns + (uint64_t)((__uint128_t)range_ns * i / t->strip_points);
	return at < sel->to_ns ? at : sel->to_ns;
}

/* @most pieces of @sel's range, or one for each of its hours or of some of them. */
static void cut_pieces(struct table *t, const struct store_selection *sel, uint32_t most)
{
	const uint64_t piece_ns = (sel->to_ns - sel->from_ns) / most;

	t->strip_points = most;
	if (piece_ns <= HOUR_NS / 4)
		return;
	t->strip_hours = (piece_ns + HOUR_NS - 1) / HOUR_NS;
	t->strip_points = (uint32_t)((sel->to_ns - 1) / HOUR_NS - sel->from_ns / HOUR_NS) / t->strip_hours + 1;
}

/* The first @rows rows get strips, over @q's range. */
static int fill_strips(struct table *t, const struct query *q, const char *by, uint32_t rows)
{
	AUTO(strip_fill_fini)
	struct strip_fill fill = { .table = t, .has_groups = by, .no_inline = q->no_inline };
	struct store *store = t->call->ctx.store;

	fill.strip_count = by ? 0 : store->ops->node_count(store);
	fill.strips = calloc(fill.strip_count + 1, sizeof(*fill.strips));
	if (!fill.strips)
		return -ENOMEM;
	t->strips = calloc((size_t)rows * t->strip_points + 1, sizeof(*t->strips));
	if (!t->strips)
		return -ENOMEM;
	for (uint32_t i = 0; i < rows; i++) {
		t->rows[i].strip = i + 1;
		if (map_put(&t->by_function, (uint64_t)t->rows[i].group << 32 | t->rows[i].function,
			    (void *)(uintptr_t)(i + 1)))
			return -ENOMEM;
	}
	for (; fill.point < t->strip_points; fill.point++) {
		struct store_selection piece = q->sel;
		int err;

		piece.from_ns = piece_start(t, &q->sel, fill.point);
		piece.to_ns = piece_start(t, &q->sel, fill.point + 1);
		err = store->ops->sum_stacks(store, &piece, by, take_point, &fill);
		if (err)
			return err;
	}
	return 0;
}

/* --- writing --- */

static void write_row(const struct table *t, const struct row *row, struct json *j)
{
	const struct function f = functions_get(t->call->ctx.functions, row->function);

	json_object_begin(j);
	api_write_text(j, "name", f.name);
	api_write_text(j, "module", f.module);
	api_write_text(j, "file", f.file);
	api_write_text(j, "type", f.type);
	api_write_text(j, "build_id", f.build_id);
	if (row->group != NO_GROUP)
		api_write_text(j, "value", functions_get(t->call->ctx.functions, row->group).name);
	api_write_number(j, "self", row->self[0]);
	api_write_number(j, "total", row->total[0]);
	if (t->two_sides) {
		api_write_number(j, "self2", row->self[1]);
		api_write_number(j, "total2", row->total[1]);
	}
	if (row->strip) {
		json_key(j, "strip");
		json_array_begin(j);
		for (uint32_t i = 0; i < t->strip_points; i++)
			json_i64(j, t->strips[(size_t)(row->strip - 1) * t->strip_points + i]);
		json_array_end(j);
	}
	json_object_end(j);
}

static int answer_top(struct api_call *call, bool two_sides)
{
	const char *by = api_label(call, "by");
	AUTO(table_fini) struct table t = { .call = call, .two_sides = two_sides };
	AUTO(query_fini) struct query a = { 0 };
	AUTO(query_fini) struct query b = { 0 };
	struct json *j = &call->json;
	struct api_fill fill = { .sides = { &a, two_sides ? &b : NULL }, .by = by, .place = add_up, .arg = &t };
	uint64_t limit, strip;
	int err = query_number(call->params, "limit", DEFAULT_ROWS, 1, MOST_ROWS, &limit, &call->error);

	if (!err)
		err = query_number(call->params, "strip", 0, 0, MOST_STRIP, &strip, &call->error);
	if (!err)
		err = query_read(&a, &call->ctx, call->params, "", &call->error);
	if (!err && t.two_sides)
		err = query_read(&b, &call->ctx, call->params, "2", &call->error);
	if (!err)
		t.no_inline = a.no_inline;
	if (!err)
		err = api_fill(call, &fill);
	if (err)
		return err;
	memcpy(t.whole, fill.total, sizeof(t.whole));
	sort_rows(&t);
	if (limit > t.count)
		limit = t.count;
	if (strip) {
		cut_pieces(&t, &a.sel, (uint32_t)strip);
		err = fill_strips(&t, &a, by, (uint32_t)limit);
	}
	if (err)
		return err;
	json_object_begin(j);
	api_write_about(call, &a);
	api_write_number(j, "total", fill.total[0]);
	api_write_number(j, "events", (int64_t)fill.events[0]);
	if (t.two_sides) {
		api_write_time(j, "from2", b.sel.from_ns);
		api_write_time(j, "to2", b.sel.to_ns);
		api_write_number(j, "total2", fill.total[1]);
		api_write_number(j, "events2", (int64_t)fill.events[1]);
	}
	api_write_number(j, "functions", t.count);
	json_key(j, "rows");
	json_array_begin(j);
	for (uint64_t i = 0; i < limit; i++)
		write_row(&t, &t.rows[i], j);
	json_array_end(j);
	json_object_end(j);
	return 0;
}

int api_top(struct api_call *call)
{
	return answer_top(call, false);
}

int api_diff_top(struct api_call *call)
{
	return answer_top(call, true);
}
