/* SPDX-License-Identifier: Apache-2.0 */
/* Call trees: flamegraph, tree, sandwich, diff. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backend/api/api_call.h"
#include "backend/api/api_noise.h"
#include "backend/query/graph_json.h"
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

/* An empty tree for @q, of which @most nodes will be shown. */
static int make_graph(const struct api_call *call, const struct query *q, uint64_t most, struct graph **ret)
{
	*ret = graph_new(call->ctx.functions, flags_of(call, q), (uint32_t)most);
	return *ret ? 0 : -ENOMEM;
}

static void write_cut(struct json *j, const struct graph_cut *cut)
{
	api_write_number(j, "cut_nodes", cut->nodes);
	api_write_number(j, "cut_weight", cut->weight);
}

/* The tree that the parameters ask for, summed up; *@shares, when it is not NULL, has what api_shares() makes then. */
static int fill_one(struct api_call *call, struct query *q, uint64_t most, struct graph **graph, struct shares **shares,
		    uint64_t *events)
{
	struct api_fill fill = { .sides = { q }, .by = api_label(call, "by"), .place = api_place };
	int err = api_read(call, q, "");

	if (!err)
		err = make_graph(call, q, most, graph);
	if (!err && shares)
		err = api_shares(call, q, shares);
	fill.arg = *graph;
	fill.shares = shares ? *shares : NULL;
	if (!err)
		err = api_fill(call, &fill);
	*events = fill.events[0];
	if (!err)
		graph_sum(*graph);
	return err;
}

int api_flamegraph(struct api_call *call)
{
	AUTO(free_graph) struct graph *graph = NULL;
	AUTO(api_shares_free) struct shares *shares = NULL;
	AUTO(query_fini) struct query q = { 0 };
	struct json *j = &call->json;
	struct graph_cut cut;
	uint64_t nodes, events;
	int err = read_nodes(call, &nodes);

	if (!err)
		err = fill_one(call, &q, nodes, &graph, &shares, &events);
	if (err)
		return err;
	json_object_begin(j);
	api_write_about(call, &q);
	api_write_number(j, "total", graph_nodes(graph, NULL)[0].total[0]);
	api_write_number(j, "events", (int64_t)events);
	err = api_write_nearest(call, &q, "", events);
	err = err ? err : graph_write_columns(graph, "all", (uint32_t)nodes, false, NULL, j, &cut);
	if (!err)
		write_cut(j, &cut);
	shares_write(shares, false, j);
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
		err = fill_one(call, &q, nodes, &graph, NULL, &events);
	return err ? err : graph_write_nested(graph, "all", (uint32_t)nodes, &call->json);
}

int api_diff(struct api_call *call)
{
	const char *format = query_param(call->params, "format");
	AUTO(free_graph) struct graph *graph = NULL;
	AUTO(api_shares_free) struct shares *shares = NULL;
	AUTO(query_fini) struct query a = { 0 };
	AUTO(query_fini) struct query b = { 0 };
	AUTO(noise_fini) struct noise noise = { 0 };
	const struct graph_column columns[] = { { "noise", noise_factor, &noise }, { "part", noise_part, &noise }, { 0 } };
	struct api_fill fill = { .sides = { &a, &b }, .by = api_label(call, "by"), .place = api_place };
	struct json *j = &call->json;
	uint64_t nodes;
	struct graph_cut cut;
	int err;

	if (format && !strcmp(format, "top"))
		return api_diff_top(call);
	err = read_nodes(call, &nodes);
	if (!err)
		err = api_read(call, &a, "");
	if (!err)
		err = api_read(call, &b, "2");
	if (!err)
		err = make_graph(call, &a, nodes, &graph);
	if (!err)
		err = api_shares(call, &a, &shares);
	fill.arg = graph;
	fill.shares = shares;
	if (!err)
		err = api_fill(call, &fill);
	if (!err)
		graph_sum(graph);
	if (!err)
		err = noise_read(&noise, call, &a, &b);
	if (err)
		return err;
	json_object_begin(j);
	api_write_about(call, &a);
	api_write_time(j, "from2", b.sel.from_ns);
	api_write_time(j, "to2", b.sel.to_ns);
	api_write_covered(call, &b, "2");
	api_write_word(call, &b, "2");
	api_write_number(j, "total", fill.total[0]);
	api_write_number(j, "total2", fill.total[1]);
	api_write_number(j, "events", (int64_t)fill.events[0]);
	api_write_number(j, "events2", (int64_t)fill.events[1]);
	noise_write(&noise, j);
	err = api_write_nearest(call, &a, "", fill.events[0]);
	err = err ? err : api_write_nearest(call, &b, "2", fill.events[1]);
	err = err ? err : graph_write_columns(graph, "all", (uint32_t)nodes, true, noise.result ? columns : NULL, j, &cut);
	if (!err)
		write_cut(j, &cut);
	shares_write(shares, true, j);
	json_object_end(j);
	return err;
}

/* --- sandwich --- */

struct sandwich {
	const struct api_call *call;
	struct graph *callers, *callees;
	const char *name, *module; /* module NULL: any */
	bool no_inline;
	struct buf wanted; /* a byte a function: 0 not looked at, 1 another, 2 this one */
	struct buf tops;   /* uint32_t: stacks of the function with no caller that is it: so a recursion counts once */
};

static void sandwich_fini(struct sandwich *s)
{
	graph_free(s->callers);
	graph_free(s->callees);
	buf_fini(&s->wanted);
	buf_fini(&s->tops);
}

static bool is_wanted(struct sandwich *s, uint32_t function)
{
	const struct functions *functions = s->call->ctx.functions;
	const size_t len = s->wanted.len;
	struct function f;

	if (function >= len) {
		if (buf_reserve(&s->wanted, function + 1024 - len))
			return false;
		s->wanted.len += buf_room(&s->wanted);
		memset(s->wanted.data + len, 0, s->wanted.len - len);
	}
	if (!s->wanted.data[function]) {
		f = functions_get(functions, function);
		s->wanted.data[function] = strcmp(f.name, s->name) != 0 || (s->module && strcmp(f.module, s->module) != 0)
						   ? 1
						   : 2;
	}
	return s->wanted.data[function] == 2;
}

/* Adds @stack when it is one of the function; 1 then. */
static int add_top(struct sandwich *s, const struct stacks *stacks, uint32_t stack)
{
	struct function_call call;
	int err = functions_of_frame(s->call->ctx.functions, stacks->items[stack].frame, &call);

	if (err || (call.inlined && s->no_inline) || !is_wanted(s, call.function))
		return err;
	buf_append(&s->tops, &stack, sizeof(stack));
	return 1;
}

/* Below a stack of the function nothing is looked at. */
static int find_tops(struct sandwich *s, const struct stacks *stacks)
{
	const struct stack *items = stacks->items;
	uint32_t at = items[0].child;

	while (at) {
		int is_top = add_top(s, stacks, at);

		if (is_top < 0)
			return is_top;
		if (!is_top && items[at].child) {
			at = items[at].child;
			continue;
		}
		while (at && !items[at].sibling)
			at = items[at].caller - 1;
		at = at ? items[at].sibling : 0;
	}
	return s->tops.failed || s->wanted.failed ? -ENOMEM : 0;
}

static int place_sandwich(struct api_fill *fill, struct stacks *stacks, const char *group)
{
	struct sandwich *s = fill->arg;
	const uint32_t *tops;
	size_t count;
	int err = find_tops(s, stacks);

	(void)group;
	tops = (const uint32_t *)s->tops.data;
	count = s->tops.len / sizeof(*tops);
	err = err ? err : graph_place_callers(s->callers, stacks, tops, count);
	err = err ? err : graph_place_tops(s->callees, stacks, tops, count);
	fill->kept_bytes = s->tops.cap + graph_memory_bytes(s->callers) + graph_memory_bytes(s->callees);
	return err;
}

static int make_sandwich(struct sandwich *s, struct api_call *call, struct query *q, uint64_t nodes, int64_t *whole_ret,
			 uint64_t *events_ret)
{
	struct api_fill fill = { .sides = { q }, .place = place_sandwich, .arg = s };
	int err = api_read(call, q, "");

	s->no_inline = q->no_inline;
	if (!err)
		err = make_graph(call, q, nodes, &s->callers);
	if (!err)
		err = make_graph(call, q, nodes, &s->callees);
	if (!err)
		err = api_fill(call, &fill);
	*whole_ret = fill.total[0];
	*events_ret = fill.events[0];
	if (err)
		return err;
	graph_sum(s->callers);
	graph_sum(s->callees);
	return 0;
}

static int write_tree(const struct sandwich *s, const char *key, const struct graph *graph, uint64_t nodes, struct json *j)
{
	int err;

	json_key(j, key);
	json_object_begin(j);
	err = graph_write_columns(graph, s->name, (uint32_t)nodes, false, NULL, j, NULL);
	json_object_end(j);
	return err;
}

int api_sandwich(struct api_call *call)
{
	AUTO(sandwich_fini)
	struct sandwich s = { .call = call,
			      .name = query_param(call->params, "function"),
			      .module = query_param(call->params, "module") };
	AUTO(query_fini) struct query q = { 0 };
	struct json *j = &call->json;
	const struct call_node *root;
	uint64_t nodes, events;
	int64_t whole;
	int err = read_nodes(call, &nodes);

	if (!err && (!s.name || !*s.name)) {
		buf_puts(&call->error, "function: say of which function");
		err = -EINVAL;
	}
	if (!err)
		err = make_sandwich(&s, call, &q, nodes, &whole, &events);
	if (err)
		return err;
	root = graph_nodes(s.callees, NULL);
	json_object_begin(j);
	api_write_about(call, &q);
	api_write_number(j, "whole", whole);
	api_write_number(j, "self", root->self[0]);
	api_write_number(j, "total", root->total[0]);
	err = api_write_nearest(call, &q, "", events);
	err = err ? err : write_tree(&s, "callers", s.callers, nodes, j);
	err = err ? err : write_tree(&s, "callees", s.callees, nodes, j);
	json_object_end(j);
	return err;
}
