/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of functions, also of two selections side by side. Made from the call tree: a function's total counts a stack
 * once, where it is outermost, and its self wherever it is the leaf.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backend/api_call.h"
#include "base/cleanup.h"
#include "base/map.h"

enum { DEFAULT_ROWS = 200, MOST_ROWS = 100000, MOST_STRIP = 240, NO_GROUP = UINT32_MAX };

struct row {
	uint32_t function, group; /* group: the label's function, or NO_GROUP */
	int64_t self[2], total[2];
	double sort;
	uint32_t strip; /* index of its strip among all, plus 1; 0: none */
};

struct table {
	struct api_call *call;
	struct graph *graph;
	struct row *rows;
	uint32_t count, cap;
	struct map by_function; /* group and function: number of the row plus 1 */
	uint32_t *active;	/* a function: how often it is on the path */
	int64_t *strips;
	uint32_t strip_points;
	bool two_sides;
};

static void table_fini(struct table *t)
{
	graph_free(t->graph);
	free(t->rows);
	map_fini(&t->by_function);
	free(t->active);
	free(t->strips);
}

static struct row *find_row(const struct table *t, uint32_t group, uint32_t function)
{
	uintptr_t number = (uintptr_t)map_get(&t->by_function, (uint64_t)group << 32 | function);

	return number ? &t->rows[number - 1] : NULL;
}

static struct row *row_of(struct table *t, uint32_t group, uint32_t function)
{
	struct row *row = find_row(t, group, function);

	if (row)
		return row;
	if (t->count == t->cap) {
		uint32_t cap = t->cap ? t->cap * 2 : 256;
		struct row *rows = realloc(t->rows, cap * sizeof(*rows));

		if (!rows)
			return NULL;
		t->rows = rows;
		t->cap = cap;
	}
	if (map_put(&t->by_function, (uint64_t)group << 32 | function, (void *)(uintptr_t)(t->count + 1)))
		return NULL;
	row = &t->rows[t->count++];
	*row = (struct row){ .function = function, .group = group };
	return row;
}

static int enter(struct table *t, const struct graph_node *n, uint32_t group)
{
	struct row *row = row_of(t, group, n->call.function);

	if (!row)
		return -ENOMEM;
	for (unsigned side = 0; side < 2; side++) {
		row->self[side] += n->self[side];
		if (!t->active[n->call.function])
			row->total[side] += n->total[side];
	}
	t->active[n->call.function]++;
	return 0;
}

/* Walks the tree in pre-order. With groups, the first level is the labels. */
static int add_up(struct table *t, bool has_groups)
{
	const struct graph_node *nodes = graph_nodes(t->graph, NULL);
	uint32_t group = NO_GROUP, node = nodes[0].child, depth = 1;

	t->active = calloc((size_t)functions_count(t->call->ctx.functions) + 1, sizeof(*t->active));
	if (!t->active)
		return -ENOMEM;
	while (node) {
		const struct graph_node *n = &nodes[node];
		bool is_label = has_groups && depth == 1;
		int err = is_label ? 0 : enter(t, n, group);

		if (err)
			return err;
		if (is_label)
			group = n->call.function;
		if (n->child) {
			node = n->child;
			depth++;
			continue;
		}
		while (node && !nodes[node].sibling) {
			if (!(has_groups && depth == 1))
				t->active[nodes[node].call.function]--;
			node = nodes[node].parent;
			depth--;
		}
		if (!node)
			break;
		if (!(has_groups && depth == 1))
			t->active[nodes[node].call.function]--;
		node = nodes[node].sibling;
	}
	return 0;
}

static int by_sort(const void *a, const void *b, void *arg)
{
	const struct row *x = a, *y = b;
	const struct functions *functions = arg;
	int by_name;

	if (x->sort != y->sort)
		return x->sort > y->sort ? -1 : 1;
	if (x->total[0] + x->total[1] != y->total[0] + y->total[1])
		return x->total[0] + x->total[1] > y->total[0] + y->total[1] ? -1 : 1;
	by_name = strcmp(functions_get(functions, x->function)->name, functions_get(functions, y->function)->name);
	return by_name ? by_name : (x->group > y->group) - (x->group < y->group);
}

static double share(int64_t part, int64_t whole)
{
	return whole ? (double)part / (double)whole : 0;
}

static void sort_rows(struct table *t)
{
	const char *sort = query_param(t->call->params, "sort");
	bool by_total = sort && !strcmp(sort, "total");
	const struct graph_node *root = graph_nodes(t->graph, NULL);

	for (uint32_t i = 0; i < t->count; i++) {
		struct row *row = &t->rows[i];
		const int64_t *w = by_total ? row->total : row->self;

		row->sort = t->two_sides ? fabs(share(w[1], root->total[1]) - share(w[0], root->total[0])) : (double)w[0];
	}
	if (t->count)
		qsort_r(t->rows, t->count, sizeof(*t->rows), by_sort, t->call->ctx.functions);
}

/* --- strips --- */

struct strip_fill {
	struct table *table;
	bool has_groups, no_inline;
	uint32_t point;
};

/* The function at the leaf of @node: of inlined calls the one they are in, where they do not count. */
static int leaf_function(const struct strip_fill *fill, uint32_t node, uint32_t *ret)
{
	const struct query_context *ctx = &fill->table->call->ctx;

	for (;;) {
		struct function_call call;
		uint32_t parent, frame;
		int err = ctx->store->ops->node(ctx->store, node, &parent, &frame);

		if (!err)
			err = functions_of_frame(ctx->functions, frame, &call);
		if (err)
			return err;
		*ret = call.function;
		if (!fill->no_inline || !call.inlined || !parent)
			return 0;
		node = parent;
	}
}

static int take_point(void *arg, const char *group, uint32_t node, int64_t weight, uint64_t events)
{
	struct strip_fill *fill = arg;
	struct table *t = fill->table;
	uint32_t function, label = NO_GROUP;
	const struct row *row;
	int err;

	(void)events;
	if (!node)
		return 0;
	err = leaf_function(fill, node, &function);
	if (!err && fill->has_groups)
		err = functions_of_label(t->call->ctx.functions, group, &label);
	if (err)
		return err;
	row = find_row(t, label, function);
	if (row && row->strip)
		t->strips[(size_t)(row->strip - 1) * t->strip_points + fill->point] += weight;
	return 0;
}

/* The first @rows rows get strips, over @q's range. */
static int fill_strips(struct table *t, const struct query *q, const char *by, uint32_t rows)
{
	struct strip_fill fill = { .table = t, .has_groups = by, .no_inline = q->no_inline };
	uint64_t range_ns = q->sel.to_ns - q->sel.from_ns;
	struct store *store = t->call->ctx.store;

	t->strips = calloc((size_t)rows * t->strip_points + 1, sizeof(*t->strips));
	if (!t->strips)
		return -ENOMEM;
	map_fini(&t->by_function); /* the rows have changed places */
	t->by_function = MAP_EMPTY;
	for (uint32_t i = 0; i < rows; i++) {
		t->rows[i].strip = i + 1;
		if (map_put(&t->by_function, (uint64_t)t->rows[i].group << 32 | t->rows[i].function,
			    (void *)(uintptr_t)(i + 1)))
			return -ENOMEM;
	}
	for (; fill.point < t->strip_points; fill.point++) {
		struct store_selection piece = q->sel;
		int err;

		piece.from_ns = q->sel.from_ns + (uint64_t)((__uint128_t)range_ns * fill.point / t->strip_points);
		piece.to_ns = q->sel.from_ns + (uint64_t)((__uint128_t)range_ns * (fill.point + 1) / t->strip_points);
		err = store->ops->sum_stacks(store, &piece, by, take_point, &fill);
		if (err)
			return err;
	}
	return 0;
}

/* --- writing --- */

static void write_row(const struct table *t, const struct row *row, struct json *j)
{
	const struct function *f = functions_get(t->call->ctx.functions, row->function);

	json_object_begin(j);
	api_write_text(j, "name", f->name);
	api_write_text(j, "module", f->module);
	api_write_text(j, "file", f->file);
	api_write_text(j, "type", f->type);
	api_write_text(j, "build_id", f->build_id);
	if (row->group != NO_GROUP)
		api_write_text(j, "value", functions_get(t->call->ctx.functions, row->group)->name);
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

static int fill_graph(struct table *t, const struct query *a, const struct query *b, const char *by, uint64_t events[2])
{
	struct api_call *call = t->call;
	int err;

	t->graph = graph_new(call->ctx.store, call->ctx.functions, a->no_inline ? GRAPH_NO_INLINE : 0, 0);
	if (!t->graph)
		return -ENOMEM;
	err = api_fill(t->graph, call, a, by, 0, &events[0]);
	if (!err && t->two_sides)
		err = api_fill(t->graph, call, b, by, 1, &events[1]);
	return err ? err : graph_sum(t->graph);
}

static int answer_top(struct api_call *call, bool two_sides)
{
	const char *by = api_label(call, "by");
	AUTO(table_fini) struct table t = { .call = call, .two_sides = two_sides };
	AUTO(query_fini) struct query a = { 0 };
	AUTO(query_fini) struct query b = { 0 };
	struct json *j = &call->json;
	uint64_t limit, strip, events[2] = { 0 };
	int err = query_number(call->params, "limit", DEFAULT_ROWS, 1, MOST_ROWS, &limit, &call->error);

	if (!err)
		err = query_number(call->params, "strip", 0, 0, MOST_STRIP, &strip, &call->error);
	if (!err)
		err = query_read(&a, &call->ctx, call->params, "", &call->error);
	if (!err && t.two_sides)
		err = query_read(&b, &call->ctx, call->params, "2", &call->error);
	if (!err)
		err = fill_graph(&t, &a, &b, by, events);
	if (!err)
		err = add_up(&t, by);
	if (err)
		return err;
	sort_rows(&t);
	if (limit > t.count)
		limit = t.count;
	t.strip_points = (uint32_t)strip;
	if (strip)
		err = fill_strips(&t, &a, by, (uint32_t)limit);
	if (err)
		return err;
	json_object_begin(j);
	api_write_about(call, &a);
	api_write_number(j, "total", graph_nodes(t.graph, NULL)[0].total[0]);
	api_write_number(j, "events", (int64_t)events[0]);
	if (t.two_sides) {
		api_write_time(j, "from2", b.sel.from_ns);
		api_write_time(j, "to2", b.sel.to_ns);
		api_write_number(j, "total2", graph_nodes(t.graph, NULL)[0].total[1]);
		api_write_number(j, "events2", (int64_t)events[1]);
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
