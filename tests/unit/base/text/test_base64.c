/* SPDX-License-Identifier: Apache-2.0 */
/* Base64: RFC 4648's own examples, both alphabets, and texts that are none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text/base64.h"

static void test_append(void **state)
{
	static const char *const cases[][2] = {
		{ "", "" },
		{ "f", "Zg==" },
		{ "fo", "Zm8=" },
		{ "foo", "Zm9v" },
		{ "foob", "Zm9vYg==" },
		{ "fooba", "Zm9vYmE=" },
		{ "foobar", "Zm9vYmFy" },
		{ "\xff\xff\xfe", "///+" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(buf_fini) struct buf out = BUF_EMPTY;

		buf_putc(&out, '>');
		base64_append(&out, cases[i][0], strlen(cases[i][0]));
		assert_string_equal(buf_text(&out) + 1, cases[i][1]);
	}
}

static void test_decode(void **state)
{
	static const char *const good[][2] = {
		{ "", "" },	 { "Zg==", "f" },   { "Zg", "f" },	     { "Zm8=", "fo" },
		{ "Zm8", "fo" }, { "Zm9v", "foo" }, { "//8+", "\xff\xff>" }, { "__8-", "\xff\xff>" },
	};
	static const char *const bad[] = {
		"Z", "Zg=", "Z===", "=", "====", "Zm9v=", "Zm 9v", "Zm9v\n", "Zg==Zg==", "Z\xc3"
	};
	uint8_t out[16];
	size_t len;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		assert_true(base64_decode(good[i][0], strlen(good[i][0]), out, &len));
		assert_int_equal(len, strlen(good[i][1]));
		assert_memory_equal(out, good[i][1], len);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_false(base64_decode(bad[i], strlen(bad[i]), out, &len));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_append), cmocka_unit_test(test_decode) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
