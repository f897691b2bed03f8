/* SPDX-License-Identifier: Apache-2.0 */
/* Values of gRPC's headers: expected ones by hand after "gRPC over HTTP2" and RFC 4648. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "backend/grpc/grpc_text.h"
#include "base/buf.h"
#include "base/cleanup.h"

static void test_timeout(void **state)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} good[] = {
		{ "1n", 1 },
		{ "7u", 7000 },
		{ "10000m", 10000000000 },
		{ "0S", 0 },
		{ "5S", 5000000000 },
		{ "2M", 120000000000 },
		{ "1H", 3600000000000 },
		{ "99999999n", 99999999 },
		{ "99999999H", UINT64_MAX },
	};
	static const char *const bad[] = { "",	  "S",	 "5",	 "5s",	 "5 S",	       " 5S", "-5S", "+5S",
					   "5S ", "5SS", "1.5S", "0x5S", "100000000n", "5h",  "S5",  "\xff\xff" };
	(void)state;

	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		uint64_t ns = 42;

		assert_int_equal(grpc_parse_timeout(good[i].text, strlen(good[i].text), &ns), 0);
		assert_int_equal(ns, good[i].ns);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		uint64_t ns = 42;

		assert_int_equal(grpc_parse_timeout(bad[i], strlen(bad[i]), &ns), -EINVAL);
		assert_int_equal(ns, 42);
	}
}

static void test_content_type(void **state)
{
	static const char *const good[] = { "application/grpc", "application/grpc+proto", "Application/GRPC",
					    "application/grpc; charset=utf-8", "application/grpc+proto ;a=b" };
	static const char *const bad[] = { "",
					   "application/grp",
					   "application/grpc+json",
					   "application/grpc-web",
					   "application/grpcproto",
					   "application/x-protobuf",
					   "text/plain; application/grpc" };
	(void)state;

	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		assert_true(grpc_is_content_type(good[i], strlen(good[i])));
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_false(grpc_is_content_type(bad[i], strlen(bad[i])));
}

static void test_message(void **state)
{
	AUTO(buf_fini) struct buf out = BUF_EMPTY;
	(void)state;

	grpc_append_message("100 % of\n\xc3\xa9 ~\x7f", &out);
	assert_string_equal(buf_text(&out), "100 %25 of%0A%C3%A9 ~%7F");
}

static void test_base64(void **state)
{
	static const char *const cases[][2] = {
		{ "", "" },	      { "f", "Zg" },	      { "fo", "Zm8" },		{ "foo", "Zm9v" },
		{ "foob", "Zm9vYg" }, { "fooba", "Zm9vYmE" }, { "foobar", "Zm9vYmFy" }, { "\xff\xff\xfe", "///+" }
	};
	(void)state;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(buf_fini) struct buf out = BUF_EMPTY;

		grpc_append_base64(cases[i][0], strlen(cases[i][0]), &out);
		assert_string_equal(buf_text(&out), cases[i][1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_timeout),
		cmocka_unit_test(test_content_type),
		cmocka_unit_test(test_message),
		cmocka_unit_test(test_base64),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
