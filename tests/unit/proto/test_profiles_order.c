/* SPDX-License-Identifier: Apache-2.0 */
/* The order of the dictionary, and intervals made one: what stands where, and that nothing is said that was not before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "proto/otlp/otlp.h"
#include "proto/otlp/stream.h"
#include "tests/unit/proto/made_profiles.h"
#include "tests/unit/proto/profile_rules.h"
#include "tests/unit/proto/random_profiles.h"

/* Neighbours in the dictionary are alike: locations stand by mapping, lines and address, stacks by their locations from the
 * root, functions by files and where they start, and strings as those name them. */
static void test_order(void **state)
{
	static const struct {
		uint64_t address;
		const char *name, *file;
		int64_t start_line;
	} in[] = { { 0x3000, "f3", "b.c", 30 },
		   { 0x1000, "f1", "a.c", 5 },
		   { 0x4000, NULL, NULL, 0 },
		   { 0x2000, "f2", "b.c", 10 } };
	static const uint64_t sorted[] = { 0x4000, 0x3000, 0x1000, 0x2000 };
	static const char *const strings[] = { "b.c", "a.c", "f2", "f3", "f1" };
	static const int called[] = { 3, 2, 3, 1 }, callers[] = { 1, 1, 0, 2 }; /* of @in */
	AUTO(free_builder) struct builder *b = builder_new();
	AUTO(put_profiles) struct profiles *p = NULL;
	int32_t mappings[2], locations[ARRAY_LEN(in)];

	(void)state;
	for (int32_t m = 0; m < 2; m++)
		mappings[m] = builder_mapping(b, 0, 0x10000, 0, builder_string_z(b, m ? "second" : "first"), NULL, 0);
	for (size_t i = 0; i < ARRAY_LEN(in); i++) {
		struct profile_line line = { .line = (int64_t)in[i].address };

		if (in[i].name)
			line.function_index = builder_function(b, builder_string_z(b, in[i].name), 0,
							       builder_string_z(b, in[i].file), in[i].start_line);
		locations[i] = builder_location(b, mappings[i % 2], in[i].address, &line, in[i].name != NULL, NULL, 0);
	}
	for (size_t i = 0; i < ARRAY_LEN(in); i++) {
		int32_t stack[] = { locations[called[i]], locations[callers[i]] };

		builder_event(b, cpu_profile(b, "x"), builder_stack(b, stack, 2), NULL, 0, 0, 11ull * S + i, false, 0);
	}
	p = freeze(b);
	assert_null(profile_rules_broken(p));
	for (size_t i = 0; i < ARRAY_LEN(strings); i++)
		assert_true(str_is(p->dict.strings[i + 1], strings[i]));
	for (size_t i = 0; i < 3; i++)
		assert_true(str_is(profiles_string(p, p->dict.functions[i + 1].name_strindex), strings[i + 2]));
	for (size_t i = 0; i < ARRAY_LEN(in); i++) {
		const struct profile_location *l = &p->dict.locations[i + 1];
		const struct sample *s = &p->resources[0].scopes[0].profiles[0].samples[i];
		const struct indices *stack = &p->dict.stacks[s->stack_index];

		assert_int_equal(l->address, sorted[i]);
		assert_true(str_is(profiles_string(p, p->dict.mappings[l->mapping_index].filename_strindex),
				   i < 2 ? "first" : "second"));
		if (l->line_count) {
			const struct profile_function *f = &p->dict.functions[l->lines[0].function_index];

			assert_int_equal(l->lines[0].line, l->address);
			assert_int_equal(p->dict.strings[f->name_strindex].data[1] - '0', l->address >> 12);
		}
		/* callers and called: f4 f1, f3 f2, f1 f4, f1 f2 */
		assert_int_equal(s->stack_index, ARRAY_LEN(in) - i);
		assert_int_equal(p->dict.locations[stack->items[0]].address, in[called[i]].address);
		assert_int_equal(p->dict.locations[stack->items[1]].address, in[callers[i]].address);
	}
}

/* Of many locations, the one that all stacks name has an index of one byte. */
static void test_frequent_location(void **state)
{
	enum { LEAVES = 300 };
	AUTO(free_builder) struct builder *b = builder_new();
	AUTO(put_profiles) struct profiles *p = NULL;
	int32_t stack[2] = { 0, builder_location(b, 0, LEAVES + 1, NULL, 0, NULL, 0) };

	(void)state;
	for (unsigned i = LEAVES; i > 0; i--) {
		stack[0] = builder_location(b, 0, i, NULL, 0, NULL, 0);
		builder_event(b, cpu_profile(b, "x"), builder_stack(b, stack, 2), NULL, 0, 0, 11ull * S, false, 0);
	}
	p = freeze(b);
	for (int32_t i = 1; i <= LEAVES + 1; i++) {
		int32_t address = i == 1 ? LEAVES + 1 : i - 1;

		assert_int_equal(p->dict.locations[i].address, address);
	}
	for (int32_t i = 1; i <= LEAVES; i++) { /* the other sides of it */
		assert_int_equal(p->dict.stacks[i].items[1], 1);
		assert_int_equal(p->dict.stacks[i].items[0], i + 1);
	}
}

/* A capture of some intervals, decoded as one message. */
static struct profiles *captured(uint64_t seed)
{
	struct otlp_stream *stream = otlp_stream_new();
	AUTO(buf_fini) struct buf data = BUF_EMPTY;
	struct profiles *whole;
	struct otlp_error error;

	for (unsigned i = 0; i < 3; i++) {
		AUTO(put_profiles) struct profiles *p = random_profiles(seed * 3 + i);

		assert_int_equal(otlp_stream_encode(stream, p, &data), 0);
	}
	otlp_stream_free(stream);
	assert_int_equal(otlp_decode(data.data, data.len, false, &whole, &error), 0);
	return whole;
}

/* Each key and value of a resource becomes a reference, where the texts are among the strings. */
static void refer_to_strings(struct profiles *p)
{
	for (uint32_t r = 0; r < p->resource_count; r++)
		for (uint32_t i = 0; i < p->resources[r].resource.attributes.count; i++) {
			struct key_value *kv = &p->resources[r].resource.attributes.items[i];

			kv->key = STR("");
			kv->key_strindex = (int32_t)(1 + (r + i) % (p->dict.string_count - 1));
			kv->value = (struct any_value){ .kind = VALUE_STRINDEX,
							.strindex = (int32_t)p->dict.string_count - 1 };
		}
}

static void say_references(const struct profiles *p, struct buf *out)
{
	for (uint32_t r = 0; r < p->resource_count; r++)
		for (uint32_t i = 0; i < p->resources[r].resource.attributes.count; i++) {
			const struct key_value *kv = &p->resources[r].resource.attributes.items[i];
			struct str key = profiles_key(p, kv), value = STR("");

			profiles_value_string(p, &kv->value, &value);
			buf_printf(out, "%.*s %.*s\n", (int)key.len, key.data, (int)value.len, value.data);
		}
}

/* Put in order, a capture says the same. */
static void test_order_keeps_all(void **state)
{
	uint32_t out_of_order = 0;

	(void)state;
	for (uint64_t seed = 0; seed < 200; seed++) {
		AUTO(put_profiles) struct profiles *p = captured(seed);
		AUTO(buf_fini) struct buf before = BUF_EMPTY, after = BUF_EMPTY;

		if (seed % 2)
			refer_to_strings(p);
		for (uint32_t i = 2; i < p->dict.location_count; i++)
			out_of_order += p->dict.locations[i].mapping_index < p->dict.locations[i - 1].mapping_index;
		seed % 2 ? say_references(p, &before) : say_profiles(p, &before);
		assert_int_equal(profiles_order(p), 0);
		seed % 2 ? say_references(p, &after) : say_profiles(p, &after);
		assert_true(before.len > 0);
		assert_string_equal(buf_text(&before), buf_text(&after));
		for (uint32_t i = 2; i < p->dict.location_count; i++)
			assert_true(p->dict.locations[i].mapping_index >= p->dict.locations[i - 1].mapping_index);
	}
	assert_true(out_of_order > 0);
}

/* One line an event, sorted. */
static void say_events(const struct profiles *p, struct buf *out)
{
	char *lines[1024];
	size_t count = 0;

	for (uint32_t r = 0; r < p->resource_count; r++)
		for (uint32_t c = 0; c < p->resources[r].scope_count; c++)
			for (uint32_t i = 0; i < p->resources[r].scopes[c].profile_count; i++) {
				struct profile profile = p->resources[r].scopes[c].profiles[i];

				for (uint32_t s = 0; s < profile.sample_count; s++) {
					const struct sample *sample = &profile.samples[s];

					for (uint32_t e = 0; e < sample->timestamp_count || !e; e++) {
						struct sample one = *sample;

						profile.time_unix_ns = one.timestamp_count ? one.timestamps_unix_ns[e] : 0;
						profile.duration_ns = 0;
						one.timestamp_count = one.timestamp_count != 0;
						if (one.value_count)
							one.values += e;
						one.value_count = one.value_count != 0;
						assert_true(count < ARRAY_LEN(lines));
						lines[count++] = say_sample(p, &p->resources[r].resource, &profile, &one);
					}
				}
			}
	qsort(lines, count, sizeof(*lines), compare_lines);
	for (size_t i = 0; i < count; i++) {
		buf_puts(out, lines[i]);
		free(lines[i]);
	}
}

/* Merged, a capture says the same of every event. */
static void test_merge_keeps_all(void **state)
{
	uint32_t merged = 0;

	(void)state;
	for (uint64_t seed = 0; seed < 200; seed++) {
		AUTO(put_profiles) struct profiles *p = captured(seed);
		AUTO(buf_fini) struct buf before = BUF_EMPTY, after = BUF_EMPTY;
		uint32_t resources = p->resource_count;

		say_events(p, &before);
		assert_int_equal(profiles_merge(p), 0);
		say_events(p, &after);
		assert_string_equal(buf_text(&before), buf_text(&after));
		merged += resources - p->resource_count;
	}
	assert_true(merged > 0);
}

/* An interval of three programs: one that stays, one that waits, and in the second another than in the others. */
static struct profiles *interval(unsigned i)
{
	static const struct builder_profile_spec waiting = { "hearth", "1", "off_cpu", "nanoseconds", "", "", 0, NULL, 0 };
	static const uint8_t id[16] = { 1 };
	AUTO(free_builder) struct builder *b = builder_new();
	struct profiles *p = NULL;
	int32_t cpu = i == 1 ? builder_attribute_int(b, "cpu", i / 2) : 0; /* the other way round */
	int32_t pair[2] = { builder_attribute_int(b, "thread.id", 1),
			    i == 1 ? cpu : builder_attribute_int(b, "cpu", i / 2) };
	uint64_t time = (10ull + i) * S;
	struct key_value none = { .key = STR("k"), .value = { .kind = VALUE_INT } };

	builder_event(b, cpu_profile(b, "same"), 0, pair, 1, 0, time, false, 0);
	builder_event(b, cpu_profile(b, "same"), 0, pair, 1, 0, time + 1, false, 0);
	builder_event(b, cpu_profile(b, "same"), 0, pair, 2, 0, time + 2, false, 0);
	builder_event(b, builder_profile(b, builder_resource(b, &none, 1), &waiting), 0, NULL, 0,
		      i < 2 ? 0 : builder_link(b, id, id), time + 3, true, i + 1);
	builder_event(b, cpu_profile(b, i == 1 ? "other" : "same"), 0, NULL, 0, 0, time + 4, false, 0);
	assert_int_equal(builder_freeze(b, time, time + S, &p), 0);
	return p;
}

/* Three intervals of the same become one that is longer; what differs stays. */
static void test_merge(void **state)
{
	AUTO(buf_fini) struct buf data = BUF_EMPTY;
	struct otlp_stream *stream = otlp_stream_new();
	AUTO(put_profiles) struct profiles *whole = NULL;
	const struct profile *profile;
	struct otlp_error error;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		AUTO(put_profiles) struct profiles *p = interval(i);

		assert_int_equal(otlp_stream_encode(stream, p, &data), 0);
	}
	otlp_stream_free(stream);
	assert_int_equal(otlp_decode(data.data, data.len, false, &whole, &error), 0);
	assert_int_equal(whole->resource_count, 7);
	assert_int_equal(profiles_merge(whole), 0);
	assert_null(profile_rules_broken(whole));
	assert_int_equal(whole->resource_count, 3);
	profile = &whole->resources[0].scopes[0].profiles[0];
	assert_int_equal(profile->time_unix_ns, 10ull * S);
	assert_int_equal(profile->duration_ns, 3ull * S);
	assert_int_equal(profile->sample_count, 4); /* of the thread; of it on two CPUs; of no thread */
	assert_int_equal(profile->samples[0].timestamp_count, 6);
	for (uint32_t i = 0; i < 6; i++)
		assert_int_equal(profile->samples[0].timestamps_unix_ns[i], (10ull + i / 2) * S + i % 2);
	assert_int_equal(profile->samples[1].timestamp_count, 2);
	profile = &whole->resources[1].scopes[0].profiles[0];
	assert_int_equal(profile->sample_count, 2); /* without a link, with it */
	assert_int_equal(profile->samples[0].value_count, 2);
	assert_int_equal(profile->samples[0].values[1], 2);
	assert_int_equal(profile->samples[1].values[0], 3);
	assert_int_equal(whole->resources[2].scopes[0].profiles[0].sample_count, 1);
	assert_int_equal(whole->resources[2].scopes[0].profiles[0].time_unix_ns, 11ull * S);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),		cmocka_unit_test(test_frequent_location),
		cmocka_unit_test(test_order_keeps_all), cmocka_unit_test(test_merge_keeps_all),
		cmocka_unit_test(test_merge),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
