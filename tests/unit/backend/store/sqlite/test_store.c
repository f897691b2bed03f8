/* SPDX-License-Identifier: Apache-2.0 */
/* The SQLite store: what goes in comes out, by every question, from memory and from disk, before and after merges. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "backend/store/sqlite/db.h"
#include "backend/store/sqlite/sqlite.h"
#include "backend/store/store_maintain.h"
#include "backend/store/store_read.h"
#include "backend/store/store_write.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/text/pattern.h"
#include "proto/profiles_builder.h"
#include "tests/unit/backend/store_put.h"
#include "tests/unit/backend/store/sqlite/told.h"

#define T0     1700000040000000000ull /* a whole minute */
#define MINUTE (60 * NSEC_PER_SEC)

static const struct builder_profile_spec on_cpu = { "hearth",	   "1",	     "samples", "count", "cpu",
						    "nanoseconds", 50000000, NULL,	0 };
static const struct builder_profile_spec off_cpu = { "hearth", "1", "off_cpu", "nanoseconds", "", "", 0, NULL, 0 };

static int32_t location(struct builder *b, const char *function, uint64_t address)
{
	int32_t file = builder_attribute_string(b, "process.executable.build_id.gnu", STR("abcd"));
	int32_t type = builder_attribute_string(b, "profile.frame.type", STR("native"));
	int32_t name = builder_string_z(b, function), path = builder_string_z(b, "/usr/bin/prog");
	struct profile_line line = { builder_function(b, name, 0, builder_string_z(b, "prog.c"), 10), 12, 0 };

	return builder_location(b, builder_mapping(b, 0x1000, 0x2000, 0, path, &file, 1), address, &line, 1, &type, 1);
}

static uint32_t resource(struct builder *b, const char *service)
{
	struct key_value kv[2] = {
		{ .key = STR("service.name"),
		  .value = { .kind = VALUE_STRING, .string = { service, (uint32_t)strlen(service) } } },
		{ .key = STR("process.pid"), .value = { .kind = VALUE_INT, .integer = 42 } },
	};

	return builder_resource(b, kv, 2);
}

static void event(struct builder *b, uint32_t profile, int32_t stack, int64_t thread, int64_t cpu, uint64_t time,
		  int64_t value)
{
	int32_t attributes[2] = { builder_attribute_int(b, "thread.id", thread),
				  builder_attribute_int(b, "cpu.logical_number", cpu) };

	builder_event(b, profile, stack, attributes, 2, 0, time, value != 0, value);
}

/* Service "a": 3 x main>work>leaf on cpu 0 and 1 x main on cpu 1, a minute later; service "b": 2 x main>work. Off-CPU of
 * "a": main, 500 ns. */
static struct profiles *make_profiles(void)
{
	struct builder *b = builder_new();
	int32_t main_ = location(b, "main", 0x1100), work = location(b, "work", 0x1200), leaf = location(b, "leaf", 0x1300);
	int32_t deep = builder_stack(b, (int32_t[]){ leaf, work, main_ }, 3);
	int32_t middle = builder_stack(b, (int32_t[]){ work, main_ }, 2);
	int32_t top = builder_stack(b, (int32_t[]){ main_ }, 1);
	uint32_t a = resource(b, "a"), other = resource(b, "b");
	uint32_t on = builder_profile(b, a, &on_cpu), off = builder_profile(b, a, &off_cpu);
	struct profiles *p;

	for (int i = 0; i < 3; i++)
		event(b, on, deep, 7, 0, T0 + (uint64_t)i * 50000000 + 123, 0);
	event(b, on, top, 8, 1, T0 + MINUTE + 77, 0);
	event(b, off, top, 8, 1, T0 + 5, 500);
	event(b, builder_profile(b, other, &on_cpu), middle, 9, 0, T0 + 1, 0);
	event(b, builder_profile(b, other, &on_cpu), middle, 9, 0, T0 + 2, 0);
	assert_int_equal(builder_freeze(b, T0, T0 + 2 * MINUTE, &p), 0);
	builder_free(b);
	return p;
}

static struct store *open_store(const char *place, struct metrics *metrics)
{
	struct store_config config = { .place = place, .keep_age_ns = UINT64_MAX, .keep_bytes = UINT64_MAX };
	struct store_error err;
	struct store *s = NULL;

	if (store_sqlite_open(&config, metrics, &s, &err))
		fail_msg("%s", err.message);
	return s;
}

/* Lines "GROUP WEIGHT main;work;leaf", sorted. */
static int tell_stack(void *arg, const char *group, uint32_t node, int64_t weight, uint64_t events)
{
	struct told *t = arg;
	char path[200] = "";

	(void)events;
	while (node) {
		struct store_node at;
		struct store_frame f;
		char longer[200];

		assert_int_equal(t->s->read->nodes(t->s, node, 1, &at), 0);
		assert_true(at.parent < node);
		assert_int_equal(t->s->read->frame(t->s, at.frame, &f), 0);
		assert_string_equal(f.module, "prog");
		assert_string_equal(f.build_id, "abcd");
		assert_string_equal(f.type, "native");
		assert_string_equal(f.file, "prog.c");
		assert_int_equal(f.line, 12);
		snprintf(longer, sizeof(longer), "%.90s%s%.90s", f.function, *path ? ";" : "", path);
		strcpy(path, longer);
		node = at.parent;
	}
	snprintf(t->lines[t->count++], sizeof(t->lines[0]), "%s %lld %s", group, (long long)weight, path);
	return 0;
}

static int tell_time(void *arg, const char *group, uint32_t bucket, int64_t weight, uint64_t events)
{
	struct told *t = arg;

	(void)events;
	snprintf(t->lines[t->count++], sizeof(t->lines[0]), "%s %u %lld", group, bucket, (long long)weight);
	return 0;
}

static int tell_value(void *arg, const char *value, int64_t weight, uint64_t events)
{
	struct told *t = arg;

	snprintf(t->lines[t->count++], sizeof(t->lines[0]), "%s %lld %llu", value, (long long)weight,
		 (unsigned long long)events);
	return 0;
}

static int tell_label(void *arg, const char *label)
{
	struct told *t = arg;

	snprintf(t->lines[t->count++], sizeof(t->lines[0]), "%s", label);
	return 0;
}

static int tell_kind(void *arg, const struct store_kind *k)
{
	struct told *t = arg;

	snprintf(t->lines[t->count++], sizeof(t->lines[0]), "%s/%s %s/%s %lld %llu", k->type, k->unit, k->period_type,
		 k->period_unit, (long long)k->period, (unsigned long long)k->events);
	return 0;
}

static int tell_executable(void *arg, const struct store_executable *e)
{
	struct told *t = arg;

	snprintf(t->lines[t->count++], sizeof(t->lines[0]), "%s %s:%s %llu %llu/%llu", e->path, e->id_kind, e->build_id,
		 (unsigned long long)e->events, (unsigned long long)e->named_frames, (unsigned long long)e->frames);
	return 0;
}

/* Questions that nobody waits for, and a value of which it cannot be told whether it matches. */
static void check_given_up(struct store *s)
{
	const char *const labels[] = { "service.name", "thread.id", "cpu.logical_number" };
	const _Atomic bool is_unwanted = true;
	struct told t = { .s = s };
	struct store_selection sel = { .from_ns = T0 - MINUTE, .to_ns = T0 + 10 * MINUTE, .is_unwanted = &is_unwanted };
	struct store_matcher matcher = { .match = MATCH_REGEX };
	struct pattern_error why;

	assert_int_equal(s->read->sum_stacks(s, &sel, NULL, tell_stack, &t), -ECANCELED);
	sel.is_unwanted = NULL;
	sel.matchers = &matcher;
	sel.matcher_count = 1;
	for (size_t i = 0; i < 2 * ARRAY_LEN(labels); i++) {
		matcher.label = labels[i / 2];
		matcher.match = i % 2 ? MATCH_REGEX : MATCH_NOT_REGEX;
		matcher.value = "(?:|.?|.??|(?:)){7}(?:|.?|.??|(?:.?)?){7}[^a-z0-9]";
		assert_int_equal(pattern_new(matcher.value, PATTERN_WHOLE, &matcher.pattern, &why), 0);
		assert_int_equal(s->read->sum_stacks(s, &sel, NULL, tell_stack, &t), -ELOOP);
		pattern_free(matcher.pattern);
	}
	t.count = 0;
}

static void check_questions(struct store *s, int times)
{
	struct told t = { .s = s };
	struct store_selection all = { .from_ns = T0 - MINUTE, .to_ns = T0 + 10 * MINUTE };
	struct store_selection cut = { .from_ns = T0 + 50000000, .to_ns = T0 + MINUTE + 77 };
	struct store_matcher only_b = { "service.name", MATCH_EQUAL, "b", NULL };
	struct store_matcher cpu = { "cpu.logical_number", MATCH_REGEX, "[1-9]", NULL };
	struct store_matcher thread = { "thread.id", MATCH_NOT_EQUAL, "7", NULL };
	struct pattern_error why;
	char expected[512];

	assert_int_equal(pattern_new(cpu.value, PATTERN_WHOLE, &cpu.pattern, &why), 0);
	assert_int_equal(s->read->sum_stacks(s, &all, NULL, tell_stack, &t), 0);
	snprintf(expected, sizeof(expected), " %d main\n %d main;work\n %d main;work;leaf\n", times, 2 * times, 3 * times);
	check_told(&t, expected);
	assert_int_equal(s->read->sum_stacks(s, &cut, NULL, tell_stack, &t), 0);
	snprintf(expected, sizeof(expected), " %d main;work;leaf\n", 2 * times);
	check_told(&t, expected);
	assert_int_equal(s->read->sum_stacks(s, &all, "thread.id", tell_stack, &t), 0);
	snprintf(expected, sizeof(expected), "7 %d main;work;leaf\n8 %d main\n9 %d main;work\n", 3 * times, times,
		 2 * times);
	check_told(&t, expected);
	assert_int_equal(s->read->sum_stacks(s, &all, "cpu.logical_number", tell_stack, &t), 0);
	snprintf(expected, sizeof(expected), "0 %d main;work\n0 %d main;work;leaf\n1 %d main\n", 2 * times, 3 * times,
		 times);
	check_told(&t, expected);
	all.matchers = &only_b;
	all.matcher_count = 1;
	assert_int_equal(s->read->sum_stacks(s, &all, "service.name", tell_stack, &t), 0);
	snprintf(expected, sizeof(expected), "b %d main;work\n", 2 * times);
	check_told(&t, expected);
	all.matchers = &cpu;
	assert_int_equal(s->read->sum_stacks(s, &all, NULL, tell_stack, &t), 0);
	snprintf(expected, sizeof(expected), " %d main\n", times);
	check_told(&t, expected);
	pattern_free(cpu.pattern);
	all.matchers = &thread;
	assert_int_equal(s->read->label_values(s, &all, "service.name", tell_value, &t), 0);
	snprintf(expected, sizeof(expected), "a %d %d\nb %d %d\n", times, times, 2 * times, 2 * times);
	check_told(&t, expected);
	all.matcher_count = 0;
	all.kind = "off_cpu";
	assert_int_equal(s->read->sum_stacks(s, &all, NULL, tell_stack, &t), 0);
	snprintf(expected, sizeof(expected), " %d main\n", 500 * times);
	check_told(&t, expected);
	all.kind = NULL;
	assert_int_equal(s->read->label_values(s, &all, "thread.id", tell_value, &t), 0);
	snprintf(expected, sizeof(expected), "7 %d %d\n8 %d %d\n9 %d %d\n", 3 * times, 3 * times, times, times, 2 * times,
		 2 * times);
	check_told(&t, expected);
	for (uint64_t step = MINUTE; step >= NSEC_PER_SEC; step /= 60) {
		assert_int_equal(s->read->sum_times(s, &all, step, "service.name", tell_time, &t), 0);
		snprintf(expected, sizeof(expected), "a %d %d\na %d %d\nb %d %d\n", (int)(MINUTE / step), 3 * times,
			 (int)(2 * MINUTE / step), times, (int)(MINUTE / step), 2 * times);
		if (step == NSEC_PER_SEC) /* the other order of "120" and "60" */
			snprintf(expected, sizeof(expected), "a 120 %d\na 60 %d\nb 60 %d\n", times, 3 * times, 2 * times);
		check_told(&t, expected);
	}
	assert_int_equal(s->read->labels(s, &all, tell_label, &t), 0);
	check_told(&t, "cpu.logical_number\notel.scope.name\notel.scope.version\nprocess.pid\nservice.name\nthread.id\n");
	assert_int_equal(s->read->kinds(s, &all, tell_kind, &t), 0);
	snprintf(expected, sizeof(expected), "off_cpu/nanoseconds / 0 %d\nsamples/count cpu/nanoseconds 50000000 %d\n",
		 times, 6 * times);
	check_told(&t, expected);
	assert_int_equal(s->read->executables(s, &all, tell_executable, &t), 0);
	snprintf(expected, sizeof(expected), "/usr/bin/prog gnu:abcd %d 3/3\n", 6 * times);
	check_told(&t, expected);
}

static int tell_profiles(void *arg, struct profiles *p)
{
	(void)arg;
	(void)p;
	return 0;
}

/* A question whose time is over ends, whatever it is, and tells nobody anything. */
static void check_deadlines(struct store *s)
{
	const struct store_selection late = { .from_ns = T0 - MINUTE, .to_ns = T0 + 10 * MINUTE, .deadline_ns = 1 };
	struct told t = { .s = s };

	assert_int_equal(s->read->sum_stacks(s, &late, NULL, tell_stack, &t), -ETIMEDOUT);
	assert_int_equal(s->read->sum_stacks(s, &late, "thread.id", tell_stack, &t), -ETIMEDOUT);
	assert_int_equal(s->read->sum_times(s, &late, MINUTE, NULL, tell_time, &t), -ETIMEDOUT);
	assert_int_equal(s->read->label_values(s, &late, "thread.id", tell_value, &t), -ETIMEDOUT);
	assert_int_equal(s->read->labels(s, &late, tell_label, &t), -ETIMEDOUT);
	assert_int_equal(s->read->kinds(s, &late, tell_kind, &t), -ETIMEDOUT);
	assert_int_equal(s->read->executables(s, &late, tell_executable, &t), -ETIMEDOUT);
	assert_int_equal(s->read->export(s, &late, tell_profiles, NULL), -ETIMEDOUT);
	check_given_up(s);
	check_told(&t, "");
}

static void test_memory(void **state)
{
	struct metrics *metrics = metrics_new();
	struct store *s = open_store(":memory:", metrics);
	struct profiles *p = make_profiles();

	(void)state;
	store_put(s, p);
	check_questions(s, 1);
	check_deadlines(s);
	store_put(s, p);
	check_questions(s, 2);
	profiles_put(p);
	s->close(s);
	metrics_free(metrics);
}

static void remove_folder(const char *folder)
{
	char command[256];

	snprintf(command, sizeof(command), "rm -r '%s'", folder);
	assert_int_equal(system(command), 0);
}

/* How many things have a number. */
static int64_t numbered(struct store *s)
{
	int64_t count;

	assert_int_equal(store_get_int(store_sqlite_of(s)->read_db,
				       "SELECT (SELECT count(*) FROM strings) + (SELECT count(*) FROM functions) + "
				       "(SELECT count(*) FROM mappings) + (SELECT count(*) FROM origins) + "
				       "(SELECT sum(count) FROM frames) + (SELECT sum(count) FROM nodes) + "
				       "(SELECT sum(count) FROM attributes) + (SELECT sum(count) FROM sets) + "
				       "(SELECT sum(count) FROM series)",
				       0, &count),
			 0);
	return count;
}

/* Blocks that are still to be merged, of hours that are over. */
static int64_t unmerged_blocks(struct store *s)
{
	int64_t count;

	assert_int_equal(
		store_get_int(store_sqlite_of(s)->read_db, "SELECT count(*) FROM blocks WHERE level < 2", 0, &count), 0);
	return count;
}

static void test_disk(void **state)
{
	char folder[] = "/tmp/hearth-store-XXXXXX";
	struct profiles *p = make_profiles();
	struct store *s;
	int64_t before;

	(void)state;
	assert_non_null(mkdtemp(folder));
	s = open_store(folder, NULL);
	store_put(s, p);
	check_questions(s, 1);
	s->close(s);
	s = open_store(folder, NULL);
	check_questions(s, 1);
	before = numbered(s);
	store_put(s, p);
	assert_int_equal(numbered(s), before); /* all of it was known again */
	check_questions(s, 2);
	/* The events are old: what is stored is merged at the next look. */
	store_put(s, p);
	for (uint64_t end_ns = clock_mono_ns() + 60 * NSEC_PER_SEC; unmerged_blocks(s); usleep(20000))
		assert_true(clock_mono_ns() < end_ns);
	check_questions(s, 3);
	s->close(s);
	profiles_put(p);
	remove_folder(folder);
}

static int put_exported(void *arg, struct profiles *p)
{
	store_put(arg, p);
	return 0;
}

/* What is exported and stored again answers the same; its resources and windows are what came. */
static void test_export(void **state)
{
	struct store *from = open_store(":memory:", NULL), *to = open_store(":memory:", NULL);
	struct store_selection all = { .to_ns = UINT64_MAX };
	struct profiles *p = make_profiles();

	(void)state;
	store_put(from, p);
	assert_int_equal(from->read->export(from, &all, put_exported, to), 0);
	check_questions(to, 1);
	profiles_put(p);
	from->close(from);
	to->close(to);
}

static int check_links(void *arg, struct profiles *p)
{
	unsigned *seen = arg;

	for (uint32_t i = 0; i < p->resources[0].scopes[0].profiles[0].sample_count; i++) {
		const struct sample *sample = &p->resources[0].scopes[0].profiles[0].samples[i];

		assert_int_equal(sample->timestamp_count, 1);
		if (sample->link_index)
			*seen |= (uint8_t)p->dict.links[sample->link_index].span_id.data[7];
		else
			*seen |= 1;
	}
	return 0;
}

/* Samples that differ in nothing but their link stay apart. */
static void test_links(void **state)
{
	struct store *s = open_store(":memory:", NULL);
	struct store_selection all = { .to_ns = UINT64_MAX };
	struct builder *b = builder_new();
	uint32_t profile = builder_profile(b, resource(b, "a"), &on_cpu);
	int32_t main_ = location(b, "main", 0x1100), top = builder_stack(b, &main_, 1);
	struct profiles *p;

	(void)state;
	for (uint8_t i = 0; i < 3; i++) {
		const uint8_t trace[16] = { 1 }, span[8] = { [7] = (uint8_t)(1u << i) };

		builder_event(b, profile, top, NULL, 0, i ? builder_link(b, trace, span) : 0, T0 + i, false, 0);
	}
	assert_int_equal(builder_freeze(b, T0, T0 + MINUTE, &p), 0);
	builder_free(b);
	store_put(s, p);
	profiles_put(p);
	for (int merged = 0; merged < 2; merged++) {
		unsigned seen = 0;

		assert_int_equal(s->read->export(s, &all, check_links, &seen), 0);
		assert_int_equal(seen, 1 | 2 | 4);
		assert_int_equal(s->maintain->task(s, STORE_COMPACT), 0);
	}
	s->close(s);
}

static const double tenth = 0.1;

static int check_values(void *arg, struct profiles *p)
{
	const struct key_values *kvs = &p->resources[0].resource.attributes;

	assert_int_equal(kvs->count, 6);
	assert_int_equal(kvs->items[0].value.kind, VALUE_BOOL);
	assert_true(kvs->items[0].value.boolean);
	assert_int_equal(kvs->items[1].value.kind, VALUE_DOUBLE);
	assert_memory_equal(&kvs->items[1].value.real, &tenth, sizeof(tenth));
	assert_int_equal(kvs->items[2].value.integer, INT64_MIN);
	assert_int_equal(kvs->items[3].value.kind, VALUE_BYTES);
	assert_int_equal(kvs->items[3].value.string.len, 3);
	assert_memory_equal(kvs->items[3].value.string.data, "a\0b", 3);
	assert_int_equal(kvs->items[4].value.kind, VALUE_ARRAY);
	assert_int_equal(kvs->items[4].value.array.count, 2);
	assert_int_equal(kvs->items[4].value.array.items[1].integer, 12);
	assert_int_equal(kvs->items[5].value.kind, VALUE_STRING);
	assert_int_equal(kvs->items[5].value.string.len, 0);
	++*(int *)arg;
	return 0;
}

/* Values of every kind come out as they came. */
static void test_values(void **state)
{
	struct store *s = open_store(":memory:", NULL);
	struct store_selection all = { .to_ns = UINT64_MAX };
	struct any_value items[] = { { .kind = VALUE_INT, .integer = 11 }, { .kind = VALUE_INT, .integer = 12 } };
	struct any_value values[] = {
		{ .kind = VALUE_BOOL, .boolean = true },	{ .kind = VALUE_DOUBLE, .real = tenth },
		{ .kind = VALUE_INT, .integer = INT64_MIN },	{ .kind = VALUE_BYTES, .string = { "a\0b", 3 } },
		{ .kind = VALUE_ARRAY, .array = { items, 2 } }, { .kind = VALUE_STRING, .string = STR("") },
	};
	struct key_value kv[6];
	struct builder *b = builder_new();
	struct told t = { .s = s };
	struct profiles *p;
	int times = 0;

	(void)state;
	for (size_t i = 0; i < 6; i++)
		kv[i] = (struct key_value){ .key = { &"abcdef"[i], 1 }, .value = { .kind = VALUE_INT } };
	event(b, builder_profile(b, builder_resource(b, kv, 6), &on_cpu), 0, 1, 0, T0, 0);
	assert_int_equal(builder_freeze(b, T0, T0 + MINUTE, &p), 0);
	builder_free(b);
	for (size_t i = 0; i < 6; i++)
		p->resources[0].resource.attributes.items[i].value = values[i];
	store_put(s, p);
	assert_int_equal(s->read->export(s, &all, check_values, &times), 0);
	assert_int_equal(times, 1);
	for (const char *label = "abc"; *label; label++)
		assert_int_equal(s->read->label_values(s, &all, (char[]){ *label, 0 }, tell_value, &t), 0);
	check_told(&t, "-9223372036854775808 1 1\n0.1 1 1\ntrue 1 1\n");
	profiles_put(p);
	s->close(s);
}

static int count_unnamed(void *arg, const struct store_frame *frame)
{
	assert_string_equal(frame->build_id, "abcd");
	assert_int_equal(frame->address, 0x1234);
	*(int *)arg += !*frame->function;
	return 0;
}

static int tell_function(void *arg, const char *group, uint32_t node, int64_t weight, uint64_t events)
{
	struct told *t = arg;
	struct store_node at;
	struct store_frame f;

	(void)group;
	(void)weight;
	(void)events;
	assert_int_equal(t->s->read->nodes(t->s, node, 1, &at), 0);
	assert_int_equal(t->s->read->frame(t->s, at.frame, &f), 0);
	snprintf(t->lines[t->count++], sizeof(t->lines[0]), "%s %s:%lld", f.function, f.file, (long long)f.line);
	return 0;
}

/* A bare address gets its name later, while the store is open and after it was opened again. */
static void test_names_later(void **state)
{
	char folder[] = "/tmp/hearth-store-XXXXXX";
	const struct store_name name = { 0x1234, "found", "_Zfound", "found.c", 7, 5 };
	const struct store_name better = { 0x1234, "better", "_Zbetter", "better.c", 8, 5 };
	uint64_t version;
	struct store_selection all = { .to_ns = UINT64_MAX };
	struct builder *b = builder_new();
	int32_t file = builder_attribute_string(b, "process.executable.build_id.gnu", STR("abcd"));
	int32_t mapping = builder_mapping(b, 0x1000, 0x2000, 0, builder_string_z(b, "/bin/x"), &file, 1);
	int32_t bare = builder_location(b, mapping, 0x1234, NULL, 0, NULL, 0);
	struct profiles *p;
	struct told t;
	uint32_t next = 0;
	int unnamed = 0;

	(void)state;
	assert_non_null(mkdtemp(folder));
	event(b, builder_profile(b, resource(b, "a"), &on_cpu), builder_stack(b, &bare, 1), 1, 0, T0, 0);
	assert_int_equal(builder_freeze(b, T0, T0 + MINUTE, &p), 0);
	builder_free(b);
	t = (struct told){ .s = open_store(folder, NULL) };
	store_put(t.s, p);
	assert_int_equal(t.s->read->sum_stacks(t.s, &all, NULL, tell_function, &t), 0);
	check_told(&t, " :0\n");
	assert_int_equal(t.s->read->bare_frames(t.s, 0, &next, count_unnamed, &unnamed), 0);
	assert_int_equal(unnamed, 1);
	assert_int_equal(t.s->write->name_frames(t.s, "abcd", &name, 1), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(t.s->read->sum_stacks(t.s, &all, NULL, tell_function, &t), 0);
		check_told(&t, "found found.c:7\n");
		assert_int_equal(t.s->read->bare_frames(t.s, 0, &next, count_unnamed, &unnamed), 0);
		assert_int_equal(unnamed, 1);
		t.s->close(t.s);
		t.s = open_store(folder, NULL);
	}
	/* A better one is told, too, and what is kept of names elsewhere is known to be old. */
	assert_int_equal(t.s->read->sum_stacks(t.s, &all, NULL, tell_function, &t), 0);
	check_told(&t, "found found.c:7\n");
	version = atomic_load(&t.s->names_version);
	assert_int_equal(t.s->write->name_frames(t.s, "abcd", &better, 1), 0);
	assert_int_not_equal(atomic_load(&t.s->names_version), version);
	assert_int_equal(t.s->read->sum_stacks(t.s, &all, NULL, tell_function, &t), 0);
	check_told(&t, "better better.c:8\n");
	t.s->close(t.s);
	profiles_put(p);
	remove_folder(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory), cmocka_unit_test(test_disk),   cmocka_unit_test(test_export),
		cmocka_unit_test(test_links),  cmocka_unit_test(test_values), cmocka_unit_test(test_names_later),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
