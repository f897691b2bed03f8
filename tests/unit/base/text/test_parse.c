/* SPDX-License-Identifier: Apache-2.0 */
/* Text into numbers: tables of what is accepted, refused, and too large. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>

#include "base/cleanup.h"
#include "base/text/parse.h"
#include "tests/unit/descriptors.h"

enum { UNTOUCHED = 4711 };

struct number_case {
	const char *text;
	int err;
	uint64_t value;
};

static void check(int (*parse)(const char *, uint64_t *), const struct number_case *cases, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t value = UNTOUCHED;
		int err = parse(cases[i].text, &value);

		if (err != cases[i].err || value != (err ? UNTOUCHED : cases[i].value))
			fail_msg("\"%s\": result %d, value %lu", cases[i].text, err, (unsigned long)value);
	}
}

static void test_u64(void **state)
{
	static const struct number_case cases[] = {
		{ "0", 0, 0 },
		{ "007", 0, 7 },
		{ "18446744073709551615", 0, UINT64_MAX },
		{ "18446744073709551616", -ERANGE, 0 },
		{ "99999999999999999999999999", -ERANGE, 0 },
		{ "99999999999999999999999999x", -EINVAL, 0 },
		{ "", -EINVAL, 0 },
		{ "-1", -EINVAL, 0 },
		{ "+1", -EINVAL, 0 },
		{ " 1", -EINVAL, 0 },
		{ "1 ", -EINVAL, 0 },
		{ "0x10", -EINVAL, 0 },
		{ "1.0", -EINVAL, 0 },
	};

	(void)state;
	check(parse_u64, cases, ARRAY_LEN(cases));
}

static void test_duration(void **state)
{
	static const struct number_case cases[] = {
		{ "5s", 0, 5000000000 },
		{ "5", 0, 5000000000 },
		{ "250ms", 0, 250000000 },
		{ "1.5m", 0, 90000000000 },
		{ "2h", 0, 7200000000000 },
		{ "7d", 0, 604800000000000 },
		{ "100us", 0, 100000 },
		{ "10ns", 0, 10 },
		{ "0", 0, 0 },
		{ "0.000000001", 0, 1 },
		{ "0.0000000019", 0, 1 },
		{ "0.1234567890123456789012345678901234567890s", 0, 123456789 },
		{ "18446744073709551615ns", 0, UINT64_MAX },
		{ "18446744073.709551615s", 0, UINT64_MAX },
		{ "18446744073.709551616s", -ERANGE, 0 },
		{ "18446744073709551616ns", -ERANGE, 0 },
		{ "213504d", -ERANGE, 0 },
		{ "", -EINVAL, 0 },
		{ "s", -EINVAL, 0 },
		{ ".5s", -EINVAL, 0 },
		{ "5.s", -EINVAL, 0 },
		{ "5 s", -EINVAL, 0 },
		{ "5S", -EINVAL, 0 },
		{ "5sec", -EINVAL, 0 },
		{ "-5s", -EINVAL, 0 },
		{ "1.2.3s", -EINVAL, 0 },
		{ "1e3", -EINVAL, 0 },
		{ "99999999999999999999x", -EINVAL, 0 },
	};

	(void)state;
	check(parse_duration, cases, ARRAY_LEN(cases));
}

static void test_size(void **state)
{
	static const struct number_case cases[] = {
		{ "4096", 0, 4096 },
		{ "64K", 0, 65536 },
		{ "4MiB", 0, 4194304 },
		{ "2G", 0, 2147483648 },
		{ "10kb", 0, 10240 },
		{ "1t", 0, 1099511627776 },
		{ "12B", 0, 12 },
		{ "1.5k", 0, 1536 },
		{ "16777215T", 0, 18446742974197923840u },
		{ "16777216T", -ERANGE, 0 },
		{ "", -EINVAL, 0 },
		{ "K", -EINVAL, 0 },
		{ "4Ki", -EINVAL, 0 },
		{ "4P", -EINVAL, 0 },
		{ "4 K", -EINVAL, 0 },
		{ "-4K", -EINVAL, 0 },
	};

	(void)state;
	check(parse_size, cases, ARRAY_LEN(cases));
}

static void test_bool(void **state)
{
	static const struct {
		const char *text;
		int err;
		bool value;
	} cases[] = {
		{ "true", 0, true },   { "Yes", 0, true },  { "ON", 0, true },	     { "1", 0, true },
		{ "false", 0, false }, { "no", 0, false },  { "Off", 0, false },     { "0", 0, false },
		{ "", -EINVAL, 0 },    { "2", -EINVAL, 0 }, { "truee", -EINVAL, 0 }, { "t", -EINVAL, 0 },
		{ "01", -EINVAL, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		for (int before = 0; before < 2; before++) {
			bool value = before;

			assert_int_equal(parse_bool(cases[i].text, &value), cases[i].err);
			assert_int_equal(value, cases[i].err ? before : cases[i].value);
		}
	}
}

static void test_control(void **state)
{
	char text[] = "a?b";

	(void)state;
	assert_false(parse_has_control(NULL));
	assert_false(parse_has_control(""));
	for (int c = 1; c < 256; c++) {
		text[1] = (char)c;
		assert_int_equal(parse_has_control(text), c < ' ' || c == 0x7f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_u64),  cmocka_unit_test(test_duration), cmocka_unit_test(test_size),
		cmocka_unit_test(test_bool), cmocka_unit_test(test_control),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
