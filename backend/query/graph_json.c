/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing a call tree: first which nodes are shown, then the rows in pre-order, then the JSON. The heaviest nodes are shown;
 * a caller weighs at least what its callees do and has a lower number, so with ties in the order of numbers no node is shown
 * without its caller, and among siblings, heaviest first, the hidden ones come last.
 */
#include "backend/query/graph_json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backend/store/store_read.h"
#include "base/cleanup.h"

enum { LOCAL_ROOT = 0, LOCAL_OTHER = 1, LOCAL_FIRST = 2 };

struct row {
	uint32_t node;	   /* of the graph; 0 and not the first row: "(other)" */
	uint32_t function; /* number within the answer */
	uint32_t parent;   /* row */
	uint32_t depth;
	int64_t self[2], total[2];
};

struct writer {
	const struct graph *graph;
	const struct call_node *nodes;
	uint32_t node_count;
	uint8_t *shown; /* a node */
	struct row *rows;
	uint32_t row_count;
	uint32_t *local;  /* a function of the graph: its number within the answer, 0: none yet */
	uint32_t *global; /* the other way, from LOCAL_FIRST */
	uint32_t local_count;
	struct graph_cut cut;
};

static void writer_fini(struct writer *w)
{
	free(w->shown);
	free(w->rows);
	free(w->local);
	free(w->global);
}

/* The @k-th largest of @count values, k from 1; they change places. */
static int64_t kth_largest(int64_t *v, uint32_t count, uint32_t k)
{
	uint32_t lo = 0, hi = count - 1, want = k - 1;

	while (lo < hi) {
		int64_t pivot = v[lo + (hi - lo) / 2];
		uint32_t i = lo, j = hi;

		for (;;) {
			while (v[i] > pivot)
				i++;
			while (v[j] < pivot)
				j--;
			if (i >= j)
				break;
			int64_t tmp = v[i];
			v[i++] = v[j];
			v[j--] = tmp;
		}
		/* Left of i nothing is lighter than the pivot, from j + 1 on nothing is heavier. */
		uint32_t end = i > j ? j : i;
		if (want <= end)
			hi = end;
		else
			lo = end + 1;
	}
	return v[want];
}

/* Marks the root and the @k heaviest other nodes. */
static int show_heaviest(struct writer *w, uint32_t k)
{
	AUTO_FREE int64_t *weights = calloc(w->node_count, sizeof(*weights));
	uint32_t count = 0, above = 0;
	int64_t least = 1;

	if (!weights)
		return -ENOMEM;
	memset(w->shown, 0, w->node_count);
	w->shown[0] = 1;
	for (uint32_t i = 1; i < w->node_count; i++)
		if (call_weight(&w->nodes[i]) > 0)
			weights[count++] = call_weight(&w->nodes[i]);
	if (count > k)
		least = k ? kth_largest(weights, count, k) : INT64_MAX;
	for (uint32_t i = 1; i < w->node_count; i++)
		above += call_weight(&w->nodes[i]) > least;
	for (uint32_t i = 1; i < w->node_count; i++) {
		int64_t weight = call_weight(&w->nodes[i]);

		if (weight > least || (weight == least && weight > 0 && above < k)) {
			above += weight == least;
			w->shown[i] = 1;
		}
	}
	return 0;
}

static bool is_cut(const struct writer *w, uint32_t node)
{
	return node && !w->shown[node] && call_weight(&w->nodes[node]) > 0;
}

/* The number of nodes with hidden callees: each gets an "(other)". */
static uint32_t count_others(const struct writer *w)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < w->node_count; i++) {
		uint32_t c = w->shown[i] ? w->nodes[i].child : 0;

		while (c && w->shown[c])
			c = w->nodes[c].sibling;
		count += is_cut(w, c);
	}
	return count;
}

/* Chooses the nodes that are shown; *@rows_ret: the number of rows, with the rows "(other)". */
static int choose(struct writer *w, uint32_t max_nodes, size_t *rows_ret)
{
	for (uint32_t k = max_nodes > 1 ? max_nodes - 1 : 1;;) {
		uint32_t shown = 0, others;
		int err = show_heaviest(w, k);

		if (err)
			return err;
		for (uint32_t i = 0; i < w->node_count; i++)
			shown += w->shown[i];
		others = count_others(w);
		*rows_ret = (size_t)shown + others;
		if (shown + others <= max_nodes || k == 0)
			break;
		k -= shown + others - max_nodes < k ? shown + others - max_nodes : k;
	}
	w->cut.nodes = (uint32_t)graph_folded(w->graph);
	for (uint32_t i = 1; i < w->node_count; i++)
		w->cut.nodes += is_cut(w, i);
	return 0;
}

static uint32_t local_function(struct writer *w, uint32_t function)
{
	if (!w->local[function]) {
		w->local[function] = w->local_count;
		w->global[w->local_count++] = function;
	}
	return w->local[function];
}

static uint32_t add_row(struct writer *w, uint32_t node, uint32_t parent, uint32_t depth)
{
	const struct call_node *n = &w->nodes[node];
	struct row *row = &w->rows[w->row_count];

	*row = (struct row){ .node = node, .parent = parent, .depth = depth };
	row->function = node ? local_function(w, graph_call(n).function) : LOCAL_ROOT;
	for (unsigned side = 0; side < 2; side++) {
		row->self[side] = n->self[side];
		row->total[side] = n->total[side];
	}
	return w->row_count++;
}

/* Adds @first and its lighter siblings as one row. */
static void add_other(struct writer *w, uint32_t first, uint32_t parent, uint32_t depth)
{
	struct row *row = &w->rows[w->row_count++];

	*row = (struct row){ .parent = parent, .depth = depth, .function = LOCAL_OTHER };
	for (uint32_t c = first; c; c = w->nodes[c].sibling)
		for (unsigned side = 0; side < 2; side++)
			row->total[side] = weights_add(row->total[side], w->nodes[c].total[side]);
	for (unsigned side = 0; side < 2; side++)
		row->self[side] = row->total[side];
	w->cut.weight = weights_add(w->cut.weight, weights_add(row->total[0], row->total[1]));
}

/* Makes all rows in pre-order, along the links. */
static void make_rows(struct writer *w)
{
	uint32_t node = 0, row = add_row(w, 0, 0, 0);

	for (;;) {
		uint32_t next = w->nodes[node].child, depth = w->rows[row].depth + 1;

		while (!next || !w->shown[next]) { /* nothing (more) to show below this row */
			if (is_cut(w, next))
				add_other(w, next, row, depth);
			if (!node)
				return;
			next = w->nodes[node].sibling;
			node = w->nodes[node].parent;
			row = w->rows[row].parent;
			depth--;
		}
		row = add_row(w, next, row, depth);
		node = next;
	}
}

static int writer_init(struct writer *w, const struct graph *g, uint32_t max_nodes)
{
	uint32_t functions = functions_count(graph_functions(g));
	size_t rows;
	int err;

	w->graph = g;
	w->nodes = graph_nodes(g, &w->node_count);
	w->shown = calloc(w->node_count, 1);
	w->local = calloc((size_t)functions + 1, sizeof(*w->local));
	w->global = calloc((size_t)functions + LOCAL_FIRST + 1, sizeof(*w->global));
	w->local_count = LOCAL_FIRST;
	if (!w->shown || !w->local || !w->global)
		return -ENOMEM;
	err = choose(w, max_nodes, &rows);
	if (err)
		return err;
	w->rows = calloc(rows, sizeof(*w->rows));
	if (!w->rows)
		return -ENOMEM;
	make_rows(w);
	return 0;
}

static struct function function_of(const struct writer *w, uint32_t local, const char *root)
{
	if (local >= LOCAL_FIRST)
		return functions_get(graph_functions(w->graph), w->global[local]);
	return (struct function){ local == LOCAL_OTHER ? "(other)" : root, "", "", "", "", true };
}

static void write_functions(const struct writer *w, const char *root, const struct graph_column *extra, struct json *j)
{
	static const char *const keys[] = { "name", "module", "file", "type", "build_id" };

	json_key(j, "functions");
	json_object_begin(j);
	for (size_t k = 0; k < ARRAY_LEN(keys); k++) {
		json_key(j, keys[k]);
		json_array_begin(j);
		for (uint32_t i = 0; i < w->local_count; i++) {
			const struct function f = function_of(w, i, root);
			const char *const values[] = { f.name, f.module, f.file, f.type, f.build_id };

			json_string(j, values[k]);
		}
		json_array_end(j);
	}
	for (; extra && extra->key; extra++) {
		json_key(j, extra->key);
		json_array_begin(j);
		for (uint32_t i = 0; i < w->local_count; i++)
			json_double(j, i >= LOCAL_FIRST ? extra->value(extra->arg, w->global[i]) : 0);
		json_array_end(j);
	}
	json_object_end(j);
}

enum column { FUNCTION, PARENT, LINE, INLINED, SELF, TOTAL, SELF2, TOTAL2, COLUMN_COUNT };

static int64_t cell(const struct writer *w, const struct row *row, enum column column)
{
	const struct function_call call = row->function >= LOCAL_FIRST ? graph_call(&w->nodes[row->node])
								       : (struct function_call){ 0 };

	switch (column) {
	case FUNCTION:
		return row->function;
	case PARENT:
		return row->parent;
	case LINE:
		return call.line;
	case INLINED:
		return call.inlined;
	case SELF:
		return row->self[0];
	case TOTAL:
		return row->total[0];
	case SELF2:
		return row->self[1];
	default:
		return row->total[1];
	}
}

static void write_rows(const struct writer *w, bool two_sides, struct json *j)
{
	static const char *const keys[COLUMN_COUNT] = { "function", "parent", "line",  "inlined",
							"self",	    "total",  "self2", "total2" };

	json_key(j, "nodes");
	json_object_begin(j);
	for (enum column c = 0; c < (two_sides ? COLUMN_COUNT : SELF2); c++) {
		json_key(j, keys[c]);
		json_array_begin(j);
		for (uint32_t i = 0; i < w->row_count; i++)
			json_i64(j, cell(w, &w->rows[i], c));
		json_array_end(j);
	}
	json_object_end(j);
}

int graph_write_columns(const struct graph *g, const char *root, uint32_t max_nodes, bool two_sides,
			const struct graph_column *extra, struct json *j, struct graph_cut *cut_ret)
{
	AUTO(writer_fini) struct writer w = { 0 };
	int err = writer_init(&w, g, max_nodes);

	if (err)
		return err;
	write_functions(&w, root, extra, j);
	write_rows(&w, two_sides, j);
	if (cut_ret)
		*cut_ret = w.cut;
	return 0;
}

int graph_each_row(const struct graph *g, const char *root, uint32_t max_nodes,
		   int (*fn)(void *arg, const struct graph_row *row), void *arg)
{
	AUTO(writer_fini) struct writer w = { 0 };
	int err = writer_init(&w, g, max_nodes);

	for (uint32_t i = 0; !err && i < w.row_count; i++) {
		const struct row *row = &w.rows[i];
		const struct graph_row shown = { function_of(&w, row->function, root).name, row->depth, row->self[0],
						 row->total[0] };

		err = fn(arg, &shown);
	}
	return err;
}

/* Deeper callees are left out: their weight is in their callers' totals. */
enum { NESTED_DEPTH = JSON_MAX_DEPTH / 2 - 8 };

static void open_row(const struct writer *w, const struct row *row, const char *root, struct json *j)
{
	const struct function f = function_of(w, row->function, root);

	json_object_begin(j);
	json_key(j, "name");
	json_string(j, f.name);
	json_key(j, "module");
	json_string(j, f.module);
	json_key(j, "type");
	json_string(j, f.type);
	json_key(j, "self");
	json_i64(j, row->self[0]);
	json_key(j, "total");
	json_i64(j, row->total[0]);
	json_key(j, "children");
	json_array_begin(j);
}

static void close_row(struct json *j)
{
	json_array_end(j);
	json_object_end(j);
}

int graph_write_nested(const struct graph *g, const char *root, uint32_t max_nodes, struct json *j)
{
	AUTO(writer_fini) struct writer w = { 0 };
	int err = writer_init(&w, g, max_nodes);
	uint32_t open = 0;

	if (err)
		return err;
	for (uint32_t i = 0; i < w.row_count; i++) {
		if (w.rows[i].depth > NESTED_DEPTH)
			continue;
		for (; open > w.rows[i].depth; open--)
			close_row(j);
		open_row(&w, &w.rows[i], root, j);
		open = w.rows[i].depth + 1;
	}
	while (open--)
		close_row(j);
	return 0;
}
