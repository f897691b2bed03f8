/* SPDX-License-Identifier: Apache-2.0 */
/* Of random stacks: a tree that places only the heaviest nodes shows what the whole tree shows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backend/graph.h"
#include "backend/graph_json.h"
#include "backend/store.h"
#include "base/cleanup.h"

enum { NODES = 6000, FUNCTIONS = 40, GROUPS = 5, WEIGHTS = 3000 };

/* Frame n is that of function n % FUNCTIONS; every seventh frame is an inlined call. */
static struct {
	uint32_t parent, frame;
} stacks[NODES];
static char names[FUNCTIONS][16];
static struct {
	uint32_t group, node;
	int64_t weight;
} weights[WEIGHTS];

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

static int node(struct store *store, uint32_t number, uint32_t *parent_ret, uint32_t *frame_ret)
{
	(void)store;
	assert_in_range(number, 1, NODES - 1);
	*parent_ret = stacks[number].parent;
	*frame_ret = stacks[number].frame;
	return 0;
}

static int frame(struct store *store, uint32_t number, struct store_frame *ret)
{
	(void)store;
	*ret = (struct store_frame){ .function = names[number % FUNCTIONS],
				     .system_name = "",
				     .file = "",
				     .module = "app",
				     .path = "",
				     .build_id = "",
				     .type = "native",
				     .line = number % 3,
				     .inlined = number % 7 == 0 };
	return 0;
}

static const struct store_ops ops = { .node_count = node_count, .node = node, .frame = frame };

static void make(void)
{
	for (uint32_t i = 0; i < FUNCTIONS; i++)
		snprintf(names[i], sizeof(names[i]), "f%u", i);
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

/* What is shown of the stacks, a line a node. */
static char *draw(uint32_t most, uint32_t shown, unsigned flags, bool by_group)
{
	struct store store = { .ops = &ops };
	struct functions *functions = functions_new(&store);
	struct graph *g = graph_new(&store, functions, flags, most);
	AUTO(buf_fini) struct buf out = BUF_EMPTY;
	char label[16];

	assert_non_null(g);
	for (uint32_t i = 0; i < WEIGHTS; i++) {
		if (by_group && (!i || weights[i].group != weights[i - 1].group)) {
			snprintf(label, sizeof(label), "group %u", weights[i].group);
			assert_int_equal(i ? graph_place(g) : 0, 0);
			assert_int_equal(graph_group(g, label), 0);
		}
		assert_int_equal(graph_take(g, 0, weights[i].node, weights[i].weight), 0);
	}
	assert_int_equal(graph_place(g), 0);
	assert_int_equal(graph_sum(g), 0);
	assert_int_equal(graph_each_row(g, "all", shown, write_row, &out), 0);
	graph_free(g);
	functions_free(functions);
	return strdup(buf_text(&out));
}

static void test_heaviest(void **unused)
{
	static const uint32_t shown[] = { 2, 3, 10, 100, 1000, 20000 };

	(void)unused;
	for (unsigned round = 0; round < 10; round++) {
		make();
		for (size_t i = 0; i < ARRAY_LEN(shown); i++) {
			const unsigned flags = round % 4; /* of enum graph_flags */
			AUTO_FREE char *whole = draw(0, shown[i], flags, i % 2);
			AUTO_FREE char *heaviest = draw(shown[i], shown[i], flags, i % 2);

			assert_string_equal(heaviest, whole);
			assert_int_equal(strncmp(whole, "0 all ", 6), 0);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_heaviest) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
