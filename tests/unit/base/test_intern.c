/* SPDX-License-Identifier: Apache-2.0 */
/* The interning table: dense indices in order of first sight, the same bytes always the same index, through all growth. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/intern.h"
#include "tests/unit/descriptors.h"

static void free_table(struct intern **t)
{
	intern_free(*t);
}

static void test_small_keys(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
		int is_new;
		uint32_t index;
	} cases[] = {
		{ "main", 4, 1, 0 },	  { "", 0, 1, 1 },	   { "main", 4, 0, 0 }, { "main\0", 5, 1, 2 },
		{ "mai", 3, 1, 3 },	  { "", 0, 0, 1 },	   { "\0", 1, 1, 4 },	{ "\0\0", 2, 1, 5 },
		{ "\0", 1, 0, 4 },	  { "main\0", 5, 0, 2 },   { NULL, 0, 0, 1 },	{ "12345678", 8, 1, 6 },
		{ "123456789", 9, 1, 7 }, { "12345678", 8, 0, 6 },
	};
	struct intern *t AUTO(free_table) = intern_new();

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uint32_t index = 99;
		size_t len = 99;

		assert_int_equal(intern_add(t, cases[i].bytes, cases[i].len, &index), cases[i].is_new);
		assert_int_equal(index, cases[i].index);
		if (cases[i].len)
			assert_memory_equal(intern_get(t, index, &len), cases[i].bytes, cases[i].len);
		else
			assert_non_null(intern_get(t, index, &len));
		assert_int_equal(len, cases[i].len);
	}
	assert_int_equal(intern_count(t), 8);
}

enum { MANY = 200000 };

/* Key @i: its decimal text, 0 to 40 times over, so that lengths vary and keys share prefixes. */
static size_t make_key(char *out, size_t size, uint32_t i)
{
	size_t len = (size_t)snprintf(out, size, "%u:", i);

	for (uint32_t n = i % 41; n; n--)
		out[len++] = (char)('a' + n % 26);
	return len;
}

static void check_many(struct intern *t)
{
	char key[64];

	for (uint32_t i = 0; i < MANY; i++) {
		uint32_t index = UINT32_MAX;
		size_t len = make_key(key, sizeof(key), i);

		assert_false(intern_find(t, key, len, &index));
		assert_int_equal(index, UINT32_MAX);
		assert_int_equal(intern_add(t, key, len, &index), 1);
		assert_int_equal(index, i);
	}
	for (uint32_t i = 0; i < MANY; i++) {
		uint32_t index = UINT32_MAX;
		size_t len = make_key(key, sizeof(key), i), got_len;
		const void *got = intern_get(t, i, &got_len);

		assert_int_equal(got_len, len);
		assert_memory_equal(got, key, len);
		assert_int_equal((uintptr_t)got % 8, 0);
		assert_true(intern_find(t, key, len, &index));
		assert_int_equal(index, i);
		index = UINT32_MAX;
		assert_int_equal(intern_add(t, key, len, &index), 0);
		assert_int_equal(index, i);
	}
	assert_int_equal(intern_count(t), MANY);
}

static void test_many_keys_and_reset(void **state)
{
	struct intern *t AUTO(free_table) = intern_new();
	size_t fresh = intern_memory_bytes(t), full;

	(void)state;
	assert_true(fresh < 4096);
	check_many(t);
	full = intern_memory_bytes(t);
	assert_true(full > MANY * 16u && full < MANY * 160u);
	intern_reset(t);
	assert_int_equal(intern_count(t), 0);
	assert_int_equal(intern_memory_bytes(t), full);
	check_many(t);
	assert_int_equal(intern_memory_bytes(t), full); /* the memory was used again */
	intern_shrink(t);
	assert_int_equal(intern_count(t), 0);
	assert_int_equal(intern_memory_bytes(t), fresh);
	check_many(t);
}

static void test_large_key(void **state)
{
	struct intern *t AUTO(free_table) = intern_new();
	static uint64_t stack[100000];
	uint32_t a, b, c;

	(void)state;
	assert_int_equal(intern_add(t, stack, sizeof(stack), &a), 1);
	stack[99999] = 1;
	assert_int_equal(intern_add(t, stack, sizeof(stack), &b), 1);
	stack[99999] = 0;
	assert_int_equal(intern_add(t, stack, sizeof(stack), &c), 0);
	assert_int_equal(a, c);
	assert_int_not_equal(a, b);
	assert_int_equal(intern_add(t, stack, (size_t)UINT32_MAX + 1, &c), -ENOMEM); /* and none of it is read */
	assert_int_equal(intern_count(t), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_small_keys),
		cmocka_unit_test(test_many_keys_and_reset),
		cmocka_unit_test(test_large_key),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
