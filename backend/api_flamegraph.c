/* SPDX-License-Identifier: Apache-2.0 */
/* Call trees: flamegraph, tree, sandwich, diff. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backend/api_call.h"
#include "backend/graph_json.h"
#include "base/cleanup.h"

enum { DEFAULT_NODES = 5000, LEAST_NODES = 2, MOST_NODES = 200000 };

static void free_graph(struct graph **g)
{
	graph_free(*g);
}

static int read_nodes(struct api_call *call, uint64_t *ret)
{
	return query_number(call->params, "max_nodes", DEFAULT_NODES, LEAST_NODES, MOST_NODES, ret, &call->error);
}

static unsigned flags_of(const struct api_call *call, const struct query *q)
{
	const char *lines = query_param(call->params, "lines");

	return (q->no_inline ? GRAPH_NO_INLINE : 0) | (lines && !strcmp(lines, "1") ? GRAPH_LINES : 0);
}

/* An empty tree for @q; see graph_new() for @most. */
static int make_graph(const struct api_call *call, const struct query *q, uint32_t most, struct graph **ret)
{
	*ret = graph_new(call->ctx.store, call->ctx.functions, flags_of(call, q), most);
	return *ret ? 0 : -ENOMEM;
}

static void write_cut(struct json *j, const struct graph_cut *cut)
{
	api_write_number(j, "cut_nodes", cut->nodes);
	api_write_number(j, "cut_weight", cut->weight);
}

/* The tree that the parameters ask for, summed up; see graph_new() for @most. */
static int fill_one(struct api_call *call, struct query *q, uint32_t most, struct graph **graph, uint64_t *events)
{
	int err = query_read(q, &call->ctx, call->params, "", &call->error);

	if (!err)
		err = make_graph(call, q, most, graph);
	if (!err)
		err = api_fill(*graph, call, q, api_label(call, "by"), 0, events);
	return err ? err : graph_sum(*graph);
}

int api_flamegraph(struct api_call *call)
{
	AUTO(free_graph) struct graph *graph = NULL;
	AUTO(query_fini) struct query q = { 0 };
	struct json *j = &call->json;
	struct graph_cut cut;
	uint64_t nodes, events;
	int err = read_nodes(call, &nodes);

	if (!err)
		err = fill_one(call, &q, (uint32_t)nodes, &graph, &events);
	if (err)
		return err;
	json_object_begin(j);
	api_write_about(call, &q);
	api_write_number(j, "total", graph_nodes(graph, NULL)[0].total[0]);
	api_write_number(j, "events", (int64_t)events);
	err = graph_write_columns(graph, "all", (uint32_t)nodes, false, j, &cut);
	if (!err)
		write_cut(j, &cut);
	json_object_end(j);
	return err;
}

int api_tree(struct api_call *call)
{
	AUTO(free_graph) struct graph *graph = NULL;
	AUTO(query_fini) struct query q = { 0 };
	uint64_t nodes, events;
	int err = read_nodes(call, &nodes);

	if (!err)
		err = fill_one(call, &q, (uint32_t)nodes, &graph, &events);
	return err ? err : graph_write_nested(graph, "all", (uint32_t)nodes, &call->json);
}

int api_diff(struct api_call *call)
{
	const char *format = query_param(call->params, "format");
	AUTO(free_graph) struct graph *graph = NULL;
	AUTO(query_fini) struct query a = { 0 };
	AUTO(query_fini) struct query b = { 0 };
	const char *by = api_label(call, "by");
	struct json *j = &call->json;
	uint64_t nodes, events[2];
	struct graph_cut cut;
	int err;

	if (format && !strcmp(format, "top"))
		return api_diff_top(call);
	err = read_nodes(call, &nodes);
	if (!err)
		err = query_read(&a, &call->ctx, call->params, "", &call->error);
	if (!err)
		err = query_read(&b, &call->ctx, call->params, "2", &call->error);
	if (!err)
		err = make_graph(call, &a, 0, &graph);
	if (!err)
		err = api_fill(graph, call, &a, by, 0, &events[0]);
	if (!err)
		err = api_fill(graph, call, &b, by, 1, &events[1]);
	if (!err)
		err = graph_sum(graph);
	if (err)
		return err;
	json_object_begin(j);
	api_write_about(call, &a);
	api_write_time(j, "from2", b.sel.from_ns);
	api_write_time(j, "to2", b.sel.to_ns);
	api_write_number(j, "total", graph_nodes(graph, NULL)[0].total[0]);
	api_write_number(j, "total2", graph_nodes(graph, NULL)[0].total[1]);
	api_write_number(j, "events", (int64_t)events[0]);
	api_write_number(j, "events2", (int64_t)events[1]);
	err = graph_write_columns(graph, "all", (uint32_t)nodes, true, j, &cut);
	if (!err)
		write_cut(j, &cut);
	json_object_end(j);
	return err;
}

/* --- sandwich --- */

struct sandwich {
	const struct graph *graph;
	struct graph *callers, *callees;
	const char *name, *module; /* module NULL: any */
	uint32_t *places;	   /* a node of graph: its place in callees plus 1; 0: not below the function */
};

static bool is_wanted(const struct sandwich *s, const struct graph_node *n)
{
	const struct function *f;

	if (n->call.function == UINT32_MAX)
		return false;
	f = functions_get(graph_functions(s->graph), n->call.function);
	return !strcmp(f->name, s->name) && (!s->module || !strcmp(f->module, s->module));
}

/* Adds the callers of @node, weighing what it does. */
static int add_callers(struct sandwich *s, const struct graph_node *nodes, uint32_t node)
{
	uint32_t place = 0;

	for (uint32_t i = nodes[node].parent; i; i = nodes[i].parent) {
		int err = graph_child(s->callers, place, nodes[i].call, &place);

		if (err)
			return err;
	}
	graph_nodes(s->callers, NULL)[place].self[0] += nodes[node].total[0];
	return 0;
}

/* Each node below the function, or the function where no caller of it is: so a recursion counts once. */
static int split(struct sandwich *s)
{
	uint32_t count;
	const struct graph_node *nodes = graph_nodes(s->graph, &count);

	for (uint32_t i = 1; i < count; i++) {
		uint32_t above = s->places[nodes[i].parent], place = 0;
		int err = 0;

		if (above)
			err = graph_child(s->callees, above - 1, nodes[i].call, &place);
		else if (is_wanted(s, &nodes[i]))
			err = add_callers(s, nodes, i);
		else
			continue;
		if (err)
			return err;
		s->places[i] = place + 1;
		graph_nodes(s->callees, NULL)[place].self[0] += nodes[i].self[0];
	}
	return 0;
}

static int write_sandwich(struct sandwich *s, uint32_t max_nodes, struct json *j)
{
	const struct graph_node *root = graph_nodes(s->callees, NULL);
	int err;

	api_write_number(j, "self", root->self[0]);
	api_write_number(j, "total", root->total[0]);
	json_key(j, "callers");
	json_object_begin(j);
	err = graph_write_columns(s->callers, s->name, max_nodes, false, j, NULL);
	json_object_end(j);
	if (err)
		return err;
	json_key(j, "callees");
	json_object_begin(j);
	err = graph_write_columns(s->callees, s->name, max_nodes, false, j, NULL);
	json_object_end(j);
	return err;
}

static int make_sandwich(struct sandwich *s, struct api_call *call, const struct query *q)
{
	uint32_t count;
	int err = make_graph(call, q, 0, &s->callers);

	if (!err)
		err = make_graph(call, q, 0, &s->callees);
	graph_nodes(s->graph, &count);
	s->places = err ? NULL : calloc(count, sizeof(*s->places));
	if (!err)
		err = s->places ? split(s) : -ENOMEM;
	if (!err)
		err = graph_sum(s->callers);
	return err ? err : graph_sum(s->callees);
}

int api_sandwich(struct api_call *call)
{
	AUTO(free_graph) struct graph *graph = NULL;
	AUTO(query_fini) struct query q = { 0 };
	struct sandwich s = { .name = query_param(call->params, "function"), .module = query_param(call->params, "module") };
	uint64_t nodes, events;
	int err = read_nodes(call, &nodes);

	if (!err && (!s.name || !*s.name)) {
		buf_puts(&call->error, "function: say of which function");
		err = -EINVAL;
	}
	if (!err)
		err = fill_one(call, &q, 0, &graph, &events);
	s.graph = graph;
	if (!err)
		err = make_sandwich(&s, call, &q);
	if (!err) {
		json_object_begin(&call->json);
		api_write_about(call, &q);
		api_write_number(&call->json, "whole", graph_nodes(graph, NULL)[0].total[0]);
		err = write_sandwich(&s, (uint32_t)nodes, &call->json);
		json_object_end(&call->json);
	}
	free(s.places);
	graph_free(s.callers);
	graph_free(s.callees);
	return err;
}
