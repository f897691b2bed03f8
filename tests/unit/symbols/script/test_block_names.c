/* SPDX-License-Identifier: Apache-2.0 */
/* Names of generated code: what was told is found again, by places, with inlined functions; bytes that make no sense tell
 * nothing. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "symbols/script/block_names.h"

static uint16_t function(struct block_names *n, const char *name, const char *file, uint32_t line)
{
	return block_names_function(n, name, strlen(name), file, strlen(file), line);
}

/* outer() at 10..; inner() inlined into its line 12 at 20..29; nothing from 40 on. */
static void make(struct buf *out)
{
	AUTO(block_names_free_at) struct block_names *n = block_names_new();
	uint16_t outer = function(n, "A.outer", "A.java", 10), inner = function(n, "B.inner", "B.java", 70);
	uint16_t first = block_names_scope(n, BLOCK_NAMES_NONE, outer, 11);
	uint16_t call = block_names_scope(n, BLOCK_NAMES_NONE, outer, 12);

	assert_int_equal(function(n, "A.outer", "A.java", 10), outer);
	assert_int_equal(block_names_scope(n, BLOCK_NAMES_NONE, outer, 11), first);
	block_names_place(n, 10, first, 0);
	block_names_place(n, 20, block_names_scope(n, call, inner, 72), BLOCK_PLACE_INEXACT | BLOCK_PLACE_EXACT_CALLS);
	block_names_place(n, 30, call, BLOCK_PLACE_INEXACT);
	block_names_place(n, 40, BLOCK_NAMES_NONE, 0);
	assert_int_equal(block_names_write(n, out), 0);
	assert_true(block_names_are_sound(out->data, out->len));
}

static void check_line(const struct block_line *l, const char *name, uint32_t line, bool is_approximate)
{
	assert_int_equal(l->name_bytes, strlen(name));
	assert_memory_equal(l->name, name, l->name_bytes);
	assert_int_equal(l->line, line);
	assert_int_equal(l->is_approximate, is_approximate);
}

static void test_places(void **state)
{
	AUTO(buf_fini) struct buf bytes = BUF_EMPTY;
	struct block_line l[BLOCK_NAMES_MAX_DEPTH];

	(void)state;
	make(&bytes);
	assert_int_equal(block_names_find(bytes.data, bytes.len, 9, false, l), 0);
	assert_int_equal(block_names_find(bytes.data, bytes.len, 10, false, l), 1);
	check_line(&l[0], "A.outer", 11, false);
	assert_int_equal(l[0].start_line, 10);
	assert_int_equal(block_names_find(bytes.data, bytes.len, 19, false, l), 1);
	assert_int_equal(block_names_find(bytes.data, bytes.len, 20, false, l), 2);
	check_line(&l[0], "B.inner", 72, true);
	check_line(&l[1], "A.outer", 12, true);
	assert_int_equal(block_names_find(bytes.data, bytes.len, 30, false, l), 1);
	check_line(&l[0], "A.outer", 12, true);
	assert_int_equal(block_names_find(bytes.data, bytes.len, 40, false, l), 0);
	assert_int_equal(block_names_find(bytes.data, bytes.len, UINT32_MAX, false, l), 0);
}

/* A call that has not returned and ends where the next place begins is where the compiler described it. */
static void test_exact_calls(void **state)
{
	AUTO(buf_fini) struct buf bytes = BUF_EMPTY;
	struct block_line l[BLOCK_NAMES_MAX_DEPTH];

	(void)state;
	make(&bytes);
	assert_int_equal(block_names_find(bytes.data, bytes.len, 29, true, l), 2);
	assert_false(l[0].is_approximate);
	assert_int_equal(block_names_find(bytes.data, bytes.len, 29, false, l), 2);
	assert_true(l[0].is_approximate);
	assert_int_equal(block_names_find(bytes.data, bytes.len, 28, true, l), 2);
	assert_true(l[0].is_approximate);
	assert_int_equal(block_names_find(bytes.data, bytes.len, 39, true, l), 1); /* not said to be exact */
	assert_true(l[0].is_approximate);
}

static void test_fill(void **state)
{
	AUTO(block_names_free_at) struct block_names *n = block_names_new();
	AUTO(buf_fini) struct buf bytes = BUF_EMPTY;
	struct block_line l[BLOCK_NAMES_MAX_DEPTH];

	(void)state;
	block_names_place(n, 0, BLOCK_NAMES_NONE, 0);
	assert_int_equal(block_names_write(n, &bytes), -ENODATA);
	block_names_fill(n, block_names_scope(n, BLOCK_NAMES_NONE, function(n, "A.whole", "", 0), 0));
	assert_int_equal(block_names_write(n, &bytes), 0);
	assert_int_equal(block_names_find(bytes.data, bytes.len, 77, false, l), 1);
	check_line(&l[0], "A.whole", 0, true);
	assert_int_equal(l[0].file_bytes, 0);
}

static void test_refuses(void **state)
{
	AUTO(block_names_free_at) struct block_names *n = block_names_new();
	char name[3000];
	struct block_line l[BLOCK_NAMES_MAX_DEPTH];
	AUTO(buf_fini) struct buf bytes = BUF_EMPTY;

	(void)state;
	memset(name, 'n', sizeof(name));
	assert_int_equal(block_names_function(n, "", 0, "A.java", 6, 1), BLOCK_NAMES_NONE);
	assert_int_equal(block_names_scope(n, BLOCK_NAMES_NONE, BLOCK_NAMES_NONE, 1), BLOCK_NAMES_NONE);
	block_names_place(
		n, 5,
		block_names_scope(n, BLOCK_NAMES_NONE, block_names_function(n, name, sizeof(name), "\x01\xff", 2, 1), 3), 0);
	block_names_place(n, 4, BLOCK_NAMES_NONE, 0); /* not in order */
	assert_int_equal(block_names_write(n, &bytes), 0);
	assert_true(block_names_are_sound(bytes.data, bytes.len));
	assert_int_equal(block_names_find(bytes.data, bytes.len, 5, false, l), 1);
	assert_int_equal(l[0].name_bytes, BLOCK_NAMES_MAX_TEXT);
	assert_memory_equal(l[0].file, "?\xef\xbf\xbd", 4);
}

/* Each byte changed in turn: never read outside, and what is called sound has only texts of its own. */
static void test_hostile(void **state)
{
	AUTO(buf_fini) struct buf bytes = BUF_EMPTY;
	struct block_line l[BLOCK_NAMES_MAX_DEPTH];

	(void)state;
	make(&bytes);
	for (size_t len = 0; len < bytes.len; len++)
		assert_false(block_names_are_sound(bytes.data, len));
	for (size_t i = 0; i < bytes.len; i++) {
		for (int v = 0; v < 256; v += 5) {
			uint8_t before = bytes.data[i];
			uint32_t count;

			bytes.data[i] = (uint8_t)v;
			count = block_names_find(bytes.data, bytes.len, 25, true, l);
			for (uint32_t k = 0; k < count; k++)
				assert_true((const uint8_t *)l[k].name >= bytes.data &&
					    (const uint8_t *)l[k].name + l[k].name_bytes <= bytes.data + bytes.len);
			bytes.data[i] = before;
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_places),	cmocka_unit_test(test_exact_calls), cmocka_unit_test(test_fill),
		cmocka_unit_test(test_refuses), cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
