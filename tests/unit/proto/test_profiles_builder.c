/* SPDX-License-Identifier: Apache-2.0 */
/* The builder: equal things get equal indices, equal samples become one, and what it freezes keeps every rule of OTLP. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/cleanup.h"
#include "base/sanitizer.h"
#include "proto/otlp/otlp.h"
#include "proto/profiles_builder.h"
#include "tests/unit/proto/made_profiles.h"
#include "tests/unit/proto/profile_rules.h"

static const struct builder_profile_spec off_cpu_spec = { "hearth", "1", "off_cpu", "nanoseconds", "", "", 0, NULL, 0 };
static const struct builder_profile_spec foreign_spec = {
	"other", "2", "samples", "count", "cpu", "nanoseconds", 1, NULL, 0
};

static int32_t stack_of(struct builder *b, const char *function)
{
	struct profile_line line = { .function_index = builder_function(b, builder_string_z(b, function), 0, 0, 0),
				     .line = 7 };
	int32_t type = builder_attribute_string(b, "profile.frame.type", STR("native"));
	int32_t location = builder_location(b, 0, 0x10, &line, 1, &type, 1);

	return builder_stack(b, &location, 1);
}

static void test_empty(void **state)
{
	AUTO(free_builder) struct builder *b = builder_new();
	AUTO(put_profiles) struct profiles *p = freeze(b);

	(void)state;
	assert_int_equal(p->resource_count, 0);
	assert_int_equal(p->sample_events, 0);
	assert_null(rules_dictionary(p));
	assert_int_equal(p->dict.string_count, 1);
	assert_int_equal(p->dict.stack_count, 1);
}

static void test_profile_without_events_is_left_out(void **state)
{
	AUTO(free_builder) struct builder *b = builder_new();
	uint32_t quiet = cpu_profile(b, "quiet"), busy = cpu_profile(b, "busy");
	AUTO(put_profiles) struct profiles *p = NULL;

	(void)state;
	assert_int_not_equal(quiet, busy);
	builder_event(b, busy, stack_of(b, "main"), NULL, 0, 0, 11ull * S, false, 0);
	p = freeze(b);
	assert_int_equal(p->resource_count, 1);
	assert_true(str_is(p->resources[0].resource.attributes.items[0].value.string, "busy"));
	assert_null(profile_rules_broken(p));
}

/* A location of any number of attributes, as the first one: what it is found by has room for them. */
static void test_many_attributes(void **state)
{
	enum { MANY = 5000 };
	AUTO(free_builder) struct builder *b = builder_new();
	AUTO_FREE int32_t *attributes = calloc(MANY, sizeof(*attributes));
	const struct profile_line line = { 1, 2, 3 };
	int32_t location;

	(void)state;
	assert_non_null(attributes);
	for (int32_t i = 0; i < MANY; i++)
		attributes[i] = builder_attribute_int(b, "n", i);
	location = builder_location(b, 1, 2, &line, 1, attributes, MANY);
	assert_int_equal(location, 1);
	assert_int_equal(builder_location(b, 1, 2, &line, 1, attributes, MANY), location);
	assert_int_equal(builder_location(b, 1, 2, &line, 1, attributes, MANY - 1), location + 1);
}

static void test_equal_things_have_equal_indices(void **state)
{
	AUTO(free_builder) struct builder *b = builder_new();
	struct profile_line lines[2];
	int32_t a, attributes[2], swapped[2];

	(void)state;
	/* What is padding in one and not in the other must make no difference. */
	memset(&lines[0], 0xff, sizeof(lines[0]));
	memset(&lines[1], 0x00, sizeof(lines[1]));
	for (size_t i = 0; i < 2; i++) {
		lines[i].function_index = 3;
		lines[i].line = 4;
		lines[i].column = 5;
	}
	a = builder_location(b, 1, 2, &lines[0], 1, NULL, 0);
	assert_int_equal(builder_location(b, 1, 2, &lines[1], 1, NULL, 0), a);
	lines[1].column = 6;
	assert_int_not_equal(builder_location(b, 1, 2, &lines[1], 1, NULL, 0), a);

	attributes[0] = swapped[1] = builder_attribute_int(b, "n", 1);
	attributes[1] = swapped[0] = builder_attribute_string(b, "s", STR("1"));
	assert_int_equal(builder_mapping(b, 1, 2, 3, 4, attributes, 2), builder_mapping(b, 1, 2, 3, 4, swapped, 2));
	assert_int_not_equal(builder_mapping(b, 1, 2, 3, 4, attributes, 2), builder_mapping(b, 1, 2, 3, 4, swapped, 1));
	assert_int_equal(builder_attribute_int(b, "n", 1), attributes[0]);
	assert_int_not_equal(builder_attribute_bool(b, "n", true), attributes[0]);
	assert_int_not_equal(builder_attribute_string(b, "n", STR("1")), attributes[0]);
	assert_int_equal(builder_string(b, STR("n")), builder_string_z(b, "n"));

	/* Nothing at all is element 0. */
	assert_int_equal(builder_string_z(b, ""), 0);
	assert_int_equal(builder_function(b, 0, 0, 0, 0), 0);
	assert_int_equal(builder_mapping(b, 0, 0, 0, 0, NULL, 0), 0);
	assert_int_equal(builder_location(b, 0, 0, NULL, 0, NULL, 0), 0);
	assert_int_equal(builder_stack(b, NULL, 0), 0);
	assert_int_equal(builder_link(b, (uint8_t[16]){ 0 }, (uint8_t[8]){ 0 }), 0);
}

static void test_equal_samples_become_one(void **state)
{
	AUTO(free_builder) struct builder *b = builder_new();
	int32_t x = builder_attribute_string(b, "thread.name", STR("t")),
		y = builder_attribute_int(b, "cpu.logical_number", 3);
	const struct {
		int32_t attributes[3];
		uint32_t count;
		uint64_t time;
	} events[] = {
		{ { x, y }, 2, 13 }, { { y, x }, 2, 11 }, { { x, y, x }, 3, 12 }, { { x }, 1, 12 }, { { y }, 1, 12 }
	};
	uint32_t profile = cpu_profile(b, "app");
	int32_t stack = stack_of(b, "main");
	AUTO(put_profiles) struct profiles *p = NULL;
	const struct profile *out;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(events); i++)
		builder_event(b, profile, stack, events[i].attributes, events[i].count, 0, events[i].time * S, false, 0);
	assert_int_equal(builder_event_count(b), 5);
	p = freeze(b);
	assert_int_equal(builder_event_count(b), 0);
	assert_null(profile_rules_broken(p));
	assert_int_equal(p->sample_events, 5);
	out = &p->resources[0].scopes[0].profiles[0];
	assert_int_equal(out->sample_count, 3);
	assert_int_equal(out->samples[0].timestamp_count, 3);
	for (uint64_t i = 0; i < 3; i++)
		assert_int_equal(out->samples[0].timestamps_unix_ns[i], (11 + i) * S);
	assert_int_equal(out->samples[0].value_count, 0);
	assert_int_equal(out->samples[0].attributes.count, 2);
	assert_true(out->samples[0].attributes.items[0] < out->samples[0].attributes.items[1]);
}

static void test_window_holds_all_timestamps(void **state)
{
	static const struct {
		uint64_t start, end, first, last, time, duration;
	} cases[] = {
		{ 10, 15, 11, 14, 10, 5 }, { 10, 15, 10, 15, 10, 6 }, { 10, 15, 3, 20, 3, 18 },
		{ 10, 15, 16, 16, 10, 7 }, { 10, 10, 10, 10, 10, 1 }, { 10, 5, 10, 10, 10, 1 },
	};
	AUTO(free_builder) struct builder *b = builder_new();

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(put_profiles) struct profiles *p = NULL;
		uint32_t profile = cpu_profile(b, "app");
		const struct profile *out;

		builder_event(b, profile, 0, NULL, 0, 0, cases[i].last, false, 0);
		builder_event(b, profile, 0, NULL, 0, 0, cases[i].first, false, 0);
		assert_int_equal(builder_freeze(b, cases[i].start, cases[i].end, &p), 0);
		out = &p->resources[0].scopes[0].profiles[0];
		assert_int_equal(out->time_unix_ns, cases[i].time);
		assert_int_equal(out->duration_ns, cases[i].duration);
		assert_null(profile_rules_broken(p));
	}
}

static void test_values_and_links(void **state)
{
	static const uint8_t trace[16] = { 1, [15] = 2 }, span[8] = { 3, [7] = 4 };
	AUTO(free_builder) struct builder *b = builder_new();
	uint32_t profile = builder_profile(b, builder_resource(b, NULL, 0), &off_cpu_spec);
	int32_t stack = stack_of(b, "futex"), link = builder_link(b, trace, span);
	AUTO(put_profiles) struct profiles *p = NULL;
	const struct profile *out;

	(void)state;
	builder_event(b, profile, stack, NULL, 0, 0, 12ull * S, true, 500);
	builder_event(b, profile, stack, NULL, 0, link, 12ull * S, false, 0);
	builder_event(b, profile, stack, NULL, 0, 0, 11ull * S, true, -7);
	p = freeze(b);
	assert_null(profile_rules_broken(p));
	out = &p->resources[0].scopes[0].profiles[0];
	assert_int_equal(out->sample_count, 2);
	assert_int_equal(out->samples[0].value_count, 2);
	assert_int_equal(out->samples[0].values[0], -7); /* follows its timestamp into order */
	assert_int_equal(out->samples[0].values[1], 500);
	assert_int_equal(out->samples[1].values[0], 1);
	assert_int_equal(out->samples[1].link_index, link);
	assert_memory_equal(p->dict.links[link].trace_id.data, trace, 16);
	assert_memory_equal(p->dict.links[link].span_id.data, span, 8);
	assert_true(str_is(profiles_string(p, out->sample_type.type_strindex), "off_cpu"));
	assert_int_equal(out->period_type.type_strindex, 0);
}

static void test_resources_and_order(void **state)
{
	const struct key_value attributes[] = {
		{ .key = STR("s"), .value = { .kind = VALUE_STRING, .string = STR("text") } },
		{ .key = STR("i"), .value = { .kind = VALUE_INT, .integer = -5 } },
		{ .key = STR("d"), .value = { .kind = VALUE_DOUBLE, .real = 0.25 } },
		{ .key = STR("b"), .value = { .kind = VALUE_BOOL, .boolean = true } },
	};
	AUTO(free_builder) struct builder *b = builder_new();

	(void)state;
	for (int round = 0; round < 2; round++) { /* the order of specs is that of the first round in both */
		uint32_t first = builder_resource(b, attributes, 4), second = builder_resource(b, attributes, 1);
		AUTO(put_profiles) struct profiles *p = NULL;
		const struct key_value *kv;

		assert_int_equal(builder_resource(b, attributes, 4), first);
		assert_int_not_equal(first, second);
		if (round == 0) {
			builder_event(b, builder_profile(b, second, &text_cpu_spec), 0, NULL, 0, 0, 11ull * S, false, 0);
			builder_event(b, builder_profile(b, first, &foreign_spec), 0, NULL, 0, 0, 11ull * S, false, 0);
		}
		builder_event(b, builder_profile(b, first, &off_cpu_spec), 0, NULL, 0, 0, 11ull * S, true, 1);
		builder_event(b, builder_profile(b, first, &foreign_spec), 0, NULL, 0, 0, 11ull * S, false, 0);
		builder_event(b, builder_profile(b, first, &text_cpu_spec), 0, NULL, 0, 0, 11ull * S, false, 0);
		p = freeze(b);
		assert_null(profile_rules_broken(p));
		assert_int_equal(p->resource_count, round == 0 ? 2 : 1);
		kv = p->resources[0].resource.attributes.items;
		assert_int_equal(p->resources[0].resource.attributes.count, 4);
		assert_true(str_is(kv[0].key, "s") && str_is(kv[0].value.string, "text"));
		assert_true(str_is(kv[1].key, "i") && kv[1].value.integer == -5);
		assert_true(str_is(kv[2].key, "d") && kv[2].value.real == 0.25);
		assert_true(str_is(kv[3].key, "b") && kv[3].value.boolean);
		assert_int_equal(p->resources[0].scope_count, 2);
		assert_true(str_is(p->resources[0].scopes[0].scope.name, "hearth"));
		assert_true(str_is(p->resources[0].scopes[1].scope.version, "2"));
		assert_int_equal(p->resources[0].scopes[0].profile_count, 2);
		assert_true(str_is(profiles_string(p, p->resources[0].scopes[0].profiles[0].sample_type.type_strindex),
				   "samples"));
		assert_true(str_is(profiles_string(p, p->resources[0].scopes[0].profiles[1].sample_type.type_strindex),
				   "off_cpu"));
		assert_int_equal(p->resources[0].scopes[0].profiles[0].period, 50000000);
	}
}

/* Names come from outside and may be any bytes; a decoder takes what becomes of them. */
static void test_names_become_utf8(void **state)
{
	static const struct {
		const char *name, *out;
	} cases[] = {
		{ "worker", "worker" },
		{ "gr\xc3\xbcn", "gr\xc3\xbcn" },
		{ "a\xff\xfe", "a\xef\xbf\xbd\xef\xbf\xbd" },
		{ "fifteen bytes\xf0\x9f", "fifteen bytes\xef\xbf\xbd" }, /* a comm is cut anywhere */
	};
	AUTO(free_builder) struct builder *b = builder_new();

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct str name = { cases[i].name, (uint32_t)strlen(cases[i].name) };
		int32_t attribute = builder_attribute_string(b, "thread.name", name);
		int32_t string = builder_string(b, name), found = 0;
		AUTO(put_profiles) struct profiles *p = NULL, *decoded = NULL;
		AUTO(buf_fini) struct buf out = BUF_EMPTY;
		struct otlp_error err;

		assert_int_equal(builder_string_z(b, cases[i].name), string);
		assert_int_equal(builder_string_z(b, cases[i].out), string);
		builder_event(b, cpu_profile(b, cases[i].name), stack_of(b, cases[i].name), &attribute, 1, 0, 11ull * S,
			      false, 0);
		p = freeze(b);
		assert_null(profile_rules_broken(p));
		for (uint32_t n = 0; n < p->dict.string_count; n++)
			found += str_is(p->dict.strings[n], cases[i].out);
		assert_int_equal(found, 1);
		assert_true(str_is(p->dict.attributes[attribute].value.string, cases[i].out));
		assert_true(str_is(p->resources[0].resource.attributes.items[0].value.string, cases[i].out));
		assert_int_equal(otlp_encode(p, NULL, &out), 0);
		if (otlp_decode(out.data, out.len, false, &decoded, &err))
			fail_msg("%s: %s", cases[i].name, err.message);
	}
}

static void test_ids_differ(void **state)
{
	AUTO(free_builder) struct builder *b = builder_new();
	uint8_t ids[40][16];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(ids); i += 2) {
		AUTO(put_profiles) struct profiles *p = NULL;

		builder_event(b, cpu_profile(b, "a"), 0, NULL, 0, 0, 11ull * S, false, 0);
		builder_event(b, cpu_profile(b, "b"), 0, NULL, 0, 0, 11ull * S, false, 0);
		p = freeze(b);
		for (size_t k = 0; k < 2; k++) {
			assert_int_equal(p->resources[k].scopes[0].profiles[0].profile_id.len, 16);
			memcpy(ids[i + k], p->resources[k].scopes[0].profiles[0].profile_id.data, 16);
		}
		assert_memory_equal(ids[i], ids[i + 1], 12); /* they pack well */
	}
	for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
		for (size_t k = 0; k < i; k++)
			assert_memory_not_equal(ids[i], ids[k], 16);
	}
}

/* Many events against a plain count of what was put in; the model outlives the builder. */
static void test_many_events(void **state)
{
	enum { PROCESSES = 20, FUNCTIONS = 50, THREADS = 4, EVENTS = 30000, DEPTH = 1000 };
	static uint32_t expected[PROCESSES][FUNCTIONS][THREADS];
	struct builder *b = builder_new();
	AUTO(put_profiles) struct profiles *p = NULL;
	uint32_t random = 12345, found = 0;

	(void)state;
	for (uint32_t i = 0; i < EVENTS; i++) {
		uint32_t process, function, thread;
		int32_t attribute, stack[DEPTH];
		char name[16];

		random = random * 1664525 + 1013904223;
		process = (random >> 8) % PROCESSES;
		function = (random >> 12) % FUNCTIONS;
		thread = (random >> 20) % THREADS;
		expected[process][function][thread]++;
		for (uint32_t d = 0; d < DEPTH / (function + 1); d++)
			stack[d] = builder_location(b, 0, function * 10000 + d, NULL, 0, NULL, 0);
		attribute = builder_attribute_int(b, "thread.id", thread);
		snprintf(name, sizeof(name), "p%u", process);
		builder_event(b, cpu_profile(b, name), builder_stack(b, stack, DEPTH / (function + 1)), &attribute, 1, 0,
			      10ull * S + random, false, 0);
	}
	p = freeze(b);
	builder_free(b);
	assert_null(profile_rules_broken(p));
	assert_int_equal(p->sample_events, EVENTS);
	assert_int_equal(p->resource_count, PROCESSES);
	for (uint32_t r = 0; r < PROCESSES; r++) {
		const struct profile *out = &p->resources[r].scopes[0].profiles[0];
		struct str name = p->resources[r].resource.attributes.items[0].value.string;
		int process = atoi(name.data + 1);

		for (uint32_t i = 0; i < out->sample_count; i++) {
			const struct indices *stack = &p->dict.stacks[out->samples[i].stack_index];
			uint64_t function = p->dict.locations[stack->items[0]].address / 10000;
			int64_t thread = p->dict.attributes[out->samples[i].attributes.items[0]].value.integer;

			assert_int_equal(out->samples[i].timestamp_count, expected[process][function][thread]);
			assert_int_equal(stack->count, DEPTH / (function + 1));
			for (uint32_t t = 1; t < out->samples[i].timestamp_count; t++)
				assert_true(out->samples[i].timestamps_unix_ns[t - 1] <=
					    out->samples[i].timestamps_unix_ns[t]);
			found++;
		}
	}
	assert_true(found > 1000);
}

static void test_memory_comes_back(void **state)
{
	AUTO(free_builder) struct builder *b = builder_new();
	size_t busy;

	(void)state;
	for (uint32_t round = 0; round < 3; round++) {
		AUTO(put_profiles) struct profiles *p = NULL;
		uint32_t profile = cpu_profile(b, "app");

		for (uint32_t i = 0; i < 100000; i++) {
			int32_t location = builder_location(b, 0, i, NULL, 0, NULL, 0);

			builder_event(b, profile, builder_stack(b, &location, 1), NULL, 0, 0, 11ull * S, false, 0);
		}
		if (round)
			assert_int_equal(builder_memory_bytes(b), busy); /* kept while it is needed */
		busy = builder_memory_bytes(b);
		p = freeze(b);
	}
	profiles_put(freeze(b));
	assert_true(builder_memory_bytes(b) < 64 * 1024);
	assert_true(busy > 4 * 1024 * 1024);
}

/* Out of memory sticks, is said at the freeze, and is over after it. */
static void test_out_of_memory(void **state)
{
#if HAS_SANITIZER
	(void)state;
	skip(); /* a limit of the address space ends the sanitizer itself */
#else
	AUTO(free_builder) struct builder *b = builder_new();
	uint32_t profile = cpu_profile(b, "app");
	struct rlimit before, tight = { 0 };
	struct profiles *p = NULL;
	int32_t stack[1000], last = 1;
	unsigned long pages = 0;
	AUTO_FCLOSE FILE *statm = fopen("/proc/self/statm", "r");

	(void)state;
	assert_int_equal(fscanf(statm, "%lu", &pages), 1);
	assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
	tight = (struct rlimit){ pages * 4096 + (16 << 20), before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_AS, &tight), 0);
	for (int32_t i = 1; i < 100000 && last; i++) {
		for (size_t d = 0; d < ARRAY_LEN(stack); d++)
			stack[d] = i;
		last = builder_stack(b, stack, ARRAY_LEN(stack));
		builder_event(b, profile, last, NULL, 0, 0, 11ull * S, false, 0);
	}
	assert_int_equal(last, 0);
	assert_int_equal(builder_string_z(b, "more"), 0);
	assert_int_equal(builder_freeze(b, 10ull * S, 15ull * S, &p), -ENOMEM);
	assert_null(p);
	assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);

	builder_event(b, cpu_profile(b, "app"), stack_of(b, "main"), NULL, 0, 0, 11ull * S, false, 0);
	p = freeze(b);
	assert_null(profile_rules_broken(p));
	assert_int_equal(p->sample_events, 1);
	profiles_put(p);
#endif
}

/* What formats hold that know no times: one value a sample, and attributes of any kind. */
static void test_sums_and_attributes(void **state)
{
	AUTO(free_builder) struct builder *b = builder_new();
	AUTO(put_profiles) struct profiles *p = NULL;
	struct any_value texts[] = { { .kind = VALUE_STRING, .string = STR("one") },
				     { .kind = VALUE_STRING, .string = STR("") } };
	const struct any_value values[] = { { .kind = VALUE_INT, .integer = -5 },
					    { .kind = VALUE_DOUBLE, .real = 0.5 },
					    { .kind = VALUE_ARRAY, .array = { texts, 2 } },
					    { .kind = VALUE_STRING, .string = STR("a\xff") } };
	int32_t ids[ARRAY_LEN(values)];
	struct builder_profile_spec spec = text_cpu_spec;
	const struct sample *s;
	uint32_t profile;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(values); i++) {
		char key[] = { 'k', (char)('0' + i) };

		ids[i] = builder_attribute(b, (struct str){ key, 2 }, &values[i], i ? 0 : builder_string_z(b, "bytes"));
	}
	assert_int_equal(builder_attribute(b, STR("k2"), &values[2], 0), ids[2]);
	spec.attributes = &ids[2];
	spec.attribute_count = 2;
	profile = builder_profile(b, builder_resource(b, NULL, 0), &spec);
	builder_value(b, profile, stack_of(b, "a"), ids, 2, 0, 40);
	builder_value(b, profile, stack_of(b, "a"), ids, 2, 0, 2);
	builder_value(b, profile, stack_of(b, "b"), NULL, 0, 0, -1);
	assert_int_equal(builder_freeze(b, 0, 0, &p), 0);
	assert_int_equal(p->sample_events, 2);
	assert_int_equal(p->resources[0].scopes[0].profiles[0].time_unix_ns, 0);
	assert_int_equal(p->resources[0].scopes[0].profiles[0].duration_ns, 0);
	assert_int_equal(p->resources[0].scopes[0].profiles[0].attributes.items[0], ids[2]);
	assert_int_equal(p->resources[0].scopes[0].profiles[0].attributes.items[1], ids[3]);
	s = p->resources[0].scopes[0].profiles[0].samples;
	assert_int_equal(s[0].value_count, 1);
	assert_int_equal(s[0].timestamp_count, 0);
	assert_int_equal(s[0].values[0], 42);
	assert_int_equal(s[1].values[0], -1);
	assert_true(str_is(profiles_string(p, p->dict.attributes[ids[0]].unit_strindex), "bytes"));
	assert_int_equal(p->dict.attributes[ids[0]].value.integer, -5);
	assert_true(p->dict.attributes[ids[1]].value.real == 0.5);
	assert_int_equal(p->dict.attributes[ids[2]].value.array.count, 2);
	assert_true(str_is(p->dict.attributes[ids[2]].value.array.items[0].string, "one"));
	assert_true(str_is(p->dict.attributes[ids[2]].value.array.items[1].string, ""));
	assert_true(str_is(p->dict.attributes[ids[3]].value.string, "a\xef\xbf\xbd"));
	assert_null(rules_dictionary(p));
}

/* A location of @function in @file, both by name, with an attribute of the key @file. */
static int32_t location_in(struct builder *b, const char *file, const char *function)
{
	int32_t attribute = builder_attribute_string(b, file, STR("x"));
	int32_t mapping = builder_mapping(b, 0, 0, 0, builder_string_z(b, file), NULL, 0);
	struct profile_line line = { .function_index = builder_function(b, builder_string_z(b, function), 0, 0, 0) };

	return builder_location(b, mapping, 0, &line, 1, &attribute, 1);
}

/* No sample leads to them: a location without a stack, a stack without a sample, and all that these alone name. */
static void test_unused_are_dropped(void **state)
{
	AUTO(free_builder) struct builder *b = builder_new();
	AUTO(put_profiles) struct profiles *p = NULL;
	int32_t hidden = location_in(b, "libhidden", "hidden"), alone = location_in(b, "liblone", "lone"),
		shown = location_in(b, "libshown", "shown");
	uint32_t profile = builder_profile(b, builder_resource(b, NULL, 0), &text_cpu_spec);
	const struct sample *s;

	(void)state;
	assert_true(hidden);
	(void)builder_stack(b, &alone, 1);
	builder_value(b, profile, builder_stack(b, &shown, 1), NULL, 0, 0, 7);
	assert_int_equal(builder_freeze(b, 0, 0, &p), 0);
	assert_int_equal(p->dict.stack_count, 2);
	assert_int_equal(p->dict.location_count, 2);
	assert_int_equal(p->dict.function_count, 2);
	assert_int_equal(p->dict.mapping_count, 2);
	assert_int_equal(p->dict.attribute_count, 2);
	s = p->resources[0].scopes[0].profiles[0].samples;
	assert_int_equal(s[0].stack_index, 1);
	assert_int_equal(p->dict.stacks[1].items[0], 1);
	assert_true(str_is(profiles_string(p, p->dict.functions[1].name_strindex), "shown"));
	assert_true(str_is(profiles_string(p, p->dict.mappings[1].filename_strindex), "libshown"));
	assert_true(str_is(profiles_string(p, p->dict.attributes[p->dict.locations[1].attributes.items[0]].key_strindex),
			   "libshown"));
	for (uint32_t i = 0; i < p->dict.string_count; i++) {
		assert_false(str_is(p->dict.strings[i], "hidden"));
		assert_false(str_is(p->dict.strings[i], "liblone"));
	}
	assert_null(rules_dictionary(p));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unused_are_dropped),
		cmocka_unit_test(test_sums_and_attributes),
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_profile_without_events_is_left_out),
		cmocka_unit_test(test_many_attributes),
		cmocka_unit_test(test_equal_things_have_equal_indices),
		cmocka_unit_test(test_equal_samples_become_one),
		cmocka_unit_test(test_window_holds_all_timestamps),
		cmocka_unit_test(test_values_and_links),
		cmocka_unit_test(test_resources_and_order),
		cmocka_unit_test(test_names_become_utf8),
		cmocka_unit_test(test_ids_differ),
		cmocka_unit_test(test_many_events),
		cmocka_unit_test(test_memory_comes_back),
		cmocka_unit_test(test_out_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
