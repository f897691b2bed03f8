/* SPDX-License-Identifier: Apache-2.0 */
/* Hex there and back, of either case, and texts that are none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/text/hex.h"

static const uint8_t bytes[] = { 0x00, 0x0f, 0xa5, 0xff, 0x10 };

static void test_encode(void **state)
{
	char out[] = "################";

	(void)state;
	hex_encode(out, bytes, sizeof(bytes));
	assert_string_equal(out, "000fa5ff10");
	hex_encode(out, bytes, 0);
	assert_string_equal(out, "");
}

static void test_decode(void **state)
{
	static const char *const bad[] = { "0", "000", "0g", "g0", "/0", ":0", "@0", "G0", "`0", " 00 ", "0x00" };
	uint8_t out[8];
	size_t len;

	(void)state;
	assert_true(hex_decode("000FA5fF10", 10, out, &len));
	assert_int_equal(len, sizeof(bytes));
	assert_memory_equal(out, bytes, len);
	assert_true(hex_decode("", 0, out, &len));
	assert_int_equal(len, 0);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_false(hex_decode(bad[i], strlen(bad[i]), out, &len));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_encode), cmocka_unit_test(test_decode) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
