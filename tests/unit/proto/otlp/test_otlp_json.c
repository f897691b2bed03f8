/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The JSON decoder: against Google's protobuf, whose JSON of messages over every field must come back as the same protobuf
 * bytes; and against input that is broken or hostile, which always ends at an unmapped page.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "proto/otlp/otlp.h"
#include "proto/otlp/json/json_decode.h"
#include "tests/unit/proto/otlp_truth.h"

enum { MESSAGES = 16 };

static int make_messages(void **state)
{
	(void)state;
	return mkdtemp(truth_folder) && truth("make %s %d", truth_folder, MESSAGES) == 0
		       ? truth("tojson %s %d", truth_folder, MESSAGES)
		       : -1;
}

/* Decodes a copy that ends at a page that faults. */
static int decode_at_edge(const void *data, size_t len, struct profiles **ret, struct otlp_error *err)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), body = (len + page - 1) / page * page;
	uint8_t *map = mmap(NULL, body + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int r;

	assert_true(map != MAP_FAILED);
	assert_int_equal(mprotect(map + body, page, PROT_NONE), 0);
	if (len)
		memcpy(map + body - len, data, len);
	r = otlp_json_decode(map + body - len, len, ret, err);
	munmap(map, body + page);
	return r;
}

static int decode_text(const char *text, struct profiles **ret, struct otlp_error *err)
{
	return decode_at_edge(text, strlen(text), ret, err);
}

static struct profiles *decoded(const char *text)
{
	struct profiles *p = NULL;
	struct otlp_error err;

	if (decode_text(text, &p, &err))
		fail_msg("%s: %s", text, err.message);
	return p;
}

static void reads_what_protobuf_writes(void **state)
{
	static const char *const forms[] = { "camel", "hex" };

	(void)state;
	for (int i = 0; i < MESSAGES; i++) {
		AUTO(buf_fini) struct buf want = truth_read("%d.%s", i, "otlp");

		for (size_t n = 0; n < ARRAY_LEN(forms); n++) {
			AUTO(buf_fini) struct buf json = truth_read("%d.%s", i, forms[n]);
			AUTO(buf_fini) struct buf got = BUF_EMPTY;
			struct otlp_error err;
			struct profiles *p;

			if (decode_at_edge(json.data, json.len, &p, &err))
				fail_msg("message %d, %s: %s", i, forms[n], err.message);
			assert_int_equal(otlp_encode(p, NULL, &got), 0);
			assert_int_equal(got.len, want.len);
			assert_memory_equal(got.data, want.data, want.len);
			profiles_put(p);
		}
	}
}

static void reads_what_it_writes(void **state)
{
	(void)state;
	for (int i = 0; i < MESSAGES; i++) {
		AUTO(buf_fini) struct buf want = truth_read("%d.%s", i, "otlp");
		AUTO(buf_fini) struct buf json = BUF_EMPTY, again = BUF_EMPTY;
		struct otlp_error err;
		struct profiles *p, *q;

		assert_int_equal(otlp_decode(want.data, want.len, false, &p, &err), 0);
		assert_int_equal(otlp_json_encode(p, &json), 0);
		assert_int_equal(decode_at_edge(json.data, json.len, &q, &err), 0);
		assert_int_equal(p->sample_events, q->sample_events);
		assert_int_equal(otlp_encode(q, NULL, &again), 0);
		assert_int_equal(again.len, want.len);
		assert_memory_equal(again.data, want.data, want.len);
		profiles_put(p);
		profiles_put(q);
	}
}

#define PROFILE(inner) "{\"resourceProfiles\":[{\"scopeProfiles\":[{\"profiles\":[{" inner "}]}]}]}"
#define SAMPLE(inner)  PROFILE("\"samples\":[{" inner "}]")
#define DICT(inner)    "{\"dictionary\":{" inner "}}"
#define VALUE(inner)   "{\"resourceProfiles\":[{\"resource\":{\"attributes\":[{\"key\":\"k\",\"value\":" inner "}]}}]}"

#define AT_SAMPLE "resourceProfiles[0].scopeProfiles[0].profiles[0].samples[0]"
#define AT_VALUE  "resourceProfiles[0].resource.attributes[0].value"

static const struct {
	const char *text, *message;
} malformed[] = {
	/* the grammar */
	{ "", "byte 0: the JSON text is not an object" },
	{ " \n\t", "byte 3: the JSON text is not an object" },
	{ "[]", "byte 0: the JSON text is not an object" },
	{ "null", "byte 0: the JSON text is not an object" },
	{ "{", "byte 1: the JSON text is an object that is not closed" },
	{ "{}x", "byte 2: the JSON text goes on behind its end" },
	{ "{}{}", "byte 2: the JSON text goes on behind its end" },
	{ "{,}", "has a member without a name in quotes" },
	{ "{\"a\":1,}", "has a comma behind its last item" },
	{ "{\"a\":1 \"b\":2}", "lacks a comma between two items" },
	{ "{\"a\"}", "has a member without a colon behind its name" },
	{ "{a:1}", "has a member without a name in quotes" },
	{ "{'a':1}", "has a member without a name in quotes" },
	{ "{\"a\":}", "is not a number" },
	{ "{\"a\":", "ends where a value should be" },
	{ "{\"a\":tru}", "is neither true nor false" },
	{ "{\"a\":nul}", "is no JSON value" },
	{ "{\"a\":01}", "is not a number" },
	{ "{\"a\":1.}", "is not a number" },
	{ "{\"a\":.5}", "is not a number" },
	{ "{\"a\":1e}", "is not a number" },
	{ "{\"a\":-}", "is not a number" },
	{ "{\"a\":+1}", "is not a number" },
	{ "{\"a\":NaN}", "is not a number" },
	{ "{\"a\":[1 2]}", "lacks a comma" },
	{ "{\"a\":[1,]}", "has a comma behind its last item" },
	{ "{\"a\":[1}", "lacks a comma" },
	{ "{\"a\":\"x}", "has a string that is not closed" },
	{ "{\"a\":\"x\\\"}", "has a string that is not closed" },
	{ "{\"a\":\"\\x\"}", "has an escape within a string that is none" },
	{ "{\"a\":\"\\u12g4\"}", "has an escape within a string that is none" },
	{ "{\"a\":\"\\u12", "has an escape within a string that is none" },
	{ "{\"a\":\"a\nb\"}", "has a control byte within a string" },
	{ "{\"a\":\"0123456789abcdef\tb\"}", "has a control byte within a string" },
	{ "\xef\xbb\xbf{}", "byte 0: the JSON text is not an object" },
	/* kinds */
	{ "{\"resourceProfiles\":{}}", "byte 20: resourceProfiles is not an array" },
	{ "{\"resourceProfiles\":[1]}", "byte 21: resourceProfiles[0] is not an object" },
	{ "{\"resourceProfiles\":[{},null]}", "resourceProfiles[1] is not an object" },
	{ "{\"dictionary\":[]}", "dictionary is not an object" },
	{ SAMPLE("\"stackIndex\":true"), AT_SAMPLE ".stackIndex is not a number" },
	{ SAMPLE("\"stackIndex\":\"\""), AT_SAMPLE ".stackIndex is not a number" },
	{ SAMPLE("\"stackIndex\":\"0x1\""), AT_SAMPLE ".stackIndex is not a number" },
	{ SAMPLE("\"stackIndex\":\" 1\""), AT_SAMPLE ".stackIndex is not a number" },
	{ SAMPLE("\"stackIndex\":\"1 \""), AT_SAMPLE ".stackIndex is not a number" },
	{ SAMPLE("\"stackIndex\":\"1.5 \""), AT_SAMPLE ".stackIndex is not a number" },
	{ SAMPLE("\"stackIndex\":1.5"), AT_SAMPLE ".stackIndex is not a whole number" },
	{ SAMPLE("\"stackIndex\":-1"), AT_SAMPLE ".stackIndex is out of range" },
	{ SAMPLE("\"stackIndex\":2147483648"), AT_SAMPLE ".stackIndex is out of range" },
	{ SAMPLE("\"stackIndex\":1e10"), AT_SAMPLE ".stackIndex is out of range" },
	{ SAMPLE("\"values\":[1,\"x\"]"), AT_SAMPLE ".values[1] is not a number" },
	{ SAMPLE("\"values\":1"), AT_SAMPLE ".values is not an array" },
	{ SAMPLE("\"values\":[9223372036854775808]"), AT_SAMPLE ".values[0] is out of range" },
	{ SAMPLE("\"values\":[\"-9223372036854775809\"]"), AT_SAMPLE ".values[0] is out of range" },
	{ SAMPLE("\"values\":[null]"), AT_SAMPLE ".values[0] is not a number" },
	{ SAMPLE("\"timestampsUnixNano\":[0,-1]"), AT_SAMPLE ".timestampsUnixNano[1] is out of range" },
	{ SAMPLE("\"timestampsUnixNano\":[18446744073709551616]"), AT_SAMPLE ".timestampsUnixNano[0] is out of range" },
	{ SAMPLE("\"timestampsUnixNano\":[1e400]"), AT_SAMPLE ".timestampsUnixNano[0] is out of range" },
	{ PROFILE("\"droppedAttributesCount\":4294967296"), "profiles[0].droppedAttributesCount is out of range" },
	{ PROFILE("\"durationNano\":-1"), "profiles[0].durationNano is out of range" },
	{ PROFILE("\"profileId\":\"xyz\\u0000\""), "profiles[0].profileId is neither hex nor base64" },
	{ PROFILE("\"profileId\":\"a\""), "profiles[0].profileId is neither hex nor base64" },
	{ PROFILE("\"profileId\":\"0123456789abcdef\""), "profiles[0].profileId has not 16 bytes" },
	{ PROFILE("\"profileId\":\"AAAA\""), "profiles[0].profileId has not 16 bytes" },
	{ "{\"dictionary\":{\"linkTable\":[{\"spanId\":\"00\"}]}}", "dictionary.linkTable[0].spanId has not 8 bytes" },
	{ PROFILE("\"originalPayload\":\"a\""), "profiles[0].originalPayload is not base64" },
	{ PROFILE("\"originalPayload\":\"ab=\""), "profiles[0].originalPayload is not base64" },
	{ PROFILE("\"originalPayload\":\"a===\""), "profiles[0].originalPayload is not base64" },
	{ PROFILE("\"originalPayload\":\"a=bc\""), "profiles[0].originalPayload is not base64" },
	{ PROFILE("\"originalPayload\":7"), "profiles[0].originalPayload is not a string" },
	{ VALUE("\"x\""), AT_VALUE " is not an object" },
	{ VALUE("{\"boolValue\":1}"), AT_VALUE ".boolValue is neither true nor false" },
	{ VALUE("{\"doubleValue\":\"nan\"}"), AT_VALUE ".doubleValue is not a number" },
	{ VALUE("{\"doubleValue\":1e999}"), AT_VALUE ".doubleValue is out of range" },
	{ VALUE("{\"doubleValue\":\"\"}"), AT_VALUE ".doubleValue is not a number" },
	{ VALUE("{\"intValue\":1,\"boolValue\":true}"), AT_VALUE ".boolValue is one value more where only one may be" },
	{ VALUE("{\"intValue\":1,\"int_value\":1}"), AT_VALUE ".intValue is there twice" },
	{ VALUE("{\"arrayValue\":[]}"), AT_VALUE ".arrayValue is not an object" },
	{ VALUE("{\"arrayValue\":{\"values\":[{},{\"kvlistValue\":{\"values\":[{\"value\":{\"intValue\":{}}}]}}]}}"),
	  AT_VALUE ".arrayValue.values[1].kvlistValue.values[0].value.intValue is not a number" },
	{ "{\"dictionary\":{},\"dictionary\":{}}", "dictionary is there twice" },
	/* strings */
	{ DICT("\"stringTable\":[\"\",\"\xff\"]"), "dictionary.stringTable[1] is not UTF-8" },
	{ DICT("\"stringTable\":[\"\",\"\\n\xed\xa0\x80\"]"), "dictionary.stringTable[1] is not UTF-8" },
	{ DICT("\"stringTable\":[\"\",1]"), "dictionary.stringTable[1] is not a string" },
	{ DICT("\"stringTable\":[\"\",null]"), "dictionary.stringTable[1] is not a string" },
	/* what fields mean together */
	{ "{\"resourceProfiles\":[{\"resource\":{\"attributes\":[{\"key\":\"k\",\"keyStrindex\":1}]}}]}",
	  "resourceProfiles[0].resource.attributes[0]: KeyValue has both key (\"k\") and key_strindex (1)" },
	/* indices */
	{ SAMPLE("\"stackIndex\":7"), AT_SAMPLE ".stackIndex is 7, but stackTable has 1 elements" },
	{ SAMPLE("\"attributeIndices\":[0,3]"), AT_SAMPLE ".attributeIndices[1] is 3, but attributeTable has 1 elements" },
	{ DICT("\"locationTable\":[{},{\"lines\":[{\"functionIndex\":4}]}]"),
	  "dictionary.locationTable[1].lines[0].functionIndex is 4, but functionTable has 1" },
	{ VALUE("{\"stringValueStrindex\":4}"), AT_VALUE ".stringValueStrindex is 4" },
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

static const struct profile *first_profile(const struct profiles *p)
{
	return &p->resources[0].scopes[0].profiles[0];
}

static void reads_every_way_of_writing(void **state)
{
	struct profiles *p = decoded(
		SAMPLE("\"values\":[1,\"-2\",3.0,\"4e2\",-0,9223372036854775807,\"-9223372036854775808\"],"
		       "\"timestamps_unix_nano\":[\"18446744073709551615\",1e3,0],\"stackIndex\":null,"
		       "\"attributeIndices\":null,\"linkIndex\":\"0\""));
	const struct sample *s = &first_profile(p)->samples[0];
	static const int64_t values[] = { 1, -2, 3, 400, 0, INT64_MAX, INT64_MIN };

	(void)state;
	assert_int_equal(s->value_count, ARRAY_LEN(values));
	assert_memory_equal(s->values, values, sizeof(values));
	assert_int_equal(s->timestamp_count, 3);
	assert_true(s->timestamps_unix_ns[0] == UINT64_MAX && s->timestamps_unix_ns[1] == 1000);
	assert_int_equal(p->sample_events, 3);
	profiles_put(p);

	/* 32 hex digits, as they are; else base64 of either alphabet, with or without padding */
	static const char *const ids[] = { "fbefbefbefbefbefbefbefbefbefbefb", "FBEFBEFBEFBEFBEFBEFBEFBEFBEFBEFB",
					   "++++++++++++++++++++++==", "+++++++++++++++++++++w==",
					   "---------------------w" };

	for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
		char text[256];

		snprintf(text, sizeof(text), PROFILE("\"profileId\":\"%s\",\"originalPayload\":\"--__\""), ids[i]);
		p = decoded(text);
		assert_int_equal(first_profile(p)->profile_id.len, 16);
		assert_memory_equal(first_profile(p)->profile_id.data,
				    "\xfb\xef\xbe\xfb\xef\xbe\xfb\xef\xbe\xfb\xef\xbe\xfb\xef\xbe\xfb", 16);
		assert_int_equal(first_profile(p)->original_payload.len, 3);
		profiles_put(p);
	}
}

static const struct any_value *value_of(struct profiles *p)
{
	return &p->resources[0].resource.attributes.items[0].value;
}

static void reads_every_kind_of_value(void **state)
{
	static const struct {
		const char *text;
		enum value_kind kind;
		int64_t integer; /* or a length or count */
	} cases[] = {
		{ "null", VALUE_NONE, 0 },
		{ "{}", VALUE_NONE, 0 },
		{ "{\"stringValue\":null}", VALUE_NONE, 0 },
		{ "{\"stringValue\":\"\"}", VALUE_STRING, 0 },
		{ "{\"stringValue\":\"\\u00e9\\ud83d\\ude00\\/\\ud83d\"}", VALUE_STRING, 10 },
		{ "{\"string_value\":\"a\\u0000b\"}", VALUE_STRING, 3 },
		{ "{\"boolValue\":false}", VALUE_BOOL, 0 },
		{ "{\"intValue\":\"-7\"}", VALUE_INT, -7 },
		{ "{\"intValue\":0}", VALUE_INT, 0 },
		{ "{\"bytesValue\":\"\"}", VALUE_BYTES, 0 },
		{ "{\"bytesValue\":\"AAEC\"}", VALUE_BYTES, 3 },
		{ "{\"arrayValue\":{}}", VALUE_ARRAY, 0 },
		{ "{\"arrayValue\":{\"values\":[{},{\"intValue\":1}]}}", VALUE_ARRAY, 2 },
		{ "{\"kvlistValue\":{\"values\":[{\"key\":\"a\"}]}}", VALUE_KVLIST, 1 },
		{ "{\"stringValueStrindex\":0}", VALUE_STRINDEX, 0 },
		{ "{\"otherValue\":[[[]]],\"intValue\":3}", VALUE_INT, 3 },
	};
	static const struct {
		const char *text;
		double value;
	} reals[] = {
		{ "1.5", 1.5 }, { "\"1e-3\"", 1e-3 }, { "\"Infinity\"", INFINITY }, { "\"-Infinity\"", -INFINITY },
		{ "7", 7 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char text[256];
		struct profiles *p;

		snprintf(text, sizeof(text), VALUE("%s"), cases[i].text);
		p = decoded(text);
		assert_int_equal(value_of(p)->kind, cases[i].kind);
		switch (cases[i].kind) {
		case VALUE_STRING:
		case VALUE_BYTES:
			assert_int_equal(value_of(p)->string.len, cases[i].integer);
			assert_non_null(value_of(p)->string.data);
			break;
		case VALUE_ARRAY:
		case VALUE_KVLIST:
			assert_int_equal(value_of(p)->array.count, cases[i].integer);
			break;
		case VALUE_INT:
			assert_int_equal(value_of(p)->integer, cases[i].integer);
			break;
		default:
			break;
		}
		profiles_put(p);
	}
	for (size_t i = 0; i < ARRAY_LEN(reals); i++) {
		char text[256];
		struct profiles *p;

		snprintf(text, sizeof(text), VALUE("{\"doubleValue\":%s}"), reals[i].text);
		p = decoded(text);
		assert_true(value_of(p)->real == reals[i].value);
		profiles_put(p);
	}
}

/* What has one form only is written just so. */
static void writes_every_kind_of_value(void **state)
{
	static const char *const cases[] = {
		VALUE("{\"stringValue\":\"\"}"),
		VALUE("{\"stringValue\":\"\\u0000\\u001f\\b\\f\\n\\r\\t\\\"\\\\/<>&\x7f \u00e9\u20ac\U0001f525\"}"),
		VALUE("{\"stringValue\":\"a word or two, then \\n, then more than a word\"}"),
		VALUE("{\"boolValue\":false}"),
		VALUE("{\"boolValue\":true}"),
		VALUE("{\"intValue\":\"0\"}"),
		VALUE("{\"intValue\":\"-9223372036854775808\"}"),
		VALUE("{\"intValue\":\"9223372036854775807\"}"),
		VALUE("{\"doubleValue\":0}"),
		VALUE("{\"doubleValue\":-0}"),
		VALUE("{\"doubleValue\":0.1}"),
		VALUE("{\"doubleValue\":5e-324}"),
		VALUE("{\"doubleValue\":1.7976931348623157e+308}"),
		VALUE("{\"doubleValue\":\"NaN\"}"),
		VALUE("{\"doubleValue\":\"Infinity\"}"),
		VALUE("{\"doubleValue\":\"-Infinity\"}"),
		VALUE("{\"bytesValue\":\"\"}"),
		VALUE("{\"bytesValue\":\"+w==\"}"),
		VALUE("{\"bytesValue\":\"++8=\"}"),
		VALUE("{\"bytesValue\":\"++++AAEC\"}"),
		VALUE("{\"arrayValue\":{}}"),
		VALUE("{\"arrayValue\":{\"values\":[{},{\"intValue\":\"1\"},{\"arrayValue\":{}}]}}"),
		VALUE("{\"kvlistValue\":{\"values\":[{\"key\":\"a\"},{\"key\":\"b\",\"value\":{\"intValue\":\"-1\"}}]}}"),
		"{\"resourceProfiles\":[{},{\"resource\":{}}]}",
		PROFILE("\"sampleType\":{},\"timeUnixNano\":\"18446744073709551615\",\"durationNano\":\"1\",\"periodType\":{"
			"},"
			"\"period\":\"-9223372036854775808\",\"profileId\":\"00ff10ef0123456789abcdeffedcba98\","
			"\"droppedAttributesCount\":4294967295"),
		PROFILE("\"sampleType\":{},\"samples\":[{\"values\":[\"-9223372036854775808\",\"0\",\"9223372036854775807\"]"
			","
			"\"timestampsUnixNano\":[\"0\",\"99\",\"18446744073709551615\"]}],\"periodType\":{}"),
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(buf_fini) struct buf json = BUF_EMPTY;
		struct profiles *p = decoded(cases[i]);
		size_t len = strlen(cases[i]) - 1;

		assert_int_equal(otlp_json_encode(p, &json), 0);
		assert_true(json.len > len + 15);
		assert_memory_equal(json.data, cases[i], len);
		assert_memory_equal(json.data + len, ",\"dictionary\":{", 15); /* made up with its first elements */
		profiles_put(p);
	}
}

/* AnyValue within @levels lists; or, when @unknown, in a member that is passed over. */
static int decode_nested(unsigned levels, bool unknown, struct otlp_error *err)
{
	AUTO(buf_fini) struct buf b = BUF_EMPTY;
	struct profiles *p = NULL;
	int r;

	buf_puts(&b, "{\"resourceProfiles\":[{\"resource\":{\"attributes\":[{\"key\":\"k\",\"value\":");
	if (unknown)
		buf_puts(&b, "{\"unknown\":");
	for (unsigned i = 1; i < levels; i++)
		buf_puts(&b, unknown ? "[" : "{\"arrayValue\":{\"values\":[");
	buf_puts(&b, "{}");
	for (unsigned i = 1; i < levels; i++)
		buf_puts(&b, unknown ? "]" : "]}}");
	buf_puts(&b, unknown ? "}}]}}]}" : "}]}}]}");
	r = decode_at_edge(b.data, b.len, &p, err);
	profiles_put(p);
	return r;
}

static void bounds_nesting(void **state)
{
	struct otlp_error err;

	(void)state;
	assert_int_equal(decode_nested(32, false, &err), 0);
	assert_int_equal(decode_nested(33, false, &err), -EBADMSG);
	assert_non_null(strstr(err.message, "is nested too deep"));
	assert_int_equal(decode_nested(128, true, &err), 0);
	assert_int_equal(decode_nested(129, true, &err), -EBADMSG);
	assert_int_equal(decode_nested(1000000, true, &err), -EBADMSG);
	assert_int_equal(decode_nested(1000000, false, &err), -EBADMSG);
}

static void survives_cuts_and_flips(void **state)
{
	AUTO(buf_fini) struct buf whole = BUF_EMPTY;
	struct otlp_error err;
	struct profiles *p;
	unsigned good = 0, bad = 0;

	(void)state;
	for (int i = 0; i < MESSAGES && (whole.len == 0 || whole.len > 20000); i++) {
		buf_fini(&whole);
		whole = truth_read("%d.%s", i, "camel");
	}
	if (whole.len > 20000)
		whole.len = 20000;
	for (size_t len = 0; len < whole.len; len += 1 + len / 200) {
		assert_int_equal(decode_at_edge(whole.data, len, &p, &err), -EBADMSG);
		assert_true(err.message[0]);
	}
	for (size_t i = 0; i < whole.len; i += 1 + whole.len / 1000) {
		for (unsigned bit = 0; bit < 8; bit++) {
			int r;

			p = NULL;
			whole.data[i] ^= (uint8_t)(1u << bit);
			r = decode_at_edge(whole.data, whole.len, &p, &err);
			whole.data[i] ^= (uint8_t)(1u << bit);
			assert_true(r == 0 || (r == -EBADMSG && err.message[0]));
			good += r == 0;
			bad += r != 0;
			profiles_put(p);
		}
	}
	assert_true(bad > 100);
	(void)good;
}

/* Empty messages take the most memory of all bytes. */
static void memory_is_bounded(void **state)
{
	static const struct {
		const char *before, *item, *after;
	} cases[] = {
		{ "{\"resourceProfiles\":[", "{}", "]}" },
		{ "{\"resourceProfiles\":[{\"scopeProfiles\":[{\"profiles\":[", "{}", "]}]}]}" },
		{ "{\"dictionary\":{\"locationTable\":[", "{}", "]}}" },
		{ "{\"dictionary\":{\"stringTable\":[", "\"\"", "]}}" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(buf_fini) struct buf b = BUF_EMPTY;
		struct profiles *p = NULL;
		struct otlp_error err;

		buf_puts(&b, cases[i].before);
		for (int n = 0; n < 20000; n++)
			buf_printf(&b, "%s%s", n ? "," : "", cases[i].item);
		buf_puts(&b, cases[i].after);
		assert_int_equal(decode_at_edge(b.data, b.len, &p, &err), 0);
		assert_true(profiles_memory_bytes(p) < 200 * b.len);
		profiles_put(p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_what_protobuf_writes),
		cmocka_unit_test(reads_what_it_writes),
		cmocka_unit_test(refuses_malformed),
		cmocka_unit_test(reads_every_way_of_writing),
		cmocka_unit_test(reads_every_kind_of_value),
		cmocka_unit_test(writes_every_kind_of_value),
		cmocka_unit_test(bounds_nesting),
		cmocka_unit_test(survives_cuts_and_flips),
		cmocka_unit_test(memory_is_bounded),
	};

	return cmocka_run_group_tests(tests, make_messages, truth_remove);
}
