/* SPDX-License-Identifier: Apache-2.0 */
/* Names of a SQLite store with more of them than readers keep: each is told, whatever the order, and memory stays bounded.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backend/store/sqlite/db.h"
#include "backend/store/sqlite/names_parts.h"
#include "backend/store/sqlite/sqlite.h"
#include "backend/store/store_read.h"
#include "backend/store/store_write.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "proto/profiles_builder.h"

#define T0 1700000040000000000ull

enum {
	BATCHES = 56,
	BATCH_FRAMES = 2500, /* 140,000 in all, each with a function and a name of its own */
	FRAMES = BATCHES * BATCH_FRAMES,
	MOST_BYTES = 14 << 20, /* with everything read that readers keep */
	MOST_RUN_BYTES = 4 << 20,
	IDLE_BYTES = 64 << 10,
};

static const struct builder_profile_spec spec = {
	"hearth", "1", "samples", "count", "cpu", "nanoseconds", 50000000, NULL, 0
};

/* Stacks of ten frames; function and file of frame number n are called after n. */
static struct profiles *make_batch(uint32_t batch)
{
	struct key_value pid = { .key = STR("process.pid"), .value = { .kind = VALUE_INT, .integer = 42 } };
	struct builder *b = builder_new();
	uint32_t profile = builder_profile(b, builder_resource(b, &pid, 1), &spec);
	int32_t mapping = builder_mapping(b, 0x1000, 0x2000, 0, builder_string_z(b, "/usr/bin/prog"), NULL, 0);
	const int32_t type = builder_attribute_string(b, "profile.frame.type", STR("native"));
	struct profiles *p;
	int32_t stack[10];

	for (uint32_t i = 0; i < BATCH_FRAMES; i++) {
		uint32_t number = batch * BATCH_FRAMES + i;
		struct profile_line line = { .line = number };
		char name[32];

		snprintf(name, sizeof(name), "function%u", number);
		line.function_index = builder_function(b, builder_string_z(b, name), 0, 0, 0);
		stack[i % 10] = builder_location(b, mapping, 0x100000 + number, &line, 1, &type, 1);
		if (i % 10 == 9)
			builder_event(b, profile, builder_stack(b, stack, 10), NULL, 0, 0, T0 + number, false, 0);
	}
	assert_int_equal(builder_freeze(b, T0, T0 + NSEC_PER_SEC, &p), 0);
	builder_free(b);
	return p;
}

static struct store *make_store(void)
{
	struct store_config config = { .place = ":memory:", .keep_age_ns = UINT64_MAX, .keep_bytes = UINT64_MAX };
	struct store_error err;
	struct store *s = NULL;
	struct sink *sink;

	assert_int_equal(store_sqlite_open(&config, NULL, &s, &err), 0);
	assert_int_equal(s->write->writer(s, &sink), 0);
	for (uint32_t i = 0; i < BATCHES; i++) {
		struct profiles *p = make_batch(i);

		assert_int_equal(sink_consume(sink, p, NULL), 0);
		assert_int_equal(sink_flush(sink, clock_mono_ns() + 60 * NSEC_PER_SEC), 0);
		profiles_put(p);
	}
	sink_free(sink);
	return s;
}

static void check_frame(struct store *s, uint32_t number)
{
	struct store_frame f;
	char name[32];

	assert_int_equal(s->read->frame(s, number, &f), 0);
	snprintf(name, sizeof(name), "function%u", (uint32_t)f.line);
	assert_string_equal(f.function, name);
	assert_int_equal(f.address, 0x100000 + f.line);
	assert_string_equal(f.module, "prog");
	assert_string_equal(f.type, "native");
}

static size_t bytes_of(struct store *s)
{
	return store_names_memory_bytes(store_sqlite_of(s)->names);
}

/* As many at once as are asked for, across rows of the table, and the empty one among them. */
static void check_neighbours(struct store *s, uint32_t count)
{
	AUTO_FREE struct store_node *all = calloc(count, sizeof(*all));
	struct store_node one;

	assert_non_null(all);
	assert_int_equal(s->read->nodes(s, 0, count, all), 0);
	assert_int_equal(all[0].parent | all[0].frame, 0);
	for (uint32_t i = 1; i < count; i++) {
		assert_int_equal(s->read->nodes(s, i, 1, &one), 0);
		assert_memory_equal(&all[i], &one, sizeof(one));
	}
}

static void check_nodes(struct store *s, uint32_t step)
{
	const uint32_t count = s->read->node_count(s);
	struct store_node at[3];

	assert_int_equal(count, FRAMES + 1);
	for (uint64_t i = 1; i < count; i++) {
		uint32_t node = (uint32_t)(i * step % count);

		assert_int_equal(s->read->nodes(s, node, 1, at), 0);
		assert_true(at[0].parent < node && at[0].frame && at[0].frame <= FRAMES);
	}
	assert_int_not_equal(s->read->nodes(s, count, 1, at), 0);
	assert_int_not_equal(s->read->nodes(s, count - 1, 2, at), 0);
	check_neighbours(s, count);
}

static void test_bounds(void **state)
{
	struct store *s = make_store();
	struct store_frame f;
	size_t few, most = 0;

	(void)state;
	for (uint32_t step = 1; step < 100; step = step * 7 + 4) { /* in order, and across */
		for (uint64_t i = 0; i < FRAMES; i += step == 1 ? 1 : 13)
			check_frame(s, (uint32_t)(i * step % FRAMES + 1));
		most = bytes_of(s) > most ? bytes_of(s) : most;
		assert_true(bytes_of(s) < MOST_BYTES);
		assert_true(names_runs_memory_bytes(store_sqlite_of(s)->names) < MOST_RUN_BYTES);
		s->read->rest(s, false); /* between questions much is not kept */
		assert_true(bytes_of(s) < NAME_BYTES_KEPT + RUNS_KEPT_BYTES + IDLE_BYTES);
	}
	assert_true(most > MOST_NAME_BYTES); /* or the bounds show nothing */
	check_nodes(s, 1);
	check_nodes(s, 7919);
	s->read->rest(s, false);
	check_frame(s, 1);
	few = bytes_of(s);
	s->read->rest(s, false); /* little stays */
	assert_int_equal(bytes_of(s), few);
	s->read->rest(s, true);
	assert_true(bytes_of(s) < few);
	assert_true(bytes_of(s) < IDLE_BYTES);
	check_frame(s, FRAMES);
	assert_int_not_equal(s->read->frame(s, FRAMES + 1, &f), 0);
	s->close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_bounds) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
