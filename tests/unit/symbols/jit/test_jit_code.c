/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges of generated code: overlaps, times, limits; and random changes beside a table of one name a byte. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "symbols/jit/jit_code.h"

static int add(struct jit_code *c, uint64_t start, uint64_t end, uint64_t time_ns, const char *name)
{
	return jit_code_add(
		c, &(struct jit_function){
			   .start = start, .end = end, .time_ns = time_ns, .name = name, .name_len = strlen(name) });
}

/* The name at @addr, or "-" where none is known, "!" where nobody's code is. */
static const char *name_at(const struct jit_code *c, uint64_t addr, uint64_t time_ns)
{
	static char text[JIT_CODE_MAX_NAME_BYTES + 1];
	struct jit_answer a;
	int status = jit_code_find(c, addr, time_ns, &a);

	if (status)
		return status == -ENOENT ? "-" : "!";
	memcpy(text, a.name, a.name_len);
	text[a.name_len] = '\0';
	return text;
}

static void test_overlaps(void **state)
{
	struct jit_code *c = jit_code_new();
	struct jit_answer a;

	(void)state;
	assert_int_equal(add(c, 100, 200, 0, "old"), 0);
	assert_int_equal(add(c, 140, 160, 0, "middle"), 0);
	assert_string_equal(name_at(c, 99, UINT64_MAX), "-");
	assert_string_equal(name_at(c, 139, UINT64_MAX), "old");
	assert_string_equal(name_at(c, 140, UINT64_MAX), "middle");
	assert_string_equal(name_at(c, 159, UINT64_MAX), "middle");
	assert_string_equal(name_at(c, 160, UINT64_MAX), "old");
	assert_string_equal(name_at(c, 200, UINT64_MAX), "-");
	assert_int_equal(jit_code_find(c, 170, UINT64_MAX, &a), 0);
	assert_int_equal(a.start, 100); /* the function's, not the piece's */
	assert_int_equal(jit_code_count(c), 3);
	assert_int_equal(add(c, 90, 210, 0, "all"), 0);
	assert_int_equal(jit_code_count(c), 1);
	assert_string_equal(name_at(c, 209, UINT64_MAX), "all");
	assert_int_equal(jit_code_remove(c, 100, 110, 0), 0);
	assert_string_equal(name_at(c, 99, UINT64_MAX), "all");
	assert_string_equal(name_at(c, 100, UINT64_MAX), "!");
	assert_string_equal(name_at(c, 110, UINT64_MAX), "all");
	assert_false(jit_code_has_replaced(c)); /* nothing had a time */
	jit_code_free(c);
	jit_code_free(NULL);
}

static void test_times(void **state)
{
	struct jit_code *c = jit_code_new();

	(void)state;
	assert_int_equal(add(c, 100, 200, 10, "first"), 0);
	assert_int_equal(add(c, 150, 250, 20, "second"), 0);
	assert_int_equal(add(c, 150, 160, 30, "third"), 0);
	assert_true(jit_code_has_replaced(c));
	assert_string_equal(name_at(c, 155, 15), "first");
	assert_string_equal(name_at(c, 155, 20), "second");
	assert_string_equal(name_at(c, 155, 29), "second");
	assert_string_equal(name_at(c, 155, 30), "third");
	assert_string_equal(name_at(c, 170, 15), "first");
	assert_string_equal(name_at(c, 170, 99), "second");
	assert_string_equal(name_at(c, 230, 15), "second"); /* announced late, and nothing else was there */
	assert_string_equal(name_at(c, 155, 5), "first");
	jit_code_forget(c, 20);
	assert_string_equal(name_at(c, 170, 15), "second");
	assert_string_equal(name_at(c, 155, 25), "second");
	jit_code_forget(c, 30);
	assert_false(jit_code_has_replaced(c));
	/* two at one time: the order tells who was there before */
	assert_int_equal(add(c, 500, 510, 40, "elder"), 0);
	assert_int_equal(add(c, 500, 505, 40, "younger"), 0);
	assert_string_equal(name_at(c, 502, 39), "elder");
	assert_string_equal(name_at(c, 502, 40), "younger");
	assert_string_equal(name_at(c, 507, 39), "elder");
	jit_code_forget(c, 40);
	/* gone, and what was there before */
	assert_int_equal(jit_code_remove(c, 100, 120, 50), 0);
	assert_string_equal(name_at(c, 110, 49), "first");
	assert_string_equal(name_at(c, 110, 50), "!");
	assert_int_equal(add(c, 100, 120, 55, "next"), 0);
	assert_string_equal(name_at(c, 110, 52), "!");
	assert_string_equal(name_at(c, 110, 55), "next");
	/* moved: the second half's name comes along, its start too */
	assert_int_equal(jit_code_move(c, 160, 1160, 90, 60), 0);
	assert_string_equal(name_at(c, 1249, 60), "second");
	assert_int_equal(jit_code_move(c, 5000, 6000, 10, 60), -ENOENT);
	assert_int_equal(jit_code_move(c, 160, UINT64_MAX - 5, 10, 60), -EINVAL);
	jit_code_free(c);
}

static void test_lines(void **state)
{
	static const struct jit_line lines[] = {
		{ 4, 10, "a.js", 4 }, { 8, 11, "a.js", 4 }, { 8, 12, "b.js", 4 }, { 20, 0, "a\001js", 4 }
	};
	const struct jit_function f = {
		.start = 100, .end = 200, .name = "f", .name_len = 1, .lines = lines, .line_cnt = ARRAY_LEN(lines)
	};
	struct jit_code *c = jit_code_new();
	struct jit_answer a;

	(void)state;
	assert_int_equal(jit_code_add(c, &f), 0);
	assert_int_equal(jit_code_find(c, 103, UINT64_MAX, &a), 0);
	assert_int_equal(a.line, 0);
	assert_int_equal(a.file_len, 0);
	assert_int_equal(jit_code_find(c, 107, UINT64_MAX, &a), 0);
	assert_int_equal(a.line, 10);
	assert_memory_equal(a.file, "a.js", a.file_len);
	assert_int_equal(jit_code_find(c, 108, UINT64_MAX, &a), 0);
	assert_int_equal(a.line, 12);
	assert_memory_equal(a.file, "b.js", a.file_len);
	assert_int_equal(jit_code_find(c, 199, UINT64_MAX, &a), 0);
	assert_memory_equal(a.file, "a?js", a.file_len);
	/* a piece behind a hole, and one that moved, know their lines by the function's start */
	assert_int_equal(jit_code_remove(c, 100, 106, 0), 0);
	assert_int_equal(jit_code_move(c, 106, 1006, 94, 0), 0);
	assert_int_equal(jit_code_find(c, 1008, UINT64_MAX, &a), 0);
	assert_int_equal(a.line, 12);
	assert_int_equal(a.start, 1000);
	jit_code_free(c);
}

static void test_texts_and_limits(void **state)
{
	AUTO_FREE char *longest = malloc(JIT_CODE_MAX_NAME_BYTES * 2 + 1);
	struct jit_code *c = jit_code_new();
	int status = 0;
	uint64_t n;

	(void)state;
	memset(longest, 'x', JIT_CODE_MAX_NAME_BYTES * 2);
	longest[JIT_CODE_MAX_NAME_BYTES * 2] = '\0';
	memcpy(longest + JIT_CODE_MAX_NAME_BYTES - 1, "\xc3\xa4", 2); /* stands across the border */
	assert_int_equal(add(c, 1, 2, 0, longest), 0);
	assert_int_equal(strlen(name_at(c, 1, 0)), JIT_CODE_MAX_NAME_BYTES - 1);
	assert_int_equal(add(c, 1, 2, 0, "a\xff\033[31mb"), 0);
	assert_string_equal(name_at(c, 1, 0), "a\xef\xbf\xbd?[31mb");
	assert_int_equal(add(c, 2, 2, 0, "empty"), -EINVAL);
	assert_int_equal(add(c, 3, 2, 0, "backwards"), -EINVAL);
	assert_int_equal(add(c, 0, JIT_CODE_MAX_FUNCTION_BYTES + 1ull, 0, "huge"), -EINVAL);
	assert_int_equal(add(c, UINT64_MAX - 1, UINT64_MAX, 0, "last"), 0);
	assert_string_equal(name_at(c, UINT64_MAX, 0), "-");
	for (n = 0; n <= JIT_CODE_MAX_PIECES && !status; n++)
		status = add(c, 1000 + n * 2, 1001 + n * 2, 0, "many");
	assert_int_equal(status, -ENOSPC);
	assert_true(jit_code_count(c) <= JIT_CODE_MAX_PIECES && jit_code_count(c) > JIT_CODE_MAX_PIECES - 4);
	assert_true(jit_code_memory_bytes(c) < JIT_CODE_MAX_BYTES);
	jit_code_free(c);
}

/* Memory is bounded by bytes as well: long names. And nothing replaced is held on to for ever. */
static void test_memory(void **state)
{
	struct jit_code *c = jit_code_new();
	char name[1001];
	int status = 0;
	size_t few;

	(void)state;
	memset(name, 'y', sizeof(name) - 1);
	name[1000] = '\0';
	for (uint64_t n = 0; n < 100 * JIT_CODE_MAX_REPLACED; n++) {
		name[0] = (char)('a' + n % 26);
		assert_int_equal(add(c, 10, 20, n + 1, name), 0);
	}
	few = jit_code_memory_bytes(c);
	assert_true(few < JIT_CODE_MAX_REPLACED * 1300);
	jit_code_forget(c, UINT64_MAX);
	assert_true(jit_code_memory_bytes(c) < few / 8);
	for (uint64_t n = 0; n < 1 << 17 && !status; n++)
		status = add(c, 100 + n * 10, 110 + n * 10, 0, name);
	assert_int_equal(status, -ENOSPC);
	assert_true(jit_code_memory_bytes(c) < JIT_CODE_MAX_BYTES + 200000);
	jit_code_free(c);
}

/* Random adds, removes and moves beside a table that holds the name of each byte. */
static void test_random(void **state)
{
	enum { SPACE = 32768, STEPS = 40000 };
	static char truth[SPACE]; /* more pieces than one chunk holds */
	struct jit_code *c = jit_code_new();
	unsigned seed = 7;

	(void)state;
	memset(truth, '-', sizeof(truth));
	for (int step = 0; step < STEPS; step++) {
		uint64_t start = (uint64_t)rand_r(&seed) % (SPACE - 64), size = 1 + (uint64_t)rand_r(&seed) % 63;
		char name[2] = { (char)('a' + step % 26), '\0' };

		if (rand_r(&seed) % 8) {
			assert_int_equal(add(c, start, start + size, (uint64_t)step, name), 0);
			memset(truth + start, name[0], size);
		} else {
			assert_int_equal(jit_code_remove(c, start, start + size, (uint64_t)step), 0);
			memset(truth + start, '!', size);
		}
		for (uint64_t i = start > 2 ? start - 2 : 0; i < start + size + 2; i++)
			assert_int_equal(name_at(c, i, UINT64_MAX)[0], truth[i]);
	}
	for (uint64_t i = 0; i < SPACE; i++)
		assert_int_equal(name_at(c, i, UINT64_MAX)[0], truth[i]);
	jit_code_free(c);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_overlaps),	 cmocka_unit_test(test_times),	cmocka_unit_test(test_lines),
		cmocka_unit_test(test_texts_and_limits), cmocka_unit_test(test_memory), cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
