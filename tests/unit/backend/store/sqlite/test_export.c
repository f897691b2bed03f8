/* SPDX-License-Identifier: Apache-2.0 */
/* Exports of the SQLite store: which events are one sample, in which order, the window that they make, sums that have no
 * times, a selection of time and of stacks, how much a message has, and how many sets of labels are held meanwhile. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "backend/store/sqlite/db.h"
#include "backend/store/sqlite/names_parts.h"
#include "backend/store/sqlite/sqlite.h"
#include "backend/store/store_read.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "proto/profiles_builder.h"
#include "tests/unit/backend/store_put.h"

#define T0 1700000040000000000ull

static const struct builder_profile_spec on_cpu = { "hearth",	   "1",	     "samples", "count", "cpu",
						    "nanoseconds", 50000000, NULL,	0 };
static const struct builder_profile_spec off_cpu = { "hearth", "1", "off_cpu", "nanoseconds", "", "", 0, NULL, 0 };

static struct store *store;
static struct builder *builder;
static struct buf told;
static char last_id[16];

static int setup(void **state)
{
	const struct store_config config = { .place = ":memory:", .keep_age_ns = UINT64_MAX, .keep_bytes = UINT64_MAX };
	struct store_error why;

	(void)state;
	builder = builder_new();
	return !builder || store_sqlite_open(&config, NULL, &store, &why);
}

static int teardown(void **state)
{
	(void)state;
	store->close(store);
	builder_free(builder);
	buf_fini(&told);
	return 0;
}

/* A stack of one function. */
static int32_t stack(const char *function)
{
	struct profile_line line = { builder_function(builder, builder_string_z(builder, function), 0, 0, 10), 12, 0 };
	int32_t location = builder_location(builder, 0, 0x1000 + (uint64_t)*function, &line, 1, NULL, 0);

	return builder_stack(builder, &location, 1);
}

static void put(void)
{
	struct profiles *p;

	assert_int_equal(builder_freeze(builder, T0, T0 + NSEC_PER_SEC, &p), 0);
	store_put(store, p);
	profiles_put(p);
}

/* --- what is told: "FIRST+DURATION: CPU TIMES=VALUES, ..." of each profile, times since T0 --- */

static const char *text_of(const struct profiles *p, int32_t index)
{
	return p->dict.strings[index].data;
}

static void tell_sample(const struct profiles *p, const struct sample *s)
{
	const struct any_value *cpu = profiles_find_attribute(p, &s->attributes, "cpu.logical_number");

	if (cpu)
		buf_printf(&told, "cpu%d ", (int)cpu->integer);
	for (uint32_t i = 0; i < s->timestamp_count; i++)
		buf_printf(&told, "%s%d", i ? "," : "", (int)(s->timestamps_unix_ns[i] - T0));
	for (uint32_t i = 0; i < s->value_count; i++)
		buf_printf(&told, "%s%d", i ? "," : "=", (int)s->values[i]);
}

static int tell(void *arg, struct profiles *p)
{
	(void)arg;
	for (uint32_t r = 0; r < p->resource_count; r++) {
		const struct scope_profiles *scope = &p->resources[r].scopes[0];

		assert_int_equal(p->resources[r].scope_count, 1);
		for (uint32_t i = 0; i < scope->profile_count; i++) {
			const struct profile *f = &scope->profiles[i];

			buf_printf(&told, "%d+%d", (int)(f->time_unix_ns - T0), (int)f->duration_ns);
			for (uint32_t k = 0; k < f->sample_count; k++) {
				buf_puts(&told, k ? "; " : ": ");
				tell_sample(p, &f->samples[k]);
			}
			buf_putc(&told, '\n');
			assert_int_equal(f->profile_id.len, sizeof(last_id));
			assert_memory_not_equal(f->profile_id.data, last_id, sizeof(last_id));
			memcpy(last_id, f->profile_id.data, sizeof(last_id));
		}
	}
	return 0;
}

static void exports(const struct store_selection *sel, const char *wanted)
{
	buf_reset(&told);
	assert_int_equal(store->read->export(store, sel, tell, NULL), 0);
	assert_string_equal(buf_text(&told), wanted);
}

static const struct store_selection all = { .to_ns = UINT64_MAX };

/* --- tests --- */

/* Events of a stack are one sample, its times in order, whatever order they came in; the window is theirs. */
static void test_times(void **state)
{
	const uint32_t profile = builder_profile(builder, builder_resource(builder, NULL, 0), &on_cpu);
	const int32_t a = stack("a"), b = stack("b");
	struct store_selection part = { .from_ns = T0 + 20, .to_ns = T0 + 40 };
	uint64_t bits[1] = { 0 };

	(void)state;
	builder_event(builder, profile, a, NULL, 0, 0, T0 + 30, false, 0);
	builder_event(builder, profile, b, NULL, 0, 0, T0 + 20, false, 0);
	builder_event(builder, profile, a, NULL, 0, 0, T0 + 10, false, 0);
	builder_event(builder, profile, a, NULL, 0, 0, T0 + 40, false, 0);
	put();
	exports(&all, "10+31: 10,30,40; 20\n");
	exports(&part, "20+11: 30; 20\n"); /* 40 is behind it */
	part.from_ns = T0 + 21;
	exports(&part, "30+1: 30\n");
	part.from_ns = T0 + 41;
	part.to_ns = UINT64_MAX;
	exports(&part, "");
	part.from_ns = 0;
	part.stacks = bits;
	part.stack_count = 64;
	exports(&part, "");
	bits[0] = 1 << 1; /* the first stack that got a number */
	exports(&part, "10+31: 10,30,40\n");
	bits[0] = 1 << 2;
	exports(&part, "20+1: 20\n");
	part.stack_count = 2; /* the second is behind them */
	exports(&part, "");
}

/* Samples differ by CPU, and each has a value a time; one of each kind is a profile of its own. */
static void test_values(void **state)
{
	const uint32_t profile = builder_profile(builder, builder_resource(builder, NULL, 0), &off_cpu);
	const int32_t a = stack("a");
	int32_t cpus[2];

	(void)state;
	for (int i = 0; i < 2; i++)
		cpus[i] = builder_attribute_int(builder, "cpu.logical_number", i + 5);
	builder_event(builder, profile, a, &cpus[1], 1, 0, T0 + 5, true, 50);
	builder_event(builder, profile, a, &cpus[0], 1, 0, T0 + 7, true, 70);
	builder_event(builder, profile, a, &cpus[1], 1, 0, T0 + 3, true, 30);
	put();
	buf_reset(&told);
	assert_int_equal(store->read->export(store, &all, tell, NULL), 0);
	assert_non_null(strstr(buf_text(&told), "3+5: "));
	assert_non_null(strstr(buf_text(&told), "cpu6 3,5=30,50"));
	assert_non_null(strstr(buf_text(&told), "cpu5 7=70"));
}

/* Sums without times are of their report, each of which stays a profile of its own. */
static void test_sums(void **state)
{
	const uint32_t resource = builder_resource(builder, NULL, 0), profile = builder_profile(builder, resource, &off_cpu);
	const int32_t a = stack("a"), b = stack("b");
	struct profiles *p;

	(void)state;
	builder_value(builder, profile, a, NULL, 0, 0, 5);
	builder_value(builder, profile, b, NULL, 0, 0, 7);
	assert_int_equal(builder_freeze(builder, T0, T0 + NSEC_PER_SEC, &p), 0);
	for (int i = 0; i < 2; i++) {
		p->resources[0].scopes[0].profiles[0].time_unix_ns = T0 + 50u * (unsigned)i;
		store_put(store, p);
	}
	profiles_put(p);
	exports(&all, "0+0: =5; =7\n50+0: =5; =7\n");
}

/* The names of what is counted, and of the period, come back. */
static int check_names(void *arg, struct profiles *p)
{
	const struct profile *f = &p->resources[0].scopes[0].profiles[0];

	assert_string_equal(text_of(p, f->sample_type.type_strindex), "samples");
	assert_string_equal(text_of(p, f->sample_type.unit_strindex), "count");
	assert_string_equal(text_of(p, f->period_type.type_strindex), "cpu");
	assert_string_equal(text_of(p, f->period_type.unit_strindex), "nanoseconds");
	assert_int_equal(f->period, 50000000);
	assert_int_equal(p->resources[0].scopes[0].scope.name.len, strlen("hearth"));
	assert_int_equal(p->sample_events, 2);
	++*(int *)arg;
	return 0;
}

static int refuse(void *arg, struct profiles *p)
{
	(void)p;
	++*(int *)arg;
	return -EPIPE;
}

static void test_names(void **state)
{
	const uint32_t profile = builder_profile(builder, builder_resource(builder, NULL, 0), &on_cpu);
	int times = 0;

	(void)state;
	builder_event(builder, profile, stack("a"), NULL, 0, 0, T0 + 1, false, 0);
	builder_event(builder, profile, stack("a"), NULL, 0, 0, T0 + 2, false, 0);
	put();
	assert_int_equal(store->read->export(store, &all, check_names, &times), 0);
	assert_int_equal(times, 1);
	assert_int_equal(store->read->export(store, &all, refuse, &times), -EPIPE);
	assert_int_equal(times, 2);
}

/* What messages have together. */
struct together {
	unsigned messages, resources, profiles, strings;
	uint64_t events;
	size_t most_bytes;
};

static int add_up(void *arg, struct profiles *p)
{
	struct together *t = arg;

	t->messages++;
	t->resources += p->resource_count;
	for (uint32_t r = 0; r < p->resource_count; r++)
		t->profiles += p->resources[r].scopes[0].profile_count;
	t->strings += p->dict.string_count;
	t->events += p->sample_events;
	if (profiles_memory_bytes(p) > t->most_bytes)
		t->most_bytes = profiles_memory_bytes(p);
	return 0;
}

/* @count functions of @name_bytes, in each of @minutes minutes from @first_ns on, once each. */
static void put_minutes(uint64_t first_ns, unsigned minutes, unsigned count, int name_bytes)
{
	char name[512];

	for (unsigned m = 0; m < minutes; m++) {
		const uint32_t profile = builder_profile(builder, builder_resource(builder, NULL, 0), &on_cpu);

		for (unsigned i = 0; i < count; i++) {
			snprintf(name, sizeof(name), "%c%0*u", (int)('a' + m), name_bytes - 1, i);
			builder_event(builder, profile, stack(name), NULL, 0, 0, first_ns + m * 60 * NSEC_PER_SEC + i, false,
				      0);
		}
		put();
	}
}

/* The blocks of several minutes are one message: a series is one resource in it, with a profile for each. */
static void test_blocks(void **state)
{
	struct together t = { 0 };

	(void)state;
	put_minutes(clock_unix_ns(), 4, 2, 3); /* what is old the store may merge before it is asked */
	assert_int_equal(store->read->export(store, &all, add_up, &t), 0);
	assert_int_equal(t.messages, 1);
	assert_int_equal(t.resources, 1);
	assert_int_equal(t.profiles, 4);
	assert_int_equal(t.events, 8);
}

/* A message that has grown is handed out, and the next one begun. */
static void test_pieces(void **state)
{
	struct together t = { 0 };

	(void)state;
	put_minutes(T0, 6, 2000, 400);
	assert_int_equal(store->read->export(store, &all, add_up, &t), 0);
	assert_in_range(t.messages, 2, 8);
	assert_int_equal(t.resources, t.messages);
	assert_int_equal(t.events, 12000);
	assert_true(t.most_bytes < 9 << 20);
}

enum { SET_HOURS = 5, SETS = 10000 /* in each */, MOST_SETS = 30000 };

/* One event of each of many threads, and a label that all have. */
static void put_threads(uint64_t first_ns, unsigned hour)
{
	const uint32_t profile = builder_profile(builder, builder_resource(builder, NULL, 0), &on_cpu);
	const int32_t at = stack("a");
	int32_t labels[2] = { 0, builder_attribute_string(builder, "mine", STR("x")) };

	for (unsigned i = 0; i < SETS; i++) {
		labels[0] = builder_attribute_int(builder, "thread.id", hour * SETS + i);
		builder_event(builder, profile, at, labels, 2, 0, first_ns + hour * HOUR_NS + i, false, 0);
	}
	put();
}

/* How many sets of labels the store's reader has at most, and what all messages have of samples. */
struct sets_held {
	size_t most;
	uint64_t events;
};

static int note_sets(void *arg, struct profiles *p)
{
	const struct store_names *names = store_sqlite_of(store)->names;
	struct sets_held *held = arg;

	held->events += p->sample_events;
	held->most = names->sets.count > held->most ? names->sets.count : held->most;
	assert_true(names->labels.count <= names->sets.count + 1); /* sets share a label */
	return 0;
}

/* A long export does not hold all sets that it has met; those that come again are the same. */
static void test_sets(void **state)
{
	const struct store_matcher late = { .label = "thread.id", .value = "49999" };
	const struct store_matcher shared = { .label = "mine", .value = "x" };
	struct store_selection sel = { .to_ns = UINT64_MAX, .matchers = &late, .matcher_count = 1 };
	const uint64_t first_ns = clock_unix_ns(); /* old blocks, and many of an hour, may be merged into one */
	struct sets_held held = { 0 };

	(void)state;
	for (unsigned hour = 0; hour < SET_HOURS; hour++)
		put_threads(first_ns, hour);
	assert_int_equal(store->read->export(store, &all, note_sets, &held), 0);
	assert_int_equal(held.events, SET_HOURS * SETS);
	assert_in_range(held.most, 1, MOST_SETS);
	held.events = 0;
	assert_int_equal(store->read->export(store, &sel, note_sets, &held), 0);
	assert_int_equal(held.events, 1);
	sel.matchers = &shared;
	assert_int_equal(store->read->export(store, &sel, note_sets, &held), 0);
	assert_int_equal(held.events, 1 + SET_HOURS * SETS);
	assert_in_range(held.most, 1, MOST_SETS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_blocks, setup, teardown),
		cmocka_unit_test_setup_teardown(test_pieces, setup, teardown),
		cmocka_unit_test_setup_teardown(test_sets, setup, teardown),
		cmocka_unit_test_setup_teardown(test_times, setup, teardown),
		cmocka_unit_test_setup_teardown(test_values, setup, teardown),
		cmocka_unit_test_setup_teardown(test_sums, setup, teardown),
		cmocka_unit_test_setup_teardown(test_names, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
