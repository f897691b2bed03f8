/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of /proc as words and numbers: what is cut off, what is left, and what is no number. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "base/cleanup.h"
#include "cmd/host/words.h"

static void is(struct str s, const char *wanted)
{
	assert_int_equal(s.len, strlen(wanted));
	assert_memory_equal(s.data, wanted, s.len);
}

static void test_lines(void **state)
{
	struct str text = str_z("one\n\ntwo\nrest"), line;

	(void)state;
	assert_true(words_line(&text, &line));
	is(line, "one");
	assert_true(words_line(&text, &line));
	is(line, "");
	assert_true(words_line(&text, &line));
	is(line, "two");
	is(text, "rest");
	assert_true(words_line(&text, &line));
	is(line, "rest");
	assert_false(words_line(&text, &line));
	text = str_z("a\n");
	assert_true(words_line(&text, &line));
	assert_false(words_line(&text, &line)); /* no line behind the last one's end */
}

static void test_words(void **state)
{
	struct str line = str_z("  cpu0\t12 \t x "), word;

	(void)state;
	assert_true(words_next(&line, &word));
	is(word, "cpu0");
	is(line, "\t12 \t x ");
	assert_true(words_next(&line, &word));
	is(word, "12");
	assert_true(words_next(&line, &word));
	is(word, "x");
	assert_false(words_next(&line, &word));
	is(word, "");
	assert_false(words_next(&line, &word));
}

static bool number(const char *text, uint64_t *ret)
{
	struct str line = str_z(text);

	*ret = 7;
	return words_u64(&line, ret);
}

static void test_numbers(void **state)
{
	uint64_t n;

	(void)state;
	assert_true(number("0", &n) && n == 0);
	assert_true(number(" 042 x", &n) && n == 42);
	assert_true(number("18446744073709551615", &n) && n == UINT64_MAX);
}

static void test_no_numbers(void **state)
{
	static const char *const texts[] = {
		"", "  ", "x", "-1", "+1", "1x", "1.5", "0x10", "18446744073709551616", "99999999999999999999"
	};
	uint64_t n;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		if (number(texts[i], &n) || n != 7)
			fail_msg("'%s'", texts[i]);
}

/* A word that is no number is cut off all the same. */
static void test_what_is_left(void **state)
{
	struct str line = str_z("x 5");
	uint64_t n;

	(void)state;
	assert_false(words_u64(&line, &n));
	assert_true(words_u64(&line, &n));
	assert_int_equal(n, 5);
}

static bool real(const char *text, double *ret)
{
	struct str line = str_z(text);

	*ret = 7;
	return words_real(&line, ret);
}

static void test_reals(void **state)
{
	double d;

	(void)state;
	assert_true(real("0.25", &d) && d == 0.25);
	assert_true(real("12", &d) && d == 12);
	assert_true(real("3.5 x", &d) && d == 3.5);
	assert_true(real("1.05", &d) && d > 1.0499999 && d < 1.0500001);
	assert_true(real("100.00", &d) && d == 100);
}

static void test_no_reals(void **state)
{
	static const char *const texts[] = { "", ".5", "5.", "1.2.3", "-1.5", "1e3", "x", "1.x" };
	double d;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		if (real(texts[i], &d) || d < 7 || d > 7)
			fail_msg("'%s'", texts[i]);
}

static void test_several_numbers(void **state)
{
	struct str line = str_z("1 2 3 4");
	uint64_t n[4] = { 0 };

	(void)state;
	assert_int_equal(words_numbers(&line, n, 3), 3);
	assert_true(n[0] == 1 && n[1] == 2 && n[2] == 3 && n[3] == 0);
	is(line, " 4");
	assert_int_equal(words_numbers(&line, n, 3), 1);
	assert_int_equal(n[0], 4);
	assert_int_equal(words_numbers(&line, n, 3), 0);
	line = str_z("1 x 3");
	assert_int_equal(words_numbers(&line, n, 3), 1);
}

static void test_less(void **state)
{
	(void)state;
	assert_int_equal(words_without(5, 3), 2);
	assert_int_equal(words_without(5, 5), 0);
	assert_int_equal(words_without(5, 6), 0);
	assert_int_equal(words_without(0, UINT64_MAX), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),	   cmocka_unit_test(test_words),	   cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_no_numbers), cmocka_unit_test(test_what_is_left),	   cmocka_unit_test(test_reals),
		cmocka_unit_test(test_no_reals),   cmocka_unit_test(test_several_numbers), cmocka_unit_test(test_less),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
