/* SPDX-License-Identifier: Apache-2.0 */
/* Round trips of random profiles through pprof and through OTLP/JSON; then what only pprof files of others have. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>

#include "base/pack/gzip.h"
#include "proto/otlp/otlp.h"
#include "proto/otlp/json/json_decode.h"
#include "proto/formats/pprof.h"
#include "proto/formats/formats.h"
#include "tests/unit/proto/profile_rules.h"
#include "tests/unit/proto/random_profiles.h"

enum { CASES = 1500 };

static void put_profiles(struct profiles **p)
{
	profiles_put(*p);
}

static void to_pprof(const struct profiles *p, struct buf *out)
{
	struct pprof *pp = pprof_new();

	assert_non_null(pp);
	assert_int_equal(pprof_add(pp, p), 0);
	assert_int_equal(pprof_write(pp, out), 0);
	pprof_free(pp);
}

static struct profiles *from_pprof(const struct buf *data)
{
	struct otlp_error error = { "" };
	struct profiles *p = NULL;

	assert_true(pprof_fits(data->data, data->len));
	if (pprof_read(data->data, data->len, &p, &error))
		fail_msg("%s", error.message);
	return p;
}

/* The message that is packed as it is made is the message. */
static void test_packed(void **state)
{
	enum { LEAST_BYTES = 300 << 10 };
	AUTO(buf_fini) struct buf plain = BUF_EMPTY, packed = BUF_EMPTY, unpacked = BUF_EMPTY;
	struct pprof *pp = pprof_new();

	(void)state;
	assert_non_null(pp);
	for (uint64_t seed = 1; plain.len < LEAST_BYTES; seed++) {
		AUTO(put_profiles) struct profiles *p = random_profiles(seed);

		assert_non_null(p);
		assert_int_equal(pprof_add(pp, p), 0);
		buf_reset(&plain);
		if (seed % 64 == 1)
			assert_int_equal(pprof_write(pp, &plain), 0);
	}
	buf_puts(&packed, "before");
	assert_int_equal(pprof_write_packed(pp, &packed), 0);
	assert_int_equal(gzip_unpack(packed.data + 6, packed.len - 6, SIZE_MAX, &unpacked), 0);
	assert_int_equal(unpacked.len, plain.len);
	assert_memory_equal(unpacked.data, plain.data, plain.len);
	pprof_free(pp);
}

/* OTLP -> pprof -> OTLP says the same; and once more. */
static void test_through_pprof(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= CASES; seed++) {
		AUTO(buf_fini) struct buf want = BUF_EMPTY, got = BUF_EMPTY, once = BUF_EMPTY, twice = BUF_EMPTY;
		AUTO(put_profiles) struct profiles *p = random_profiles(seed), *q = NULL;

		assert_non_null(p);
		to_pprof(p, &once);
		q = from_pprof(&once);
		say_profiles(p, &want);
		say_profiles(q, &got);
		if (strcmp(buf_text(&want), buf_text(&got)) != 0)
			fail_msg("seed %" PRIu64 ":\n%s\nbecame\n%s", seed, buf_text(&want), buf_text(&got));
		assert_null(rules_dictionary(q));
		to_pprof(q, &twice);
		profiles_put(q);
		q = from_pprof(&twice);
		buf_reset(&got);
		say_profiles(q, &got);
		assert_string_equal(buf_text(&want), buf_text(&got));
	}
}

static void test_through_json(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= CASES; seed++) {
		AUTO(buf_fini) struct buf json = BUF_EMPTY, once = BUF_EMPTY, twice = BUF_EMPTY;
		AUTO(put_profiles) struct profiles *p = random_profiles(seed), *q = NULL;
		struct otlp_error error = { "" };

		assert_non_null(p);
		assert_int_equal(otlp_json_encode(p, &json), 0);
		if (otlp_json_decode(json.data, json.len, &q, &error))
			fail_msg("seed %" PRIu64 ": %s", seed, error.message);
		assert_int_equal(otlp_encode(p, NULL, &once), 0);
		assert_int_equal(otlp_encode(q, NULL, &twice), 0);
		if (once.len != twice.len || memcmp(once.data, twice.data, once.len) != 0)
			fail_msg("seed %" PRIu64 ": other bytes", seed);
	}
}

/* --- a writer of messages: "1{...}" by hand would be hard to read here --- */

static void put_varint(struct buf *out, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		buf_putc(out, (char)(v | 0x80));
	buf_putc(out, (char)v);
}

static void put_number(struct buf *out, uint32_t field, uint64_t v)
{
	put_varint(out, field << 3);
	put_varint(out, v);
}

static void put_bytes(struct buf *out, uint32_t field, const void *data, size_t len)
{
	put_varint(out, field << 3 | 2);
	put_varint(out, len);
	buf_append(out, data, len);
}

/* The fields 1, 2, ... of a message with these numbers. */
#define PUT(out, field, ...)                                              \
	do {                                                              \
		const uint64_t numbers_[] = { __VA_ARGS__ };              \
		struct buf part_ = BUF_EMPTY;                             \
		for (uint32_t i_ = 0; i_ < ARRAY_LEN(numbers_); i_++)     \
			if (numbers_[i_])                                 \
				put_number(&part_, i_ + 1, numbers_[i_]); \
		put_bytes(out, field, part_.data, part_.len);             \
		buf_fini(&part_);                                         \
	} while (0)

/* A heap profile as Go writes it: four columns, no derived one; a label of two values; comments; lists not packed. */
static void make_heap(struct buf *out)
{
	static const char *const texts[] = { "",       "alloc_objects", "count",  "inuse_space", "bytes",
					     "main.f", "main.go",	"team",	  "red",	 "blue",
					     "size",   "a comment",	"drop.*", "space" };
	struct buf sample = BUF_EMPTY;

	put_number(out, 9, 1700000000000000000); /* first, as Go writes it */
	PUT(out, 1, 1, 2);
	PUT(out, 1, 3, 4);
	put_number(&sample, 1, 7); /* location, twice, not packed */
	put_number(&sample, 1, 7);
	put_number(&sample, 2, 3);
	put_number(&sample, 2, 4096);
	PUT(&sample, 3, 7, 8);
	PUT(&sample, 3, 7, 9);
	PUT(&sample, 3, 10, 0, 512, 4);
	put_bytes(out, 2, sample.data, sample.len);
	buf_fini(&sample);
	PUT(out, 5, 9, 5, 5, 6, 12); /* a function */
	put_number(&sample, 1, 7);
	put_number(&sample, 3, 0x401000);
	PUT(&sample, 4, 9, 13);
	put_number(&sample, 5, 1); /* folded */
	put_bytes(out, 4, sample.data, sample.len);
	buf_fini(&sample);
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		put_bytes(out, 6, texts[i], strlen(texts[i]));
	put_number(out, 7, 12);
	put_number(out, 10, 5000);
	PUT(out, 11, 13, 4);
	put_number(out, 12, 524288);
	put_number(out, 13, 11);
}

static void test_of_others(void **state)
{
	AUTO(buf_fini) struct buf data = BUF_EMPTY, again = BUF_EMPTY, text = BUF_EMPTY;
	AUTO(put_profiles) struct profiles *p = NULL, *q = NULL;
	const struct scope_profiles *scope;
	const struct any_value *v;

	(void)state;
	make_heap(&data);
	p = from_pprof(&data);
	assert_int_equal(p->resource_count, 1);
	scope = &p->resources[0].scopes[0];
	assert_int_equal(scope->profile_count, 2);
	/* no default is said: pprof shows the last */
	assert_true(str_is(profiles_string(p, scope->profiles[0].sample_type.type_strindex), "inuse_space"));
	assert_int_equal(scope->profiles[0].samples[0].values[0], 4096);
	assert_int_equal(scope->profiles[1].samples[0].values[0], 3);
	assert_int_equal(scope->profiles[0].period, 524288);
	assert_int_equal(scope->profiles[0].time_unix_ns, 1700000000000000000);
	assert_int_equal(scope->profiles[0].duration_ns, 5000);
	assert_int_equal(p->dict.stacks[scope->profiles[0].samples[0].stack_index].count, 2);
	v = profiles_find_attribute(p, &scope->profiles[0].samples[0].attributes, "team");
	assert_true(v && v->kind == VALUE_ARRAY && v->array.count == 2 && str_is(v->array.items[1].string, "blue"));
	v = profiles_find_attribute(p, &scope->profiles[0].samples[0].attributes, "size");
	assert_true(v && v->kind == VALUE_INT && v->integer == 512);
	v = profiles_find_attribute(p, &scope->profiles[0].attributes, "pprof.profile.comment");
	assert_true(v && v->kind == VALUE_ARRAY && str_is(v->array.items[0].string, "a comment"));
	v = profiles_find_attribute(p, &scope->profiles[0].attributes, "pprof.profile.drop_frames");
	assert_true(v && str_is(v->string, "drop.*"));
	v = profiles_find_attribute(p, &p->dict.locations[1].attributes, "profile.frame.type");
	assert_true(v && str_is(v->string, "go"));
	to_pprof(p, &again);
	q = from_pprof(&again);
	say_profiles(p, &text);
	{
		AUTO(buf_fini) struct buf got = BUF_EMPTY;

		say_profiles(q, &got);
		assert_string_equal(buf_text(&text), buf_text(&got));
	}
	v = profiles_find_attribute(q, &q->resources[0].scopes[0].profiles[0].attributes, "pprof.profile.comment");
	assert_true(v && v->kind == VALUE_ARRAY && v->array.count == 1);
	v = profiles_find_attribute(q, &q->dict.locations[1].attributes, "pprof.location.is_folded");
	assert_true(v && v->boolean);
}

/* A sample whose numbers are all zero stays, as one of the type that is shown; a zero beside another number is none. */
static void test_zeros(void **state)
{
	static const char *const texts[] = { "", "objects", "count", "space", "bytes" };
	AUTO(buf_fini) struct buf data = BUF_EMPTY;
	AUTO(put_profiles) struct profiles *p = NULL;
	const struct scope_profiles *scope;

	(void)state;
	PUT(&data, 1, 1, 2);
	PUT(&data, 1, 3, 4);
	for (uint64_t value = 0; value < 2; value++) {
		struct buf sample = BUF_EMPTY;

		put_number(&sample, 1, 1);
		put_number(&sample, 2, value);
		put_number(&sample, 2, 0);
		put_bytes(&data, 2, sample.data, sample.len);
		buf_fini(&sample);
	}
	PUT(&data, 4, 1, 0, 0x1000);
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		put_bytes(&data, 6, texts[i], strlen(texts[i]));
	p = from_pprof(&data);
	scope = &p->resources[0].scopes[0];
	assert_int_equal(scope->profile_count, 2);
	assert_true(str_is(profiles_string(p, scope->profiles[0].sample_type.type_strindex), "space"));
	assert_int_equal(scope->profiles[0].sample_count, 1);
	assert_int_equal(scope->profiles[1].sample_count, 1);
	assert_int_equal(scope->profiles[1].samples[0].values[0], 1);
}

/* A key of the resource that a sample names twice stands there once, with the first value. */
static void test_label_of_resource_twice(void **state)
{
	static const char *const texts[] = { "", "samples", "count", "process.executable.name", "web", "other" };
	AUTO(buf_fini) struct buf data = BUF_EMPTY, sample = BUF_EMPTY;
	AUTO(put_profiles) struct profiles *p = NULL;
	const struct key_values *attributes;

	(void)state;
	PUT(&data, 1, 1, 2);
	put_number(&sample, 2, 3);
	PUT(&sample, 3, 3, 4);
	PUT(&sample, 3, 3, 5);
	put_bytes(&data, 2, sample.data, sample.len);
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		put_bytes(&data, 6, texts[i], strlen(texts[i]));
	p = from_pprof(&data);
	assert_int_equal(p->resource_count, 1);
	attributes = &p->resources[0].resource.attributes;
	assert_int_equal(attributes->count, 1);
	assert_true(str_is(profiles_value_text(p, profiles_find_key(p, attributes, "process.executable.name")), "web"));
}

/* Cut anywhere, it is refused with a place, or read as what stands before the cut makes sense alone. */
static void test_cut_anywhere(void **state)
{
	AUTO(buf_fini) struct buf data = BUF_EMPTY;

	(void)state;
	make_heap(&data);
	for (size_t len = 0; len < data.len; len++) {
		AUTO_FREE uint8_t *cut = malloc(len + 1);
		struct otlp_error error = { "" };
		struct profiles *p = NULL;
		int err;

		memcpy(cut, data.data, len);
		assert_int_equal(pprof_fits(cut, len), len >= 16); /* as soon as the first sample type is there */
		err = pprof_read(cut, len, &p, &error);
		assert_true(err == 0 || (err == -EBADMSG && !strncmp(error.message, "byte ", 5)));
		profiles_put(p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_packed),
		cmocka_unit_test(test_through_pprof),
		cmocka_unit_test(test_through_json),
		cmocka_unit_test(test_of_others),
		cmocka_unit_test(test_label_of_resource_twice),
		cmocka_unit_test(test_cut_anywhere),
		cmocka_unit_test(test_zeros),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
