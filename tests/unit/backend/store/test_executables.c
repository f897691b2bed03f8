/* SPDX-License-Identifier: Apache-2.0 */
/* Executables of random stacks against each stack walked by itself; frames of one executable stand above and below others.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "backend/store/executables.h"

enum { NODES = 400, FRAMES = 60, EXECUTABLES = 7, ROUNDS = 50 };

static const char *const paths[EXECUTABLES] = { "/bin/a", "/bin/b", "/bin/b", "/lib/c", "/lib/d", "", "/lib/e" };
static const char *const build_ids[EXECUTABLES] = { "01", "02", "03", "", "05", "06", "07" };

static struct store_node nodes_of[NODES];
static uint64_t events_of[NODES];
static uint32_t state = 1;

static uint32_t rnd(uint32_t below)
{
	state = state * 1664525 + 1013904223;
	return (state >> 8) % below;
}

/* Frames 0, 8, ... are of none; those of an executable stand apart. */
static uint32_t executable_of(uint32_t frame)
{
	return frame % (EXECUTABLES + 1);
}

static int64_t weight_of(uint32_t stack)
{
	return 7 * (int64_t)events_of[stack] - 3;
}

static uint32_t node_count(struct store *s)
{
	(void)s;
	return NODES;
}

static int nodes(struct store *s, uint32_t first, uint32_t count, struct store_node *ret)
{
	(void)s;
	assert_true(first + count <= NODES);
	memcpy(ret, nodes_of + first, count * sizeof(*ret));
	return 0;
}

static int sum_stacks(struct store *s, const struct store_selection *sel, const char *by,
		      int (*fn)(void *arg, const char *group, uint32_t node, int64_t weight, uint64_t events), void *arg)
{
	int err = 0;

	(void)s;
	(void)sel;
	assert_null(by);
	for (uint32_t i = 0; i < NODES && !err; i++)
		err = events_of[i] ? fn(arg, "", i, weight_of(i), events_of[i]) : 0;
	return err;
}

static int of_frame(struct store *s, uint32_t frame, struct store_executable *ret)
{
	const uint32_t exe = executable_of(frame);

	(void)s;
	assert_in_range(frame, 1, FRAMES - 1);
	if (exe)
		*ret = (struct store_executable){ .path = paths[exe - 1],
						  .build_id = build_ids[exe - 1],
						  .id_kind = "gnu",
						  .process = "",
						  .named_frames = frame % 3 == 0 };
	ret->named_frames = frame % 3 == 0;
	return 0;
}

struct told {
	struct store_executable of[EXECUTABLES], none;
	uint64_t last;
	const struct store_executable *of_last; /* the one before */
	uint32_t count;
};

static int tell(void *arg, const struct store_executable *e)
{
	struct told *t = arg;
	uint32_t i = 0;

	if (!e->path) {
		t->none = *e;
		t->last = 0; /* nothing comes behind it */
		return 0;
	}
	while (i < EXECUTABLES && (strcmp(e->path, paths[i]) != 0 || strcmp(e->build_id, build_ids[i]) != 0))
		i++;
	assert_true(i < EXECUTABLES);
	assert_true(e->events <= t->last);
	if (t->of_last && t->of_last->events == e->events) { /* in order by path, then by build id */
		const int order = strcmp(t->of_last->path, e->path);

		assert_true(order < 0 || (!order && strcmp(t->of_last->build_id, e->build_id) < 0));
	}
	t->of_last = &t->of[i];
	assert_string_equal(e->id_kind, "gnu");
	t->last = e->events;
	t->of[i] = *e;
	t->count++;
	return 0;
}

/* What walking each stack to its root gives. */
static uint32_t walk_each(struct store_executable *expected, struct store_executable *none)
{
	uint64_t frames_met = 0;
	uint32_t count = 0;

	memset(expected, 0, EXECUTABLES * sizeof(*expected));
	memset(none, 0, sizeof(*none));
	for (uint32_t i = 0; i < NODES; i++) {
		const uint32_t leaf = nodes_of[i].frame, own = executable_of(leaf);
		struct store_executable *e = own ? &expected[own - 1] : none;
		uint32_t met = 0;

		if (i && events_of[i]) {
			e->self += weight_of(i);
			e->named_self += leaf % 3 ? 0 : weight_of(i);
		}

		for (uint32_t node = events_of[i] ? i : 0; node; node = nodes_of[node].parent) {
			const uint32_t frame = nodes_of[node].frame, exe = executable_of(frame);

			if (!exe)
				continue;
			if (!(frames_met >> frame & 1)) {
				count += !expected[exe - 1].frames;
				expected[exe - 1].frames++;
				expected[exe - 1].named_frames += frame % 3 == 0;
			}
			frames_met |= 1ull << frame;
			expected[exe - 1].events += met >> exe & 1 ? 0 : events_of[i];
			met |= 1u << exe;
		}
	}
	return count;
}

static void test_random(void **state_arg)
{
	static const struct store_read_ops ops = { .node_count = node_count, .nodes = nodes, .sum_stacks = sum_stacks };
	struct store store = { .read = &ops };
	const struct store_selection all = { .to_ns = UINT64_MAX };

	(void)state_arg;
	for (uint32_t round = 0; round < ROUNDS; round++) {
		struct store_executable expected[EXECUTABLES], none;
		struct told t = { .last = UINT64_MAX };
		uint32_t count;

		for (uint32_t i = 1; i < NODES; i++)
			nodes_of[i] = (struct store_node){ rnd(i), 1 + rnd(FRAMES - 1) };
		for (uint32_t i = 0; i < NODES; i++)
			events_of[i] = rnd(round + 1) ? 0 : rnd(1000); /* ever fewer */
		count = walk_each(expected, &none);
		assert_int_equal(executables_count(&store, &all, of_frame, tell, &t), 0);
		assert_int_equal(t.count, count);
		for (uint32_t i = 0; i < EXECUTABLES; i++) {
			assert_int_equal(t.of[i].events, expected[i].events);
			assert_int_equal(t.of[i].frames, expected[i].frames);
			assert_int_equal(t.of[i].named_frames, expected[i].named_frames);
			assert_int_equal(t.of[i].self, expected[i].self);
			assert_int_equal(t.of[i].named_self, expected[i].named_self);
		}
		assert_int_equal(t.none.self, none.self);
		assert_int_equal(t.none.named_self, none.named_self);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_random) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
