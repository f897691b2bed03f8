/* SPDX-License-Identifier: Apache-2.0 */
/* The decoder against input that is broken, hostile, or of another release. Input always ends at an unmapped page. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "tests/unit/proto/otlp_bytes.h"
#include "proto/otlp/otlp.h"

/* A copy of @data right before a page that faults. */
struct edge {
	uint8_t *map, *data;
	size_t map_len;
};

static struct edge edge_new(const void *data, size_t len)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), body = (len + page - 1) / page * page;
	struct edge e = { .map_len = body + page };

	e.map = mmap(NULL, e.map_len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(e.map != MAP_FAILED);
	assert_int_equal(mprotect(e.map + body, page, PROT_NONE), 0);
	e.data = e.map + body - len;
	if (len)
		memcpy(e.data, data, len);
	return e;
}

static int decode_at_edge(const struct buf *b, struct profiles **ret, struct otlp_error *err)
{
	struct edge e = edge_new(b->data, b->len);
	int r = otlp_decode(e.data, b->len, false, ret, err);

	munmap(e.map, e.map_len);
	return r;
}

static int decode_text(const char *text, struct profiles **ret, struct otlp_error *err)
{
	struct buf b = BUF_EMPTY;
	int r;

	bytes_fields(text, &b);
	r = decode_at_edge(&b, ret, err);
	buf_fini(&b);
	return r;
}

/* resource_profiles { scope_profiles { profiles { */
#define PROFILE(inner)	 "1{2{2{" inner "}}}"
#define SAMPLE(inner)	 PROFILE("2{" inner "}")
#define DICT(inner)	 "2{" inner "}"
#define ATTRIBUTE(inner) "1{1{1{" inner "}}}"

static const struct {
	const char *text, *message;
} malformed[] = {
	/* framing */
	{ "x0a", "ProfilesData.resource_profiles is cut off" },
	{ "x0a x05 x00", "byte 1: ProfilesData.resource_profiles is cut off" },
	{ "x0a xff xff xff xff xff xff xff xff xff x02", "ProfilesData.resource_profiles is cut off" },
	{ "x0a xff xff xff xff x0f", "ProfilesData.resource_profiles is cut off" },
	{ "x80", "ProfilesData goes on with bytes that are no field" },
	{ "x00", "ProfilesData goes on with bytes that are no field" },
	{ "x82 x80 x80 x80 x80 x01", "ProfilesData goes on with bytes that are no field" },
	{ "x33", "ProfilesData has field 6 (group) that is cut off or not proto3" },
	{ "x34", "ProfilesData has field 6 (end of group)" },
	{ "x36", "ProfilesData has field 6 (reserved (6))" },
	{ "x35 x01", "ProfilesData has field 6 (fixed32) that is cut off" },
	{ "7'abc' 1:5", "byte 6: ProfilesData.resource_profiles has wire type varint, not length-delimited" },
	{ SAMPLE("x0b"), "Sample.stack_index has wire type group, not varint" },
	/* numbers */
	{ SAMPLE("x08"), "Sample.stack_index is cut off or longer than 64 bits" },
	{ SAMPLE("x08 xff xff xff xff xff xff xff xff xff x7f"), "Sample.stack_index is cut off or longer than 64 bits" },
	{ SAMPLE("x08 x80 x80 x80 x80 x80 x80 x80 x80 x80 x80 x01"), "longer than 64 bits" },
	{ SAMPLE("1:-1"), "Sample.stack_index is -1, out of range" },
	{ SAMPLE("1:2147483648"), "Sample.stack_index is 2147483648, out of range" },
	{ SAMPLE("2[0 -1]"), "Sample.attribute_indices holds a number out of range" },
	{ SAMPLE("2[0 2147483648]"), "Sample.attribute_indices holds a number out of range" },
	{ SAMPLE("2:-1"), "Sample.attribute_indices holds a number out of range" },
	{ SAMPLE("x22 x02 x01 x80"), "Sample.values ends within a number" },
	{ SAMPLE("5'1234567'"), "Sample.timestamps_unix_nano has 7 bytes, not a multiple of 8" },
	{ SAMPLE("x29 x00 x00"), "Sample.timestamps_unix_nano is cut off" },
	{ SAMPLE("5:7"), "Sample.timestamps_unix_nano has wire type varint, not length-delimited" },
	{ PROFILE("x19 x00"), "Profile.time_unix_nano is cut off" },
	{ PROFILE("8:4294967296"), "Profile.dropped_attributes_count is 4294967296, out of range" },
	{ ATTRIBUTE("2{4=1 4:1}"), "AnyValue.double_value has wire type varint, not fixed64" },
	/* strings */
	{ "1{2{2{7'abc'}}}", "byte 8: Profile.profile_id has 3 bytes, not 16 or none" },
	{ "1{2{2{7'0123456789abcdef0'}}}", "Profile.profile_id has 17 bytes, not 16 or none" },
	{ DICT("4{1'0123456789abcde'}"), "Link.trace_id has 15 bytes, not 16 or none" },
	{ DICT("4{2'0123456789abcdef'}"), "Link.span_id has 16 bytes, not 8 or none" },
	{ DICT("5'' x2a x02 xff xfe"), "byte 6: ProfilesDictionary.string_table is not UTF-8" },
	{ DICT("x2a x01 xc3 5'a'"), "ProfilesDictionary.string_table is not UTF-8" },
	{ DICT("6{2{x0a x03 xed xa0 x80}}"), "AnyValue.string_value is not UTF-8" },
	{ DICT("6{2{x0a x01 x80 3:1}}"), "AnyValue.string_value is not UTF-8" }, /* also when another variant replaces it */
	{ ATTRIBUTE("x0a x02 xc0 x80"), "KeyValue.key is not UTF-8" },
	{ "1{1{3{x0a x01 xff}}}", "EntityRef.schema_url is not UTF-8" },
	{ "1{1{3{2'12345678\xff'}}}", "EntityRef.type is not UTF-8" },
	{ "1{1{3{3'ok' x1a x01 xff}}}", "EntityRef.id_keys is not UTF-8" },
	{ "1{1{3{4'ok' x22 x01 xff}}}", "EntityRef.description_keys is not UTF-8" },
	{ "1{2{1{x0a x01 xff}}}", "InstrumentationScope.name is not UTF-8" },
	{ "1{2{1{x12 x01 xff}}}", "InstrumentationScope.version is not UTF-8" },
	{ "1{2{x1a x01 xff}}", "ScopeProfiles.schema_url is not UTF-8" },
	{ "1{x1a x01 xff}", "ResourceProfiles.schema_url is not UTF-8" },
	{ PROFILE("x4a x01 xff"), "Profile.original_payload_format is not UTF-8" },
	/* what fields mean together */
	{ ATTRIBUTE("1'k' 3:1") DICT("5'' 5's'"), "KeyValue has both key (\"k\") and key_strindex (1)" },
	{ ATTRIBUTE("1'01234567890123456789012345678901234567890123456789012345678é' 3:1"), "345678\") and key_strindex" },
	/* indices */
	{ SAMPLE("1:7"),
	  "resource_profiles[0].scope_profiles[0].profiles[0].samples[0].stack_index is 7, but stack_table has 1" },
	{ PROFILE("2{} 2{} 2{3:1}"), "samples[2].link_index is 1, but link_table has 1 elements" },
	{ SAMPLE("2[0 0 3] 4[1]") DICT("6{} 6{}"), "attribute_indices[2] is 3, but attribute_table has 2 elements" },
	{ PROFILE("1{1:2}") DICT("5'' 5'a'"),
	  "profiles[0].sample_type.type_strindex is 2, but string_table has 2 elements" },
	{ PROFILE("5{2:2}") DICT("5'' 5'a'"), "profiles[0].period_type.unit_strindex is 2" },
	{ PROFILE("11[1]"), "profiles[0].attribute_indices[0] is 1, but attribute_table has 1" },
	{ DICT("1{4:1}"), "dictionary.mapping_table[0].filename_strindex is 1" },
	{ DICT("1{5[9]}"), "dictionary.mapping_table[0].attribute_indices[0] is 9" },
	{ DICT("2{} 2{1:1}"), "dictionary.location_table[1].mapping_index is 1" },
	{ DICT("2{3{} 3{1:1}}"), "dictionary.location_table[0].lines[1].function_index is 1" },
	{ DICT("3{1:1}"), "dictionary.function_table[0].name_strindex is 1" },
	{ DICT("3{2:1}"), "dictionary.function_table[0].system_name_strindex is 1" },
	{ DICT("3{3:1}"), "dictionary.function_table[0].filename_strindex is 1" },
	{ DICT("6{1:1}"), "dictionary.attribute_table[0].key_strindex is 1" },
	{ DICT("6{3:1}"), "dictionary.attribute_table[0].unit_strindex is 1" },
	{ DICT("6{2{8:4}}"), "dictionary.attribute_table[0].value.string_value_strindex is 4" },
	{ DICT("7{1[0 5]}"), "dictionary.stack_table[0].location_indices[1] is 5" },
	{ ATTRIBUTE("3:1"), "resource_profiles[0].resource.attributes[0].key_strindex is 1" },
	{ ATTRIBUTE("2{5{1{} 1{6{1{3:2}}}}}"), "value.array_value.values[1].kvlist_value.values[0].key_strindex is 2" },
	{ "1{2{1{3{2{8:1}}}}}", "scope_profiles[0].scope.attributes[0].value.string_value_strindex is 1" },
	/* several messages are one */
	{ DICT("5'' 5'a'") SAMPLE("") DICT("3{1:2}"), "name_strindex is 2, but string_table has 2 elements" },
};

static void refuses_malformed(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(malformed); i++) {
		struct profiles *p = NULL;
		struct otlp_error err;

		if (decode_text(malformed[i].text, &p, &err) != -EBADMSG || !strstr(err.message, malformed[i].message))
			fail_msg("%s: got \"%s\", not \"%s\"", malformed[i].text, p ? "(accepted)" : err.message,
				 malformed[i].message);
	}
}

static void accepts_what_protobuf_accepts(void **state)
{
	static const char *const cases[] = {
		"",
		"1{}",
		"2{}",
		SAMPLE(""),
		SAMPLE("1:0 2[] 2[0] 2:0 4[] 4:-1 4[1 2] 5'' 5=1"),
		"x8a x00 x00",			   /* a tag longer than need be */
		SAMPLE("x08 x80 x80 x00"),	   /* so a number */
		DICT("4{2'' 1''}") DICT("6{2{}}"), /* the zero elements that Go's pdata writes */
		SAMPLE("1:9 1:0"),		   /* the last one counts */
		ATTRIBUTE("2{8:9 3:1}"),	   /* also in a oneof */
		"99'x' 98:1 97=1 x8d x06 x01 x02 x03 x04",
		"3'a table to come'" SAMPLE("3:0 17'x'"),
		"3'\xff'" SAMPLE("17'\xff'"), /* unknown fields may be bytes */
		DICT("5'' 5'grün €' 6{2{1'\xf0\x9f\x94\xa5'}}"),
		DICT("4{1'0123456789abcde\xff' 2'1234567\xc0'} 6{2{7'\xed\xa0\x80'}}")
			PROFILE("7'0123456789abcd\xff\xfe' 10'\x80'"), /* bytes are no strings */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct profiles *p = NULL;
		struct otlp_error err;

		if (decode_text(cases[i], &p, &err))
			fail_msg("%s: %s", cases[i], err.message);
		assert_true(p->dict.string_count && p->dict.stack_count && p->dict.link_count && p->dict.mapping_count);
		assert_non_null(p->dict.strings[0].data);
		assert_non_null(p->dict.links[0].trace_id.data);
		profiles_put(p);
	}
}

/* AnyValue within @levels lists. */
static int decode_nested(unsigned levels, struct otlp_error *err)
{
	struct buf b = BUF_EMPTY;
	struct profiles *p = NULL;
	int r;

	buf_puts(&b, "1{1{1{2{");
	for (unsigned i = 1; i < levels; i++)
		buf_puts(&b, i % 2 ? "5{1{" : "6{1{2{");
	for (unsigned i = 1; i < levels; i++)
		buf_puts(&b, i % 2 ? "}}" : "}}}");
	buf_puts(&b, "}}}}");
	r = decode_text(buf_text(&b), &p, err);
	buf_fini(&b);
	profiles_put(p);
	return r;
}

static void bounds_nesting(void **state)
{
	struct otlp_error err;

	(void)state;
	assert_int_equal(decode_nested(32, &err), 0);
	assert_int_equal(decode_nested(33, &err), -EBADMSG);
	assert_non_null(strstr(err.message, "AnyValue is nested more than 32 deep"));
}

static void survives_cuts_and_flips(void **state)
{
	struct buf whole = BUF_EMPTY;
	unsigned good = 0, bad = 0;

	(void)state;
	bytes_fields(bytes_rich, &whole);
	for (size_t len = 0; len <= whole.len; len++) {
		struct buf part = { .data = whole.data, .len = len };
		struct profiles *p = NULL;
		struct otlp_error err;
		int r = decode_at_edge(&part, &p, &err);

		if (len == whole.len)
			assert_int_equal(r, 0);
		profiles_put(p);
	}
	for (size_t bit = 0; bit < whole.len * 8; bit++) {
		struct profiles *p = NULL;
		struct otlp_error err;
		int r;

		whole.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
		r = decode_at_edge(&whole, &p, &err);
		whole.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_true(r == 0 || (r == -EBADMSG && err.message[0]));
		good += r == 0;
		bad += r != 0;
		profiles_put(p);
	}
	assert_true(good > 100 && bad > 100);
	buf_fini(&whole);
}

static void takes_ownership_only_on_success(void **state)
{
	struct profiles *p = NULL;
	struct otlp_error err;
	struct buf b = BUF_EMPTY;
	uint8_t *data;
	size_t len;

	(void)state;
	bytes_fields(bytes_rich, &b);
	data = buf_take(&b, &len);
	assert_int_equal(otlp_decode(data, len - 1, true, &p, &err), -EBADMSG);
	assert_int_equal(otlp_decode(data, len, true, &p, &err), 0);
	assert_true((const uint8_t *)p->dict.strings[1].data > data &&
		    (const uint8_t *)p->dict.strings[1].data < data + len);
	assert_true(profiles_memory_bytes(p) > len);
	assert_int_equal(p->sample_events, 3);
	profiles_put(p);
}

/* Empty messages cost two bytes each and the most memory; sizes of arrays must not depend on how they are mixed. */
static void memory_is_bounded(void **state)
{
	static const char *const repeated[] = { "1{}", PROFILE("2{}"), DICT("2{}"), DICT("5''"), "1{}2{5''}", "1{1{1{}}}" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(repeated); i++) {
		struct profiles *p = NULL;
		struct otlp_error err;
		struct buf b = BUF_EMPTY;

		for (int n = 0; n < 20000; n++)
			bytes_fields(repeated[i], &b);
		assert_int_equal(decode_at_edge(&b, &p, &err), 0);
		assert_true(profiles_memory_bytes(p) < 200 * b.len);
		profiles_put(p);
		buf_fini(&b);
	}
}

enum reply { RESPONSE, STATUS };

static int decode_reply(enum reply reply, const struct edge *e, size_t len, int64_t *number, char message[8])
{
	int32_t code = (int32_t)*number;
	int r;

	if (reply == RESPONSE)
		return otlp_decode_response(e->data, len, number, message, 8);
	r = otlp_decode_status(e->data, len, &code, message, 8);
	*number = code;
	return r;
}

static void reads_replies(void **state)
{
	static const struct {
		enum reply reply;
		const char *text, *message;
		int64_t number;
		int result;
	} cases[] = {
		{ RESPONSE, "", "", 0, 0 },
		{ RESPONSE, "1{}", "", 0, 0 },
		{ RESPONSE, "1{1:3 2'no'}", "no", 3, 0 },
		{ RESPONSE, "1{2'a longer message'} 2'x'", "a longe", 0, 0 },
		{ RESPONSE, "1{2'a grüße'}", "a grü", 0, 0 }, /* the next byte fits, but is half a character */
		{ RESPONSE, "1{1'x'}", "?", 7, -EBADMSG },
		{ RESPONSE, "x0a x05 x08", "?", 7, -EBADMSG },
		{ STATUS, "", "", 0, 0 },
		{ STATUS, "1:3 2'no'", "no", 3, 0 },
		{ STATUS, "1:-1 2'a longer message' 3{1'type' 2'value'} 3{}", "a longe", -1, 0 },
		{ STATUS, "1'x'", "?", 7, -EBADMSG },
		{ STATUS, "1:3 2'\xff'", "?", 7, -EBADMSG },
		{ STATUS, "x08", "?", 7, -EBADMSG },
		{ STATUS, "x12 x05 x61", "?", 7, -EBADMSG },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		int64_t number = 7;
		char message[8] = "?";
		struct buf b = BUF_EMPTY;
		struct edge e;

		bytes_fields(cases[i].text, &b);
		e = edge_new(b.data, b.len);
		assert_int_equal(decode_reply(cases[i].reply, &e, b.len, &number, message), cases[i].result);
		assert_string_equal(message, cases[i].message);
		assert_int_equal(number, cases[i].number);
		munmap(e.map, e.map_len);
		buf_fini(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refuses_malformed),
		cmocka_unit_test(accepts_what_protobuf_accepts),
		cmocka_unit_test(bounds_nesting),
		cmocka_unit_test(survives_cuts_and_flips),
		cmocka_unit_test(takes_ownership_only_on_success),
		cmocka_unit_test(memory_is_bounded),
		cmocka_unit_test(reads_replies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
