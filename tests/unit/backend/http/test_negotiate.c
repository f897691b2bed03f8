/* SPDX-License-Identifier: Apache-2.0 */
/* Headers by which client and server agree: encodings, copies that are there already, content types; and browsers' origins.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/backend/http/made_request.h"

/* RFC 9110, 12.5.3. */
static void test_who_takes_gzip(void **state)
{
	static const struct {
		const char *value;
		bool takes;
	} cases[] = {
		{ NULL, false },
		{ "", false },
		{ "gzip", true },
		{ "GZip", true },
		{ "gzip;q=0", false },
		{ "gzip;q=0.000", false },
		{ "gzip;q=0.001", true },
		{ "gzip; Q=0", false },
		{ "gzip ; q=1", true },
		{ "deflate, gzip", true },
		{ "deflate,gzip;q=0,br", false },
		{ "deflate, br", false },
		{ "*", true },
		{ "*;q=0", false },
		{ "*;q=0, gzip", true },
		{ "*, gzip;q=0", false }, /* what is named counts */
		{ "gzip;q=0, *", false },
		{ "gzipped", false },
		{ "xgzip", false },
		{ "gzi", false },
		{ "gzip;level=9", true },
		{ "gzip;level=9;q=0", false },
		{ "br;q=0, gzip", true }, /* another's weight is another's */
		{ "gzip, br;q=0", true },
		{ "identity", false },
		{ " ,, gzip", true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct request r = made_request();

		made_header("Accept-Encoding", cases[i].value);
		if (request_takes_gzip(&r) != cases[i].takes)
			fail_msg("Accept-Encoding: %s", cases[i].value);
	}
}

/* RFC 9110, 13.1.2. */
static void test_who_has_a_copy(void **state)
{
	static const struct {
		const char *value;
		bool has;
	} cases[] = {
		{ NULL, false },
		{ "", false },
		{ "\"abc\"", true },
		{ "W/\"abc\"", true },
		{ "\"abd\"", false },
		{ "\"ab\"", false },
		{ "\"abcd\"", false },
		{ "*", true },
		{ "\"x\", \"abc\"", true },
		{ "\"x\",W/\"abc\"", true },
		{ "\"x\" , \"y\"", false },
		{ "abc", false },
		{ "W/", false },
		{ "**", false },
		{ "\"x\",\"y\",*", true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct request r = made_request();

		made_header("If-None-Match", cases[i].value);
		if (request_has_copy(&r, "\"abc\"") != cases[i].has)
			fail_msg("If-None-Match: %s", cases[i].value);
	}
}

static void test_content_encodings(void **state)
{
	static const struct {
		const char *value;
		enum ingest_encoding encoding;
	} cases[] = {
		{ NULL, ENCODING_IDENTITY },	   { "", ENCODING_IDENTITY }, { "identity", ENCODING_IDENTITY },
		{ "Identity", ENCODING_IDENTITY }, { "gzip", ENCODING_GZIP }, { "GZIP", ENCODING_GZIP },
		{ "zstd", ENCODING_ZSTD },	   { "ZSTD", ENCODING_ZSTD },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct request r = made_request();
		enum ingest_encoding encoding = 77;

		made_header("Content-Encoding", cases[i].value);
		assert_true(request_encoding(&r, &encoding));
		assert_int_equal(encoding, cases[i].encoding);
		assert_int_equal(r.reply.status, 0);
	}
}

/* The answer names the first 64 characters of an encoding that nobody speaks. */
static void test_other_encodings(void **state)
{
	static const char *const values[] = { "br", "gzip, gzip", "deflate", "zstd;q=1",
					      "0123456789012345678901234567890123456789012345678901234567890123456789" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(values); i++) {
		struct request r = made_request();
		enum ingest_encoding encoding;
		char text[160];

		r.ingest.format = FORMAT_JSON;
		made_header("Content-Encoding", values[i]);
		assert_false(request_encoding(&r, &encoding));
		assert_int_equal(r.reply.status, 400);
		snprintf(text, sizeof(text), "content encoding '%.64s' is not supported: send gzip, zstd or identity",
			 values[i]);
		assert_non_null(strstr(buf_text(&r.reply.body), text));
		buf_fini(&r.reply.body);
	}
}

/* The type is told as we name it, without what stands behind a semicolon. */
static void test_content_types(void **state)
{
	static const struct {
		const char *value, *type; /* NULL: not spoken */
		enum ingest_format format;
	} cases[] = {
		{ "application/x-protobuf", "application/x-protobuf", FORMAT_PROTOBUF },
		{ "Application/X-Protobuf;charset=x", "application/x-protobuf", FORMAT_PROTOBUF },
		{ "application/protobuf ", "application/protobuf", FORMAT_PROTOBUF },
		{ "application/json", "application/json", FORMAT_JSON },
		{ "application/JSON; charset=utf-8", "application/json", FORMAT_JSON },
		{ "application/jsonp", NULL, FORMAT_PROTOBUF },
		{ "application/jso", NULL, FORMAT_PROTOBUF },
		{ "text/plain", NULL, FORMAT_PROTOBUF },
		{ "", NULL, FORMAT_PROTOBUF },
		{ NULL, NULL, FORMAT_PROTOBUF },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct request r = made_request();

		made_header("Content-Type", cases[i].value);
		assert_int_equal(request_speaks(&r), cases[i].type != NULL);
		if (cases[i].type)
			assert_string_equal(r.content_type, cases[i].type);
		else
			assert_null(r.content_type);
		assert_int_equal(r.ingest.format, cases[i].format);
	}
}

/* --- pages of other origins --- */

static const struct route open_route = { .method = "POST", .path = "/v1/x", .has_cors = true },
			  closed_route = { .method = "POST", .path = "/v1/y" };
static const char *const two_origins[] = { "https://a.example", "https://b.example", NULL }, *const any_origin[] = { "*",
														     NULL };

/* The origin that the answer to a page of @origin names. */
static const char *origin_told(const struct route *route, const char *const *named, const char *origin)
{
	struct request r = made_request();

	r.route = route;
	made_server.cors_origins = named;
	made_header("Origin", origin);
	return cors_origin(&r);
}

static void test_which_origins(void **state)
{
	(void)state;
	assert_string_equal(origin_told(&open_route, two_origins, "https://a.example"), "https://a.example");
	assert_string_equal(origin_told(&open_route, two_origins, "https://b.example"), "https://b.example");
	assert_null(origin_told(&open_route, two_origins, "https://c.example"));
	assert_null(origin_told(&open_route, two_origins, "https://a.example:8080"));
	assert_null(origin_told(&open_route, two_origins, "http://a.example"));
	assert_null(origin_told(&open_route, two_origins, NULL));
	assert_string_equal(origin_told(&open_route, any_origin, "https://c.example"), "*");
	assert_null(origin_told(&open_route, any_origin, NULL));
	assert_null(origin_told(&open_route, NULL, "https://a.example"));
	assert_null(origin_told(&closed_route, any_origin, "https://a.example"));
	assert_null(origin_told(NULL, any_origin, "https://a.example"));
}

/* A preflight is OPTIONS with both headers, of an origin that was named. */
static void test_preflights(void **state)
{
	struct request r = made_request();

	(void)state;
	r.route = &open_route;
	made_server.cors_origins = two_origins;
	made_header("Origin", "https://a.example");
	assert_false(cors_is_preflight(&r, "OPTIONS"));
	made_headers[1] = (struct made_header){ "Access-Control-Request-Method", "POST" };
	assert_true(cors_is_preflight(&r, "OPTIONS"));
	assert_false(cors_is_preflight(&r, "POST"));
	assert_false(cors_is_preflight(&r, "options"));
	made_headers[0].value = "https://c.example";
	assert_false(cors_is_preflight(&r, "OPTIONS"));
}

/* The headers of an answer with @status to a page of @origin; @room for so many. */
static bool answers_with(const char *origin, unsigned status, unsigned room, const char *expected)
{
	struct request r = made_request();
	bool ret;

	r.route = &open_route;
	r.reply.status = status;
	made_server.cors_origins = two_origins;
	made_header("Origin", origin);
	buf_reset(&made_answer);
	made_room = room;
	ret = cors_add_headers(&r, NULL);
	assert_string_equal(buf_text(&made_answer), expected);
	return ret;
}

#define NAMED	  "Access-Control-Allow-Origin: https://b.example\n"
#define NAMED_ALL NAMED "Vary: Origin\n"
#define METHODS	  "Access-Control-Allow-Methods: POST\n"
#define HEADERS \
	"Access-Control-Allow-Headers: content-type, content-encoding, authorization, otlp-profiles-development-version\n"

static void test_headers_of_answers(void **state)
{
	(void)state;
	assert_true(answers_with("https://b.example", 200, 8, NAMED_ALL));
	assert_true(answers_with("https://b.example", 400, 8, NAMED_ALL));
	assert_true(answers_with("https://b.example", 204, 8, NAMED_ALL METHODS HEADERS "Access-Control-Max-Age: 7200\n"));
	assert_true(answers_with("https://c.example", 204, 8, ""));
	assert_true(answers_with(NULL, 200, 8, ""));
	buf_fini(&made_answer);
}

/* An answer without one of its headers is told to be none. */
static void test_no_memory_for_headers(void **state)
{
	(void)state;
	assert_false(answers_with("https://b.example", 200, 0, ""));
	assert_false(answers_with("https://b.example", 200, 1, NAMED));
	assert_true(answers_with("https://b.example", 200, 2, NAMED_ALL));
	assert_false(answers_with("https://b.example", 204, 2, NAMED_ALL));
	assert_false(answers_with("https://b.example", 204, 3, NAMED_ALL METHODS));
	assert_false(answers_with("https://b.example", 204, 4, NAMED_ALL METHODS HEADERS));
	buf_fini(&made_answer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_who_takes_gzip),
		cmocka_unit_test(test_who_has_a_copy),
		cmocka_unit_test(test_content_encodings),
		cmocka_unit_test(test_other_encodings),
		cmocka_unit_test(test_content_types),
		cmocka_unit_test(test_which_origins),
		cmocka_unit_test(test_preflights),
		cmocka_unit_test(test_headers_of_answers),
		cmocka_unit_test(test_no_memory_for_headers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
