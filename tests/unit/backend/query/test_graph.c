/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Of random stacks: the whole tree, that of what a function calls and that of its callers are what adding stacks up one by
 * one gives; a tree that places only the heaviest nodes shows what the whole tree shows; and tables of functions have what
 * looking for each function in each stack gives.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backend/api/api.h"
#include "backend/query/graph.h"
#include "backend/query/graph_json.h"
#include "backend/store/store_read.h"
#include "backend/store/store_write.h"
#include "base/cleanup.h"

enum { NODES = 6000, FUNCTIONS = 40, GROUPS = 5, WEIGHTS = 3000, ALL = 40000, TYPES = 3 };

/* Frame n is that of function n % FUNCTIONS; every seventh frame is an inlined call. */
static struct {
	uint32_t parent, frame;
} stacks[NODES];
static char names[FUNCTIONS][16];
static struct {
	uint32_t group, node;
	int64_t weight;
} weights[WEIGHTS];

static const char *const types[TYPES] = { "native", "kernel", "go" };

/* Every fifth function has no name. */
static bool is_named(uint32_t function)
{
	return function % 5 != 0;
}

static uint64_t state = 88172645463325252ull;

static uint32_t rnd(uint32_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 32) % below;
}

static uint32_t node_count(struct store *store)
{
	(void)store;
	return NODES;
}

static int nodes(struct store *store, uint32_t first, uint32_t count, struct store_node *ret)
{
	(void)store;
	for (uint32_t i = 0; i < count; i++) {
		assert_in_range(first + i, 0, NODES - 1);
		ret[i] = (struct store_node){ stacks[first + i].parent, stacks[first + i].frame };
	}
	return 0;
}

static int frame(struct store *store, uint32_t number, struct store_frame *ret)
{
	(void)store;
	*ret = (struct store_frame){ .function = is_named(number % FUNCTIONS) ? names[number % FUNCTIONS] : "",
				     .address = number % FUNCTIONS,
				     .code_start = number % FUNCTIONS,
				     .code_size = 1,
				     .system_name = "",
				     .file = "",
				     .module = "app",
				     .process = "",
				     .path = "",
				     .build_id = "",
				     .type = types[number % FUNCTIONS % TYPES],
				     .line = number % 3,
				     .inlined = number % 7 == 0 };
	return 0;
}

static const struct store_read_ops ops = { .node_count = node_count, .nodes = nodes, .frame = frame };

static void make(void)
{
	for (uint32_t i = 0; i < FUNCTIONS; i++)
		snprintf(names[i], sizeof(names[i]), is_named(i) ? "f%u" : "app+0x%x..0x%x", i, i + 1);
	for (uint32_t i = 1; i < NODES; i++) {
		stacks[i].parent = i < 4 ? 0 : i - 1 - rnd(i < 60 ? i : 60);
		stacks[i].frame = 1 + rnd(4 * FUNCTIONS);
	}
	for (uint32_t i = 0; i < WEIGHTS; i++) {
		weights[i].group = i / (WEIGHTS / GROUPS);
		weights[i].node = rnd(20) ? rnd(NODES) : 0;
		weights[i].weight = 1 + rnd(1 << 20); /* hardly two nodes weigh the same */
	}
}

static int write_row(void *arg, const struct graph_row *row)
{
	buf_printf(arg, "%u %s %lld %lld\n", row->depth, row->name, (long long)row->self, (long long)row->total);
	return 0;
}

static void write_node(struct buf *out, uint32_t depth, const char *name, const int64_t *self, const int64_t *total)
{
	buf_printf(out, "%u %s %lld/%lld %lld/%lld\n", depth, name, (long long)self[0], (long long)self[1],
		   (long long)total[0], (long long)total[1]);
}

/* All that is below @at, with both sides. */
static void write_nodes(const struct graph *g, uint32_t at, uint32_t depth, struct buf *out)
{
	const struct call_node *nodes = graph_nodes(g, NULL), *n = &nodes[at];

	write_node(out, depth, at ? functions_get(graph_functions(g), graph_call(n).function).name : "all", n->self,
		   n->total);
	for (uint32_t c = n->child; c; c = nodes[c].sibling)
		write_nodes(g, c, depth + 1, out);
}

enum what { WHOLE, CALLEES, CALLERS };

static bool is_of(uint32_t stack, uint32_t function, unsigned flags)
{
	return stacks[stack].frame % FUNCTIONS == function && !(flags & GRAPH_NO_INLINE && stacks[stack].frame % 7 == 0);
}

/* The outermost stack of @function that @stack is or is below; 0: none. */
static uint32_t outermost(uint32_t stack, uint32_t function, unsigned flags)
{
	uint32_t found = 0;

	for (; stack; stack = stacks[stack].parent)
		found = is_of(stack, function, flags) ? stack : found;
	return found;
}

static bool is_group_start(uint32_t i)
{
	return !i || weights[i].group != weights[i - 1].group;
}

/* Of odd samples, side 1 when there are two. */
static unsigned side_of(uint32_t i, bool two_sides)
{
	return two_sides && i % 2;
}

static void place_groups(struct graph *g, struct stacks *s, bool two_sides)
{
	char label[16];

	for (uint32_t i = 0; i < WEIGHTS; i++) {
		assert_int_equal(stacks_take(s, side_of(i, two_sides), weights[i].node, weights[i].weight), 0);
		if (i + 1 < WEIGHTS && !is_group_start(i + 1))
			continue;
		snprintf(label, sizeof(label), "group %u", weights[i].group);
		assert_int_equal(stacks_add_up(s, true), 0);
		assert_int_equal(graph_place(g, s, label), 0);
	}
}

static void place(struct graph *g, struct stacks *s, enum what what, unsigned flags, bool two_sides)
{
	static uint32_t tops[NODES];
	size_t count = 0;

	for (uint32_t i = 0; i < WEIGHTS; i++)
		assert_int_equal(stacks_take(s, side_of(i, two_sides), weights[i].node, weights[i].weight), 0);
	assert_int_equal(stacks_add_up(s, false), 0);
	for (uint32_t i = 1; i < NODES; i++)
		if (s->items[i].caller && (s->weights[0][i] || (two_sides && s->weights[1][i])) &&
		    outermost(i, 0, flags) == i)
			tops[count++] = i;
	if (what == WHOLE)
		assert_int_equal(graph_place(g, s, NULL), 0);
	else if (what == CALLEES)
		assert_int_equal(graph_place_tops(g, s, tops, count), 0);
	else
		assert_int_equal(graph_place_callers(g, s, tops, count), 0);
}

/* What is shown of the stacks, a line a node. */
static char *draw(enum what what, uint32_t most, uint32_t shown, unsigned flags, bool by_group, bool two_sides)
{
	struct store store = { .read = &ops };
	struct functions *functions = functions_new(&store);
	struct graph *g = graph_new(functions, flags, most);
	AUTO(buf_fini) struct buf out = BUF_EMPTY;
	AUTO(stacks_fini) struct stacks s;

	assert_non_null(g);
	assert_int_equal(stacks_init(&s, &store, two_sides), 0);
	if (by_group)
		place_groups(g, &s, two_sides);
	else
		place(g, &s, what, flags, two_sides);
	graph_sum(g);
	if (shown == ALL)
		write_nodes(g, 0, 0, &out);
	else
		assert_int_equal(graph_each_row(g, "all", shown, write_row, &out), 0);
	graph_free(g);
	functions_free(functions);
	return strdup(buf_text(&out));
}

static void test_heaviest(void **unused)
{
	static const uint32_t shown[] = { 2, 3, 10, 100, 1000, ALL };

	(void)unused;
	for (unsigned round = 0; round < 10; round++) {
		make();
		for (size_t i = 0; i < ARRAY_LEN(shown) * 4; i++) {
			const unsigned flags = round % 4; /* of enum graph_flags */
			const enum what what = i % 4 < 2 ? WHOLE : (enum what)(i % 4 - 1);
			AUTO_FREE char *whole = draw(what, ALL, shown[i / 4], flags, i % 4 == 1, round % 3 == 2);
			AUTO_FREE char *heaviest = draw(what, shown[i / 4], shown[i / 4], flags, i % 4 == 1, round % 3 == 2);

			assert_string_equal(heaviest, whole);
			assert_int_equal(strncmp(whole, "0 all ", 6), 0);
		}
	}
}

/* --- one by one --- */

static struct {
	uint32_t function, line, child, sibling;
	bool is_inlined;
	int64_t self[2], total[2];
} plain[ALL];
static uint32_t plain_count;

static uint32_t plain_child(uint32_t parent, uint32_t number, unsigned flags)
{
	const uint32_t frame_of = stacks[number].frame, line = flags & GRAPH_LINES ? frame_of % 3 : 0;
	const bool is_inlined = frame_of % 7 == 0;
	uint32_t *at = &plain[parent].child;

	if (is_inlined && flags & GRAPH_NO_INLINE)
		return parent;
	for (; *at; at = &plain[*at].sibling)
		if (plain[*at].function == frame_of % FUNCTIONS && plain[*at].line == line &&
		    plain[*at].is_inlined == is_inlined)
			return *at;
	assert_true(plain_count < ALL);
	*at = plain_count;
	plain[plain_count].function = frame_of % FUNCTIONS;
	plain[plain_count].line = line;
	plain[plain_count].is_inlined = is_inlined;
	return plain_count++;
}

/* @stack from @top on, without it; 0: from the root on. */
static uint32_t plain_path(uint32_t stack, uint32_t top, unsigned flags)
{
	return stack == top ? 0 : plain_child(plain_path(stacks[stack].parent, top, flags), stack, flags);
}

static void plain_add(enum what what, unsigned flags, uint32_t stack, unsigned side, int64_t weight)
{
	const uint32_t top = what == WHOLE ? 0 : outermost(stack, 0, flags);
	uint32_t at = 0;

	if (what != WHOLE && !top)
		return;
	if (what == CALLERS) {
		for (uint32_t caller = stacks[top].parent; caller; caller = stacks[caller].parent)
			at = plain_child(at, caller, flags);
	} else {
		at = plain_path(stack, top, flags);
	}
	plain[at].self[side] += weight;
}

static int heavier(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	const int64_t xw = plain[x].total[0] + plain[x].total[1], yw = plain[y].total[0] + plain[y].total[1];

	return xw != yw ? (xw > yw ? -1 : 1) : strcmp(names[plain[x].function], names[plain[y].function]);
}

static void plain_sum(uint32_t at)
{
	memcpy(plain[at].total, plain[at].self, sizeof(plain[at].total));
	for (uint32_t c = plain[at].child; c; c = plain[c].sibling) {
		plain_sum(c);
		plain[at].total[0] += plain[c].total[0];
		plain[at].total[1] += plain[c].total[1];
	}
}

static void plain_draw(struct buf *out, uint32_t at, uint32_t depth)
{
	uint32_t family[8 * FUNCTIONS], count = 0;

	write_node(out, depth, at ? names[plain[at].function] : "all", plain[at].self, plain[at].total);
	for (uint32_t c = plain[at].child; c; c = plain[c].sibling)
		family[count++] = c;
	qsort(family, count, sizeof(*family), heavier);
	for (uint32_t i = 0; i < count; i++)
		plain_draw(out, family[i], depth + 1);
}

static void test_trees(void **unused)
{
	(void)unused;
	for (unsigned round = 0; round < 12; round++) {
		const enum what what = round / 4;
		const unsigned flags = round % 4;
		AUTO(buf_fini) struct buf expected = BUF_EMPTY;
		AUTO_FREE char *drawn = NULL;

		make();
		memset(plain, 0, sizeof(plain));
		plain_count = 1;
		for (uint32_t i = 0; i < WEIGHTS; i++)
			plain_add(what, flags, weights[i].node, side_of(i, round % 3 == 2), weights[i].weight);
		plain_sum(0);
		plain_draw(&expected, 0, 0);
		drawn = draw(what, ALL, ALL, flags, false, round % 3 == 2);
		assert_string_equal(drawn, buf_text(&expected));
	}
}

/* --- tables --- */

static bool is_selected(const struct store_selection *sel, uint32_t group)
{
	const uint32_t number = (uint32_t)atoi(sel->matchers[0].value);

	return strcmp(sel->matchers[0].label, "below") ? group >= number : group < number;
}

static int sum_stacks(struct store *store, const struct store_selection *sel, const char *by,
		      int (*fn)(void *arg, const char *group, uint32_t node, int64_t weight, uint64_t events), void *arg)
{
	char group[16] = "";
	int err = 0;

	(void)store;
	for (uint32_t i = 0; i < WEIGHTS && !err; i++) {
		if (!is_selected(sel, weights[i].group))
			continue;
		if (by)
			snprintf(group, sizeof(group), "group %u", weights[i].group);
		err = fn(arg, group, weights[i].node, weights[i].weight, 1);
	}
	return err;
}

static int kinds(struct store *store, const struct store_selection *sel, int (*fn)(void *arg, const struct store_kind *kind),
		 void *arg)
{
	const struct store_kind samples = { .type = "samples", .unit = "count", .period_type = "", .period_unit = "" };

	(void)store;
	(void)sel;
	return fn(arg, &samples);
}

static int sum_times(struct store *store, const struct store_selection *sel, uint64_t step_ns, const char *by,
		     int (*fn)(void *arg, const char *group, uint32_t bucket, int64_t weight, uint64_t events), void *arg)
{
	(void)store;
	(void)sel;
	(void)step_ns;
	(void)by;
	(void)fn;
	(void)arg;
	return 0;
}

static int status(struct store *store, struct store_status *ret)
{
	(void)store;
	*ret = (struct store_status){ .kind = "table", .place = "here" };
	return 0;
}

static const struct store_read_ops api_ops = { .node_count = node_count,
					       .nodes = nodes,
					       .frame = frame,
					       .sum_stacks = sum_stacks,
					       .sum_times = sum_times,
					       .kinds = kinds,
					       .status = status };

enum { FIRST_TO = 4, SECOND_FROM = 2 };

/* What of the samples of groups [@from, @to) is the function's own, and what it is in; those of @group, or all. */
static void look(uint32_t function, uint32_t from, uint32_t to, uint32_t group, unsigned flags, int64_t *self,
		 int64_t *total)
{
	*self = *total = 0;
	for (uint32_t i = 0; i < WEIGHTS; i++) {
		uint32_t leaf = weights[i].node;

		if (weights[i].group < from || weights[i].group >= to || (group != GROUPS && weights[i].group != group))
			continue;
		*total += outermost(leaf, function, flags) ? weights[i].weight : 0;
		while (flags & GRAPH_NO_INLINE && leaf && stacks[leaf].frame % 7 == 0)
			leaf = stacks[leaf].parent;
		*self += leaf && is_of(leaf, function, flags) ? weights[i].weight : 0;
	}
}

static void check_rows(const char *answer, bool by_group, bool two_sides, unsigned flags)
{
	static const char head[] = ",\"module\":\"app\",\"file\":\"\",\"type\":\"%s\",\"build_id\":\"\"";
	char row[256], type[64], value[32] = "", second[64] = "";
	uint32_t rows = 0;
	int64_t self, total, self2, total2;

	for (uint32_t group = by_group ? 0 : GROUPS; group < (by_group ? GROUPS : GROUPS + 1); group++) {
		for (uint32_t f = 0; f < FUNCTIONS; f++) {
			look(f, 0, FIRST_TO, group, flags, &self, &total);
			look(f, SECOND_FROM, GROUPS, group, flags, &self2, &total2);
			if (!total && !(two_sides && total2))
				continue;
			if (by_group)
				snprintf(value, sizeof(value), ",\"value\":\"group %u\"", group);
			if (two_sides)
				snprintf(second, sizeof(second), ",\"self2\":%lld,\"total2\":%lld", (long long)self2,
					 (long long)total2);
			snprintf(type, sizeof(type), head, types[f % TYPES]);
			snprintf(row, sizeof(row), "{\"name\":\"%s\"%s%s,\"self\":%lld,\"total\":%lld%s}", names[f], type,
				 value, (long long)self, (long long)total, second);
			rows++;
			if (!strstr(answer, row))
				fail_msg("no %s in %s", row, answer);
		}
	}
	snprintf(row, sizeof(row), "\"functions\":%u,", rows);
	assert_non_null(strstr(answer, row));
}

static void test_tables(void **unused)
{
	static const struct store_write_ops no_write;
	struct store store = { .read = &api_ops, .write = &no_write };
	const struct api_config config = { .store = &store };
	struct api *api;

	(void)unused;
	assert_int_equal(api_new(&config, &api), 0);
	for (unsigned round = 0; round < 8; round++) {
		const struct query_param items[] = {
			{ "limit", "100000" }, { "inline", round & 1 ? "0" : "1" }, { round & 2 ? "by" : "none", "group" },
			{ "format", "top" },   { "query", "{below=\"4\"}" },	    { "query2", "{from=\"2\"}" },
		};
		const struct query_params params = { items, ARRAY_LEN(items) };
		struct api_answer answer = { 0 };

		make();
		api_answer(api, round & 4 ? "/api/v1/diff" : "/api/v1/top", &params, NULL, &answer);
		assert_int_equal(answer.status, 200);
		check_rows(buf_text(&answer.body), round & 2, round & 4, round & 1 ? GRAPH_NO_INLINE : 0);
		buf_fini(&answer.body);
	}
	api_free(api);
}

/* --- types --- */

/* The sum of all functions' own weights, by type, is in the answer, however small the picture is. */
static void check_types(const char *answer, bool two_sides, unsigned flags)
{
	char row[256], second[128] = "";

	for (uint32_t type = 0; type < TYPES; type++) {
		int64_t self[2] = { 0 }, unnamed[2] = { 0 };

		for (uint32_t f = type; f < FUNCTIONS; f += TYPES) {
			for (unsigned side = 0; side < 2; side++) {
				int64_t own, total;

				look(f, side ? SECOND_FROM : 0, side ? GROUPS : FIRST_TO, GROUPS, flags, &own, &total);
				self[side] += own;
				unnamed[side] += is_named(f) ? 0 : own;
			}
		}
		if (two_sides)
			snprintf(second, sizeof(second), ",\"self2\":%lld,\"unnamed2\":%lld", (long long)self[1],
				 (long long)unnamed[1]);
		snprintf(row, sizeof(row), "{\"type\":\"%s\",\"self\":%lld,\"unnamed\":%lld%s}", types[type],
			 (long long)self[0], (long long)unnamed[0], second);
		if (!strstr(answer, row))
			fail_msg("no %s in %s", row, answer);
	}
}

static void test_types(void **unused)
{
	static const struct store_write_ops no_write;
	struct store store = { .read = &api_ops, .write = &no_write };
	const struct api_config config = { .store = &store };
	struct api *api;

	(void)unused;
	assert_int_equal(api_new(&config, &api), 0);
	for (unsigned round = 0; round < 16; round++) {
		const struct query_param items[] = {
			{ "limit", "3" },
			{ "inline", round & 1 ? "0" : "1" },
			{ round & 2 ? "by" : "none", "group" },
			{ "query", "{below=\"4\"}" },
			{ "query2", "{from=\"2\"}" },
			{ "max_nodes", "10" },
			{ round & 8 ? "format" : "none", "top" },
		};
		const struct query_params params = { items, ARRAY_LEN(items) };
		struct api_answer answer = { 0 };

		make();
		api_answer(api,
			   round & 4   ? "/api/v1/diff"
			   : round & 8 ? "/api/v1/top"
				       : "/api/v1/flamegraph",
			   &params, NULL, &answer);
		assert_int_equal(answer.status, 200);
		check_types(buf_text(&answer.body), round & 4, round & 1 ? GRAPH_NO_INLINE : 0);
		buf_fini(&answer.body);
	}
	api_free(api);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_trees),
		cmocka_unit_test(test_heaviest),
		cmocka_unit_test(test_tables),
		cmocka_unit_test(test_types),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
