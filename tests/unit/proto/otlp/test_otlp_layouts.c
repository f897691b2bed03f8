/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Older releases' layouts: what each message means in that of 1.10, which evidence decides, and what is refused by name. The
 * expected messages are written out by hand in 1.10's numbers.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "tests/unit/proto/otlp_bytes.h"
#include "proto/otlp/otlp.h"
#include "proto/otlp/json/json_decode.h"

#define PROFILE(inner)	"1{2{2{" inner "}}}"
#define PROFILES(inner) "1{2{" inner "}}"
#define DICT(inner)	"2{" inner "}"
#define ID		"'0123456789abcdef'"
#define LINK		"4{1" ID " 2'01234567'}"

static const struct otlp_decode_options guess = { 0 }, no_guess = { .no_guess = true };

static int decode(const char *text, const struct otlp_decode_options *options, struct profiles **ret, struct otlp_error *err)
{
	struct buf b = BUF_EMPTY;
	uint8_t *exact;
	int r;

	bytes_fields(text, &b);
	exact = malloc(b.len + 1); /* so that a sanitizer sees its end */
	memcpy(exact, b.data, b.len);
	r = otlp_decode_with(exact, b.len, false, options, ret, err);
	free(exact);
	buf_fini(&b);
	return r;
}

static void assert_means(const char *text, struct profiles *p, const char *want)
{
	struct buf got = BUF_EMPTY, expected = BUF_EMPTY;
	struct otlp_error err;
	struct profiles *again;

	bytes_fields(want, &expected);
	assert_int_equal(otlp_encode(p, NULL, &got), 0);
	if (got.len != expected.len || memcmp(got.data, expected.data, got.len)) {
		for (size_t i = 0; i < got.len; i++)
			fprintf(stderr, "%02x%s", got.data[i],
				i < expected.len && got.data[i] == expected.data[i] ? " " : "! ");
		fail_msg("%s does not mean %s", text, want);
	}
	assert_int_equal(otlp_decode_with(got.data, got.len, false, &no_guess, &again, &err), 0);
	assert_int_equal(again->sample_events, p->sample_events);
	profiles_put(again);
	buf_fini(&got);
	buf_fini(&expected);
}

#define TABLES "1{} 2{} 3{}"

static const struct {
	const char *older, *current;
} meanings[] = {
	/* 1.9: samples have other numbers */
	{ PROFILE("1{1:1 2:2} 2{1:1 2[5 6] 3[1] 4:1 5'0123456789abcdef'} 3=5 4:6 5{1:1} 6:7 7" ID " 8:3 9'f' 10'p' 11[1]")
		  DICT("4{} " LINK " 5'' 5'a' 5'b' 6{} 6{1:1} 7{} 7{}"),
	  PROFILE("1{1:1 2:2} 2{1:1 2[1] 3:1 4[5 6] 5'0123456789abcdef'} 3=5 4:6 5{1:1} 6:7 7" ID " 8:3 9'f' 10'p' 11[1]")
		  DICT(TABLES "4{} " LINK " 5'' 5'a' 5'b' 6{} 6{1:1} 7{} 7{}") },
	/* values in all samples, attributes in none: those would lie outside the table, be there twice, or stand alone */
	{ PROFILE("2{2[70000] 5'01234567'}") DICT("6{} 6{}"),
	  PROFILE("1{} 2{4[70000] 5'01234567'} 5{}") DICT(TABLES "4{} 5'' 6{} 6{} 7{}") },
	{ PROFILE("2{2[1 1] 5'0123456789abcdef'}") DICT("6{} 6{}"),
	  PROFILE("1{} 2{4[1 1] 5'0123456789abcdef'} 5{}") DICT(TABLES "4{} 5'' 6{} 6{} 7{}") },
	{ PROFILE("2{2[1]} 2{2[1]}") DICT("6{} 6{}"),
	  PROFILE("1{} 2{4[1]} 2{4[1]} 5{}") DICT(TABLES "4{} 5'' 6{} 6{} 7{}") },
	{ PROFILE("2{2[1] 4:1 5'01234567'}") DICT("4{} 4{} 6{} 6{}"),
	  PROFILE("1{} 2{3:1 4[1] 5'01234567'} 5{}") DICT(TABLES "4{} 4{} 5'' 6{} 6{} 7{}") },
	/* 1.8: profiles too; comments become an attribute, which may need its tables first */
	{ PROFILE("2{1:1 2[5] 3[1]} 3=5 8" ID " 9:4 10'f' 11'p' 12[1]") DICT("6{} 6{} 7{} 7{}"),
	  PROFILE("1{} 2{1:1 2[1] 4[5]} 3=5 5{} 7" ID " 8:4 9'f' 10'p' 11[1]") DICT(TABLES "4{} 5'' 6{} 6{} 7{} 7{}") },
	{ PROFILE("2{2[5] 3[1]} 7[1 2] 8" ID " 12[1]") DICT("5'' 5'one' 5'two' 6{} 6{1:1} 7{}"),
	  PROFILE("1{} 2{2[1] 4[5]} 5{} 7" ID " 11[1 2]")
		  DICT(TABLES "4{} 5'' 5'one' 5'two' 5'pprof.profile.comment' 6{} 6{1:1} 6{1:3 2{5{1{8:1} 1{8:2}}}} 7{}") },
	{ PROFILE("7[0] 8" ID),
	  PROFILE("1{} 5{} 7" ID " 11[1]") DICT(TABLES "4{} 5'' 5'pprof.profile.comment' 6{} 6{1:1 2{5{1{8:0}}}} 7{}") },
	{ PROFILE("1{1:1 3:1} 2{1:1 2[1]}") DICT("5'' 5'a' 6{} 6{} 7{} 7{}"),
	  PROFILE("1{1:1} 2{1:1 4[1]} 5{}") DICT(TABLES "4{} 5'' 5'a' 6{} 6{} 7{} 7{}") },
	/* 1.7: stacks are ranges, equal ones are one; nothing has a "none" element */
	{ PROFILE("1{1:1 2:2 3:1} 2{1:0 2:2 3[7] 4[0] 5:0} 2{1:1 2:2 3[8]} 2{1:2 2:2 3[9]} 3[0 1 0 1] 4:5 5:6 6{1:1} 7:9 "
		  "10" ID " 11:3 12'f' 13'p' 14[0]")
		  DICT("1{1:4096 2:8192 4:1 5[0] 6:1 8:1} 2{1:0 2:5 3{1:0 2:7} 5[0]} 2{2:6 4:1} 3{1:2} " LINK
		       " 5'' 5'a' 5'count' 5'unit' 6{1'key' 2{3:1}}"),
	  PROFILE("1{1:1 2:2} 2{1:1 2[1] 3:1 4[7]} 2{1:2 4[8]} 2{1:1 4[9]} 3=5 4:6 5{1:1} 6:9 7" ID " 8:3 9'f' 10'p' 11[1]")
		  DICT("1{} 1{1:4096 2:8192 4:1 5[1 2 3]} 2{} 2{3{2:7 1:1} 4[1] 1:1 2:5} 2{4[4] 2:6} 3{} 3{1:2} 4{} " LINK
		       " 5'' 5'a' 5'count' 5'unit' 5'key' 5'pprof.mapping.has_functions' 5'pprof.mapping.has_line_numbers'"
		       " 5'pprof.location.is_folded' 6{} 6{1:4 2{3:1}} 6{1:5 2{2:1}} 6{1:6 2{2:1}} 6{1:7 2{2:1}} 7{} 7{1[1 "
		       "2]}"
		       " 7{1[2 1]}") },
	/* units by key; keys that stand twice share a string */
	{ PROFILE("3[0] 5:1 14[0 1 2]")
		  DICT("2{} 5'' 5'k' 5'ms' 6{1'k' 2{3:1}} 6{1'k' 2{3:2}} 6{1'l' 2{3:3}} 7{1:1 2:2} 7{1:2 2:1}"),
	  PROFILE("1{} 4:1 5{} 11[1 2 3]") DICT("1{} 2{} 2{} 3{} 4{} 5'' 5'k' 5'ms' 5'k' 5'l' 6{} 6{1:3 2{3:1} 3:2}"
						" 6{1:3 2{3:2} 3:2} 6{1:4 2{3:3}} 7{}") },
	/* several types become several profiles; a sample without values is the first one's */
	{ PROFILE("1{1:1} 1{2:1} 2{2:1 3[7 8]} 2{6[5 300]} 3[0] 5:1 8[1] 12'f' 13'p'") DICT("2{} 5'' 5'a'"),
	  PROFILES("2{1{1:1} 2{1:1 4[7]} 2{x2a x10 x05 x00 x00 x00 x00 x00 x00 x00 x2c x01 x00 x00 x00 x00 x00 x00} 4:1 5{}"
		   " 9'f' 10'p' 11[1]} 2{1{2:1} 2{1:1 4[8]} 4:1 5{} 11[2]}")
		  DICT("1{} 2{} 2{} 3{} 4{} 5'' 5'a' 5'pprof.profile.comment' 6{} 6{1:2 2{5{1{8:1}}}}"
		       " 6{1:2 2{5{1{8:1}}}} 7{} 7{1[1]}") },
	/* a count beside time stamps goes; other totals are shared out */
	{ PROFILE("1{1:1 2:1} 2{3[1] 6[5 6]} 3[0] 5:1") DICT("2{} 5'' 5'count'"),
	  PROFILE("1{1:1 2:1} 2{x2a x10 x05 x00 x00 x00 x00 x00 x00 x00 x06 x00 x00 x00 x00 x00 x00 x00} 4:1 5{}")
		  DICT("1{} 2{} 2{} 3{} 4{} 5'' 5'count' 6{} 7{}") },
	{ PROFILE("1{1:1 2:1} 2{3[-7] 6[5 6]} 3[0] 5:1") DICT("2{} 5'' 5'ns'"),
	  PROFILE("1{1:1 2:1} 2{4[-4 -3] x2a x10 x05 x00 x00 x00 x00 x00 x00 x00 x06 x00 x00 x00 x00 x00 x00 x00} 4:1 5{}")
		  DICT("1{} 2{} 2{} 3{} 4{} 5'' 5'ns' 6{} 7{}") },
	{ "1{}" DICT("6{1'key' 2{3:1}}"), "1{}" DICT("1{} 2{} 3{} 4{} 5'' 5'key' 6{} 6{1:1 2{3:1}} 7{}") },
	/* nothing to go by: 1.10 */
	{ PROFILE("2{1:0 2[1] 5'01234567'}") DICT("6{} 6{}"),
	  PROFILE("1{} 2{2[1] 5'01234567'} 5{}") DICT(TABLES "4{} 5'' 6{} 6{} 7{}") },
};

static void older_layouts_mean_the_same(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(meanings); i++) {
		struct profiles *p = NULL;
		struct otlp_error err;

		if (decode(meanings[i].older, &guess, &p, &err))
			fail_msg("%s: %s", meanings[i].older, err.message);
		assert_means(meanings[i].older, p, meanings[i].current);
		profiles_put(p);
	}
}

/* Temporality has no place on the wire of 1.10, but one in the model, for printing. */
static void temporality_is_kept(void **state)
{
	struct otlp_error err;
	struct profiles *p;

	(void)state;
	assert_int_equal(decode(PROFILE("1{1:1 3:1} 2{1:1 2[1]} 5{3:2}") DICT("5'' 5'a' 6{} 6{} 7{} 7{}"), &guess, &p, &err),
			 0);
	assert_int_equal(p->resources[0].scopes[0].profiles[0].sample_type.temporality, 1);
	assert_int_equal(p->resources[0].scopes[0].profiles[0].period_type.temporality, 2);
	profiles_put(p);
}

static void refuses(const char *text, const struct otlp_decode_options *options, const char *want)
{
	struct profiles *p = NULL;
	struct otlp_error err;
	int r = text[0] == '{' ? otlp_json_decode_with((const uint8_t *)text, strlen(text), options, &p, &err)
			       : decode(text, options, &p, &err);

	if (r != -EBADMSG || !strstr(err.message, want))
		fail_msg("%s: got \"%s\", not \"%s\"", text, p ? "(accepted)" : err.message, want);
}

static void refusals_name_the_release(void **state)
{
	static const struct {
		const char *text, *message;
	} cases[] = {
		{ PROFILE("3{1:4096} 3{} 10'' 10'main'"), "this is the OTLP 1.4 to 1.6 layout; hearth reads 1.7 and newer" },
		{ PROFILE("2{2:3 3[1]}") "2{1:4096 2:8192} 3{2:5} 5{1:1} 8'' 8'a'",
		  "this is the OTLP 1.6 layout; hearth reads 1.7 and newer" },
		{ PROFILE("2{1:1 2[5] 3[9]}") DICT("6{} 6{} 7{} 7{}"),
		  "this is the OTLP 1.9 layout: resource_profiles[0].scope_profiles[0].profiles[0].samples[0]."
		  "attribute_indices[0] is 9, but attribute_table has 2 elements" },
		{ PROFILE("2{1:1 2[5] 3[1]} 7[3] 8" ID) DICT("5'' 6{} 6{} 7{} 7{}"),
		  "this is the OTLP 1.8 layout: dictionary.attribute_table[2].value.array_value.values[0]."
		  "string_value_strindex is 3" },
		{ PROFILE("2{1:1 2:2} 3[0 0] 5:1") DICT("2{}"),
		  "1.7 layout: Sample has locations 1 to 3, but its profile has 2" },
		{ PROFILE("2{1:4294967295 2:4294967295} 3[0 0] 5:1") DICT("2{}"),
		  "1.7 layout: Sample has locations 4294967295 to 8589934590" },
		{ PROFILE("2{2:1} 3[1] 5:1") DICT("2{}"),
		  "1.7 layout: dictionary.stack_table[1].location_indices[0] is 2, but location_table has 2 elements" },
		{ PROFILE("2{2:1} 3[2147483647] 5:1") DICT("2{}"), "stack_table[1].location_indices[0] is -2147483648" },
		{ PROFILE("1{} 1{} 2{3[1 2 3]} 3[0] 5:1") DICT("2{}"),
		  "Sample has 3 values, but its profile has 2 sample types" },
		{ PROFILE("2{3[-1]} 3[0] 5:1 14[1]") DICT("2{} 6{}"), "profiles[0].attribute_indices[0] is 2" },
		{ PROFILE("2{5:1} 3[0] 5:1") DICT("2{}" LINK), "samples[0].link_index is 2, but link_table has 2 elements" },
		{ PROFILE("3[0] 5:1") DICT("2{1:0}"), "location_table[1].mapping_index is 1, but mapping_table has 1" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		refuses(cases[i].text, &guess, cases[i].message);
}

/* When the sender says that it is 1.10's layout, it is held to that. */
static void nothing_is_guessed_when_told(void **state)
{
	struct otlp_error err;
	struct profiles *p;

	(void)state;
	refuses(meanings[0].older, &no_guess, "Sample.link_index has wire type length-delimited, not varint");
	refuses(meanings[1].older, &no_guess, "attribute_indices[0] is 70000");
	refuses(PROFILE("3{1:4096} 3{} 10'' 10'main'"), &no_guess, "Profile.time_unix_nano has wire type");
	assert_int_equal(decode(PROFILE("2{2[1]} 2{2[1]}") DICT("6{} 6{}"), &no_guess, &p, &err), 0);
	assert_int_equal(p->resources[0].scopes[0].profiles[0].samples[0].attributes.count, 1);
	profiles_put(p);
	refuses("{\"resourceProfiles\":[{\"scopeProfiles\":[{\"profiles\":[{\"sampleType\":[]}]}]}]}", &no_guess,
		"sampleType is not an object");
}

/* Ranges may overlap, so that few bytes could mean many locations; many types, many profiles. */
static void overlaps_are_bounded(void **state)
{
	struct buf text = BUF_EMPTY;

	(void)state;
	buf_puts(&text, "1{2{2{5:1 3[");
	for (int i = 0; i < 20000; i++)
		buf_puts(&text, "0 ");
	buf_puts(&text, "]");
	for (int i = 0; i < 2000; i++)
		buf_printf(&text, " 2{2:%d}", 18000 + i);
	buf_puts(&text, "}}} 2{2{}}");
	refuses(buf_text(&text), &guess, "samples whose lists of locations overlap beyond measure");
	buf_reset(&text);
	buf_puts(&text, "1{2{2{5:1 3[0]");
	for (int i = 0; i < 65; i++)
		buf_puts(&text, " 1{}");
	buf_puts(&text, "}}} 2{2{}}");
	refuses(buf_text(&text), &guess, "Profile has 65 sample types, more than 64");
	buf_fini(&text);
}

/* --- JSON --- */
#define JSON_PROFILE(inner) "{\"resourceProfiles\":[{\"scopeProfiles\":[{\"profiles\":[{" inner "}]}]}]"

static const struct {
	const char *json, *current;
} json_meanings[] = {
	{ JSON_PROFILE("\"sample\":[{\"stackIndex\":1,\"values\":[\"5\"]}],\"commentStrindices\":[1],"
		       "\"sampleType\":{\"aggregationTemporality\":\"AGGREGATION_TEMPORALITY_DELTA\","
		       "\"typeStrindex\":1}") ",\"dictionary\":{\"stringTable\":[\"\",\"a\"],\"stackTable\":[{},{"
					      "\"locationIndices\":[0]}],"
					      "\"locationTable\":[{\"line\":[{\"line\":\"3\"}]}]}}",
	  PROFILE("1{1:1} 2{1:1 4[5]} 5{} 11[1]") DICT("1{} 2{3{2:3}} 3{} 4{} 5'' 5'a' 5'pprof.profile.comment' 6{}"
						       " 6{1:2 2{5{1{8:1}}}} 7{} 7{1[0]}") },
	{ JSON_PROFILE("\"sampleType\":[{\"typeStrindex\":1,\"aggregationTemporality\":2}],\"sample\":[{"
		       "\"locationsLength\":1,"
		       "\"value\":[7],\"linkIndex\":0,\"timestampsUnixNano\":[\"18446744073709551615\"]}],"
		       "\"locationIndices\":[0],\"timeNanos\":\"5\",\"durationNanos\":1") ",\"dictionary\":{"
											  "\"locationTable\":[{"
											  "\"mappingIndex\":0}],"
											  "\"mappingTable\":[{"
											  "\"hasFunctions\":true}],"
											  "\"linkTable\":[{}],"
											  "\"stringTable\":[\"\",\"a\"],"
											  "\"attributeTable\":[{\"key\":"
											  "\"k\",\"value\":{"
											  "\"boolValue\":true}}]}}",
	  PROFILE("1{1:1} 2{1:1 3:1 4[7] x2a x08 xff xff xff xff xff xff xff xff} 3=5 4:1 5{}")
		  DICT("1{} 1{5[2]} 2{} 2{1:1} 3{} 4{} 4{} 5'' 5'a' 5'k' 5'pprof.mapping.has_functions' 6{} 6{1:2 2{2:1}}"
		       " 6{1:3 2{2:1}} 7{} 7{1[1]}") },
};

static void older_json_means_the_same(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(json_meanings); i++) {
		const char *json = json_meanings[i].json;
		struct otlp_error err;
		struct profiles *p;

		if (otlp_json_decode((const uint8_t *)json, strlen(json), &p, &err))
			fail_msg("%s: %s", json, err.message);
		assert_means(json, p, json_meanings[i].current);
		profiles_put(p);
	}
	refuses(JSON_PROFILE("\"stringTable\":[\"\"]") "}", &guess, "this is the OTLP 1.4 to 1.6 layout");
	refuses("{\"resourceProfiles\":[],\"stringTable\":[\"\"]}", &guess, "this is the OTLP 1.6 layout");
	refuses(JSON_PROFILE("\"sampleType\":[{},7]") "}", &guess,
		"this is the OTLP 1.7 layout: byte 70: resourceProfiles[0].scopeProfiles[0].profiles[0].sampleType[1] is "
		"not an "
		"object");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(older_layouts_mean_the_same), cmocka_unit_test(temporality_is_kept),
		cmocka_unit_test(refusals_name_the_release),   cmocka_unit_test(nothing_is_guessed_when_told),
		cmocka_unit_test(overlaps_are_bounded),	       cmocka_unit_test(older_json_means_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
