/* SPDX-License-Identifier: Apache-2.0 */
/* The table of functions, also of two selections side by side. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backend/api/api_call.h"
#include "backend/api/api_noise.h"
#include "backend/query/functions.h"
#include "backend/store/stack_sums.h"
#include "backend/store/store_read.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/map.h"

enum { DEFAULT_ROWS = 200, MOST_ROWS = 100000, MOST_STRIP = 240, NO_GROUP = UINT32_MAX, NO_STRIP = UINT32_MAX };

struct table {
	struct api_call *call;
	struct stack_sums sums; /* by function; a group is a label's function, or NO_GROUP */
	struct map by_function; /* for strips: group and function: number of the row plus 1 */
	int64_t *strips;
	uint32_t strip_points;
	uint64_t strip_hours; /* of a piece; 0: pieces are of no whole hours */
	int64_t whole[2];
	bool two_sides, no_inline, by_total;
};

static void table_fini(struct table *t)
{
	stack_sums_fini(&t->sums);
	map_fini(&t->by_function);
	free(t->strips);
}

static int64_t function_of_frame(void *arg, uint32_t frame)
{
	const struct table *t = arg;
	struct function_call call;
	int err = functions_of_frame(t->call->ctx.functions, frame, &call);

	return err ? err : call.inlined && t->no_inline ? STACK_SUMS_CALLER : stack_sums_key(call.function, false);
}

/* Adds the rows of one group. */
static int add_up(struct api_fill *fill, struct stacks *s, const char *label)
{
	struct table *t = fill->arg;
	uint32_t group = NO_GROUP;
	int err = label ? functions_of_label(t->call->ctx.functions, label, &group) : 0;

	err = err ? err : stack_sums_add(&t->sums, s, group, function_of_frame, t);
	fill->kept_bytes = stack_sums_memory_bytes(&t->sums);
	return err;
}

int api_sum_functions(struct api_call *call, struct api_fill *fill,
		      int (*fn)(void *arg, uint32_t function, int64_t self, int64_t total), void *arg)
{
	AUTO(table_fini) struct table t = { .call = call, .no_inline = fill->sides[0]->no_inline };
	int err;

	fill->place = add_up;
	fill->arg = &t;
	err = api_fill(call, fill);
	for (uint32_t i = 0; i < t.sums.count && !err; i++)
		err = fn(arg, t.sums.rows[i].key, t.sums.rows[i].self[0], t.sums.rows[i].total[0]);
	return err;
}

static double share(int64_t part, int64_t whole)
{
	return whole ? (double)part / (double)whole : 0;
}

/* The figure that rows are sorted by. */
static double sort_of(const struct table *t, const struct stack_sum *row)
{
	const int64_t *w = t->by_total ? row->total : row->self;

	return t->two_sides ? fabs(share(w[1], t->whole[1]) - share(w[0], t->whole[0])) : (double)w[0];
}

static int by_sort(const void *a, const void *b, void *arg)
{
	const struct stack_sum *x = a, *y = b;
	const struct table *t = arg;
	const double xs = sort_of(t, x), ys = sort_of(t, y);
	struct function f, g;
	int order;

	if (xs != ys)
		return xs > ys ? -1 : 1;
	if (x->total[0] + x->total[1] != y->total[0] + y->total[1])
		return x->total[0] + x->total[1] > y->total[0] + y->total[1] ? -1 : 1;
	f = functions_get(t->call->ctx.functions, x->key);
	g = functions_get(t->call->ctx.functions, y->key);
	order = strcmp(f.name, g.name);
	order = order ? order : (x->group > y->group) - (x->group < y->group);
	order = order ? order : strcmp(f.module, g.module);
	return order ? order : strcmp(f.type, g.type);
}

/* --- strips --- */

struct strip_fill {
	struct table *table;
	bool has_groups, no_inline;
	uint32_t point;
	/* Without groups: by stack, its row's strip plus 1, NO_STRIP where there is none; 0: not looked for yet. */
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
		int err = ctx->store->read->nodes(ctx->store, node, 1, &at);

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

/* The strip of the row that @node is in, plus 1, or NO_STRIP. */
static int find_strip(const struct strip_fill *fill, const char *group, uint32_t node, uint32_t *ret)
{
	const struct table *t = fill->table;
	uint32_t function, label = NO_GROUP;
	uint32_t strip;
	int err = leaf_function(fill, node, &function);

	if (!err && fill->has_groups)
		err = functions_of_label(t->call->ctx.functions, group, &label);
	if (err)
		return err;
	strip = (uint32_t)(uintptr_t)map_get(&t->by_function, (uint64_t)label << 32 | function);
	*ret = strip ? strip : NO_STRIP;
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
	if (strip != NO_STRIP) {
		int64_t *point = &t->strips[(size_t)(strip - 1) * t->strip_points + fill->point];

		*point = weights_add(*point, weight);
	}
	return 0;
}

/* The start of piece @i, in Unix nanoseconds. Pieces are equal, or whole hours if these are not much longer: the store has
 * sums of hours. */
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

	fill.strip_count = by ? 0 : store->read->node_count(store);
	fill.strips = calloc(fill.strip_count + 1, sizeof(*fill.strips));
	if (!fill.strips)
		return -ENOMEM;
	t->strips = calloc((size_t)rows * t->strip_points + 1, sizeof(*t->strips));
	if (!t->strips)
		return -ENOMEM;
	for (uint32_t i = 0; i < rows; i++) {
		const struct stack_sum *row = &t->sums.rows[i];

		if (map_put(&t->by_function, (uint64_t)row->group << 32 | row->key, (void *)(uintptr_t)(i + 1)))
			return -ENOMEM;
	}
	for (; fill.point < t->strip_points; fill.point++) {
		struct store_selection piece = q->sel;
		int err;

		piece.from_ns = piece_start(t, &q->sel, fill.point);
		piece.to_ns = piece_start(t, &q->sel, fill.point + 1);
		err = store->read->sum_stacks(store, &piece, by, take_point, &fill);
		if (err)
			return err;
	}
	return 0;
}

/* --- writing --- */

static void write_band(struct json *j, const char *band, const char *changed, const struct diff_change *c)
{
	json_key(j, band);
	json_double(j, c->band);
	json_key(j, changed);
	json_bool(j, c->changed);
}

static void write_row(const struct table *t, uint64_t number, const struct noise *noise, struct json *j)
{
	const struct stack_sum *row = &t->sums.rows[number];
	const struct diff_function *judged = noise_of(noise, row->key);
	const struct function f = functions_get(t->call->ctx.functions, row->key);

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
	if (judged) {
		write_band(j, "self_band", "self_changed", &judged->self);
		write_band(j, "total_band", "total_changed", &judged->total);
	}
	if (t->strips) {
		json_key(j, "strip");
		json_array_begin(j);
		for (uint32_t i = 0; i < t->strip_points; i++)
			json_i64(j, t->strips[number * t->strip_points + i]);
		json_array_end(j);
	}
	json_object_end(j);
}

static int answer_top(struct api_call *call, bool two_sides)
{
	const char *by = api_label(call, "by"), *sort = query_param(call->params, "sort");
	AUTO(table_fini) struct table t = { .call = call, .two_sides = two_sides };
	AUTO(api_shares_free) struct shares *shares = NULL;
	AUTO(query_fini) struct query a = { 0 };
	AUTO(query_fini) struct query b = { 0 };
	AUTO(noise_fini) struct noise noise = { 0 };
	struct json *j = &call->json;
	struct api_fill fill = { .sides = { &a, two_sides ? &b : NULL }, .by = by, .place = add_up, .arg = &t };
	uint64_t limit, strip;
	int err = query_number(call->params, "limit", DEFAULT_ROWS, 1, MOST_ROWS, &limit, &call->error);

	if (!err)
		err = query_number(call->params, "strip", 0, 0, MOST_STRIP, &strip, &call->error);
	if (!err)
		err = api_read(call, &a, "");
	if (!err && t.two_sides)
		err = api_read(call, &b, "2");
	if (!err)
		t.no_inline = a.no_inline;
	if (!err)
		err = api_shares(call, &a, &shares);
	fill.shares = shares;
	if (!err)
		err = api_fill(call, &fill);
	if (!err && two_sides)
		err = noise_read(&noise, call, &a, &b);
	if (err)
		return err;
	memcpy(t.whole, fill.total, sizeof(t.whole));
	t.by_total = sort && !strcmp(sort, "total");
	if (t.sums.count)
		qsort_r(t.sums.rows, t.sums.count, sizeof(*t.sums.rows), by_sort, &t);
	if (limit > t.sums.count)
		limit = t.sums.count;
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
		api_write_covered(call, &b, "2");
		api_write_word(call, &b, "2");
		api_write_number(j, "total2", fill.total[1]);
		api_write_number(j, "events2", (int64_t)fill.events[1]);
	}
	err = api_write_nearest(call, &a, "", fill.events[0]);
	if (!err && t.two_sides)
		err = api_write_nearest(call, &b, "2", fill.events[1]);
	noise_write(&noise, j);
	api_write_number(j, "functions", t.sums.count);
	shares_write(shares, two_sides, j);
	json_key(j, "rows");
	json_array_begin(j);
	for (uint64_t i = 0; i < limit; i++)
		write_row(&t, i, &noise, j);
	json_array_end(j);
	json_object_end(j);
	return err;
}

int api_top(struct api_call *call)
{
	return answer_top(call, false);
}

int api_diff_top(struct api_call *call)
{
	return answer_top(call, true);
}
