/* SPDX-License-Identifier: Apache-2.0 */
/* Growing arrays: how far they grow, that a cap bounds them, that a failure leaves all as it was, that new room is zero. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "tests/unit/descriptors.h"

enum { APPENDED = 100000, DIRT = 0xa5 };

/* What cannot be had is refused here, too, instead of ending the test. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1";
}

static void test_append(void **state)
{
	AUTO_FREE uint64_t *items = NULL;
	uint32_t cap = 0;
	size_t grown = 0, copied = 0;

	(void)state;
	for (uint32_t i = 0; i < APPENDED; i++) {
		uint32_t before = cap;

		assert_int_equal(vec_reach(&items, &cap, i), 0);
		assert_true(cap > i);
		grown += cap != before;
		copied += cap != before ? i : 0;
		items[i] = i * 3ull;
	}
	for (uint32_t i = 0; i < APPENDED; i++)
		assert_int_equal(items[i], i * 3ull);
	assert_in_range(grown, 2, 17);
	assert_true(copied <= 2 * APPENDED);
	assert_true(cap <= 2 * APPENDED);
}

static void test_reserve(void **state)
{
	AUTO_FREE uint16_t *items = NULL;
	uint16_t *before;
	size_t cap = 0;

	(void)state;
	assert_int_equal(vec_reserve(&items, &cap, 0), 0);
	assert_null(items);
	assert_int_equal(vec_reserve(&items, &cap, 1000), 0);
	assert_int_equal(cap, 1000);
	before = items;
	assert_int_equal(vec_reserve(&items, &cap, 1000), 0);
	assert_int_equal(vec_reach(&items, &cap, 999), 0);
	assert_ptr_equal(items, before);
	assert_int_equal(cap, 1000);
	assert_int_equal(vec_reach(&items, &cap, 1000), 0);
	assert_int_equal(cap, 2000);
	assert_int_equal(vec_reserve(&items, &cap, 9001), 0);
	assert_int_equal(cap, 9001);
}

/* Each argument counts once, also where the array grows. */
static void test_once(void **state)
{
	uint32_t *arrays[2] = { NULL, NULL }, **array = arrays, caps[2] = { 0, 0 }, *cap = caps, index = 7;

	(void)state;
	assert_int_equal(vec_reach(array++, cap++, index++), 0);
	assert_non_null(arrays[0]);
	assert_null(arrays[1]);
	assert_ptr_equal(array, &arrays[1]);
	assert_ptr_equal(cap, &caps[1]);
	assert_int_equal(index, 8);
	assert_int_equal(caps[0], 8);
	free(arrays[0]);
}

/* A cap of eight bits counts up to 255 elements, and 256 do not wrap to none. */
static void test_small_cap(void **state)
{
	AUTO_FREE uint32_t *items = NULL;
	uint32_t *before;
	uint8_t cap = 0;

	(void)state;
	for (unsigned i = 0; i < UINT8_MAX; i++) {
		assert_int_equal(vec_reach(&items, &cap, i), 0);
		items[i] = i;
	}
	assert_int_equal(cap, UINT8_MAX);
	before = items;
	assert_int_equal(vec_reach(&items, &cap, UINT8_MAX), -ENOMEM);
	assert_int_equal(vec_reserve_zero(&items, &cap, SIZE_MAX), -ENOMEM);
	assert_int_equal(cap, UINT8_MAX);
	assert_ptr_equal(items, before);
	for (unsigned i = 0; i < UINT8_MAX; i++)
		assert_int_equal(items[i], i);
}

/* The array is never looked at, so that it need not be as large as is told. */
static void test_large_cap(void **state)
{
	AUTO_FREE uint8_t *items = malloc(1);
	uint8_t *before = items;
	uint32_t cap = UINT32_MAX, index = UINT32_MAX;

	(void)state;
	assert_int_equal(vec_reach(&items, &cap, index - 1), 0);
	assert_int_equal(vec_reach(&items, &cap, index), -ENOMEM);
	assert_int_equal(vec_reserve(&items, &cap, (size_t)UINT32_MAX + 1), -ENOMEM);
	assert_int_equal(cap, UINT32_MAX);
	assert_ptr_equal(items, before);
}

static void test_failure(void **state)
{
	AUTO_FREE uint64_t *items = NULL;
	AUTO_FREE uint8_t *bytes = NULL;
	uint64_t *before;
	size_t cap = 0, byte_cap = 0;

	(void)state;
	assert_int_equal(vec_reserve(&items, &cap, 9), 0);
	memset(items, DIRT, 9 * sizeof(*items));
	before = items;
	assert_int_equal(vec_reserve(&items, &cap, SIZE_MAX / 8 + 2), -ENOMEM); /* 8 bytes if the product wrapped */
	assert_int_equal(vec_reserve_zero(&items, &cap, SIZE_MAX / 8 + 2), -ENOMEM);
	assert_int_equal(vec_reserve(&items, &cap, SIZE_MAX / 16), -ENOMEM); /* more than there is */
	assert_int_equal(vec_reserve(&items, &cap, SIZE_MAX), -ENOMEM);
	assert_ptr_equal(items, before);
	assert_int_equal(cap, 9);
	for (size_t i = 0; i < 9; i++)
		assert_int_equal(items[i], 0xa5a5a5a5a5a5a5a5);
	assert_int_equal(vec_reserve(&bytes, &byte_cap, SIZE_MAX), -ENOMEM);
	assert_null(bytes);
	assert_int_equal(byte_cap, 0);
}

static void test_zero(void **state)
{
	AUTO_FREE uint32_t *items = NULL;
	uint32_t cap = 0;

	(void)state;
	mallopt(M_PERTURB, DIRT); /* fresh memory is not zero by chance */
	for (uint32_t count = 0; count < 50; count++) {
		AUTO_FREE void *behind = NULL;

		assert_int_equal(vec_reach_zero(&items, &cap, count * 100), 0);
		behind = malloc(64); /* so that the array moves */
		assert_non_null(behind);
		for (uint32_t i = 0; i < count; i++)
			assert_int_equal(items[i], i + 1);
		for (uint32_t i = count; i < cap; i++)
			assert_int_equal(items[i], 0);
		items[count] = count + 1;
	}
	free(MOVE(items));
	cap = 0;
	assert_int_equal(vec_reserve_zero(&items, &cap, 600), 0);
	for (uint32_t i = 0; i < 600; i++)
		assert_int_equal(items[i], 0);
	mallopt(M_PERTURB, 0);
}

/* Elements of a size that is known only as the program runs. */
static void test_wide(void **state)
{
	AUTO_FREE char *rows = NULL;
	uint32_t cap = 0;

	(void)state;
	for (uint32_t i = 0; i < 100; i++) {
		assert_int_equal(VEC_RESERVE(&rows, &cap, i + 1, 24, true), 0);
		for (uint32_t k = i * 24; k < cap * 24; k++)
			assert_int_equal(rows[k], 0);
		memset(rows + i * 24, 1, 24);
	}
}

/* What stands in an array that is fitted stays, and it grows again as any other. */
static void test_fit(void **state)
{
	AUTO_FREE uint64_t *items = NULL;
	uint32_t cap = 0;

	(void)state;
	vec_fit(&items, &cap, 0);
	assert_true(!items && !cap);
	assert_int_equal(vec_reserve(&items, &cap, 1000), 0);
	for (uint32_t i = 0; i < 1000; i++)
		items[i] = i;
	vec_fit(&items, &cap, 2000); /* it has no more than it has */
	assert_int_equal(cap, 1000);
	vec_fit(&items, &cap, 600);
	assert_int_equal(cap, 600);
	assert_true(malloc_usable_size(items) < 800 * sizeof(*items));
	assert_int_equal(vec_reach(&items, &cap, 600), 0);
	for (uint32_t i = 0; i < 600; i++)
		assert_int_equal(items[i], i);
	vec_fit(&items, &cap, 0);
	assert_true(items && cap == 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_append),	  cmocka_unit_test(test_reserve),   cmocka_unit_test(test_once),
		cmocka_unit_test(test_small_cap), cmocka_unit_test(test_large_cap), cmocka_unit_test(test_failure),
		cmocka_unit_test(test_zero),	  cmocka_unit_test(test_wide),	    cmocka_unit_test(test_fit),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
