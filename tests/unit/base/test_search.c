/* SPDX-License-Identifier: Apache-2.0 */
/* Binary search, compared with a walk, for all small lengths and at the end of what a type can count. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdbool.h>

#include "base/search.h"

enum { LONGEST = 40 };

static void test_against_walk(void **state)
{
	uint32_t items[LONGEST];

	(void)state;
	for (uint16_t count = 0; count < LONGEST; count++) {
		for (uint32_t each = 1; each < 4; each++) { /* so many of each value */
			for (uint32_t i = 0; i < count; i++)
				items[i] = 2 * (i / each) + 1;
			for (uint32_t value = 0; value < 2 * LONGEST + 2; value++) {
				uint32_t behind = 0, from = 0;

				while (behind < count && items[behind] <= value)
					behind++;
				while (from < count && items[from] < value)
					from++;
				assert_int_equal(search_first(at, count, items[at] > value), behind);
				assert_int_equal(search_first(at, count, items[at] >= value), from);
			}
		}
	}
}

/* The sum of two numbers may not fit, nor may a number behind the last. */
static void test_large(void **state)
{
	const uint32_t numbers[] = { 0, 1, INT32_MAX, INT32_MAX + 1u, UINT32_MAX - 1, UINT32_MAX };

	(void)state;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		unsigned asked = 0;

		assert_int_equal(search_first(at, UINT32_MAX, (asked++, at >= numbers[i])), numbers[i]);
		assert_in_range(asked, 31, 33);
		assert_int_equal(search_first(at, SIZE_MAX, at >= SIZE_MAX - numbers[i]), SIZE_MAX - numbers[i]);
	}
}

/* A number that is not below @count is never looked at, and @count is taken once. */
static void test_range(void **state)
{
	uint32_t count = 100, greatest = 0;

	(void)state;
	assert_int_equal(search_first(at, count++, (greatest = at > greatest ? at : greatest, false)), 100);
	assert_int_equal(greatest, 99);
	assert_int_equal(count, 101);
	assert_int_equal(search_first(at, 0u, (greatest = at + 1000, true)), 0);
	assert_int_equal(greatest, 99);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_against_walk),
		cmocka_unit_test(test_large),
		cmocka_unit_test(test_range),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
