/* SPDX-License-Identifier: Apache-2.0 */
/* Entries numbered as they come, and then by how often they are used. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>

#include "symbols/code/names.h"
#include "symbols/index/numbered.h"

static void test_numbers_as_they_come(void **state)
{
	struct numbered n = { .count = 0 };

	(void)state;
	assert_int_equal(numbered_add(&n, 1, 2, 3), 0);
	assert_int_equal(numbered_add(&n, 1, 2, 4), 1);
	assert_int_equal(numbered_add(&n, 1, 2, 3), 0);
	assert_int_equal(numbered_add(&n, 2, 1, 3), 2); /* another order is another key */
	assert_int_equal(numbered_add(&n, 0, 0, 0), 3);
	assert_int_equal(numbered_add(&n, 0, 0, 0), 3);
	assert_int_equal(numbered_add(&n, UINT32_MAX, UINT32_MAX, UINT32_MAX), 4);
	assert_int_equal(n.count, 5);
	numbered_fini(&n);
}

/* Many more than there was room for at first: each keeps its number. */
static void test_many(void **state)
{
	enum { MANY = 20000 };
	struct numbered n = { .count = 0 };

	(void)state;
	for (uint32_t i = 0; i < MANY; i++)
		assert_int_equal(numbered_add(&n, i * 1024, i % 7, i), i);
	for (uint32_t i = 0; i < MANY; i++)
		assert_int_equal(numbered_add(&n, i * 1024, i % 7, i), i);
	assert_int_equal(n.count, MANY);
	assert_true(n.slot_count >= 2 * MANY);
	assert_int_equal(n.slot_count & (n.slot_count - 1), 0);
	assert_false(n.failed);
	numbered_fini(&n);
}

/* The most used comes first; of those that are used alike the one that came first. */
static void test_by_use(void **state)
{
	static const uint32_t uses[] = { 1, 5, 0, 5, 2 }, final[] = { 3, 0, 4, 1, 2 };
	struct numbered n = { .count = 0 };
	struct numbered_entry *sorted;

	(void)state;
	for (uint32_t i = 0; i < 5; i++) {
		assert_int_equal(numbered_add(&n, 10 + i, 0, 0), i);
		for (uint32_t k = 0; k < uses[i]; k++)
			assert_int_equal(numbered_use(&n, i), i + 1); /* its own number as yet */
	}
	assert_int_equal(numbered_finish(&n), 0);
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(numbered_use(&n, i), final[i] + 1);
	sorted = numbered_in_order(&n);
	assert_non_null(sorted);
	for (uint32_t i = 0; i < 5; i++) {
		assert_int_equal(sorted[final[i]].key[0], 10 + i);
		assert_int_equal(sorted[final[i]].uses, uses[i] + 1);
	}
	free(sorted);
	numbered_fini(&n);
}

static void test_none(void **state)
{
	struct numbered n = { .count = 0 };
	struct numbered_entry *sorted;

	(void)state;
	assert_int_equal(numbered_finish(&n), 0);
	sorted = numbered_in_order(&n);
	assert_non_null(sorted);
	free(sorted);
	numbered_fini(&n);
}

/* What failed once says so ever after. */
static void test_failed(void **state)
{
	struct numbered n = { .count = 0 };

	(void)state;
	assert_int_equal(numbered_add(&n, 1, 2, 3), 0);
	n.failed = true;
	assert_true(numbered_add(&n, 1, 2, 3) == CODE_NONE);
	assert_int_equal(numbered_use(&n, 0), 0);
	assert_int_equal(numbered_finish(&n), -ENOMEM);
	numbered_fini(&n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers_as_they_come),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_by_use),
		cmocka_unit_test(test_none),
		cmocka_unit_test(test_failed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
