/* SPDX-License-Identifier: Apache-2.0 */
/* The token that a client shows: which file holds one, how long it may be, and when another one is told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bearer_token.h"
#include "base/cleanup.h"
#include "tests/unit/descriptors.h"
#include "tests/unit/token_file.h"

enum { LONGEST = (16 << 10) - 1 };

static void test_what_is_a_token(void **state)
{
	static const struct {
		const char *text;
		size_t len;
		int err;
	} cases[] = {
		{ "s3cret", 6, 0 },
		{ "s3cret\n", 7, 0 },
		{ "s3cret \t\r\n\n", 11, 0 },
		{ "", 0, -ENODATA },
		{ "\n", 1, -ENODATA },
		{ "two words", 9, -ENODATA },
		{ "two\nlines", 9, -ENODATA },
		{ " s3cret", 7, -ENODATA },
		{ "s3c\0ret", 7, -ENODATA },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct bearer_token *t = NULL;

		write_file(cases[i].text, cases[i].len);
		if (bearer_token_new(path, &t) != cases[i].err)
			fail_msg("'%s'", cases[i].text);
		if (cases[i].err)
			assert_null(t);
		else
			assert_string_equal(bearer_token_header(t), "Authorization: Bearer s3cret");
		bearer_token_free(t);
	}
}

static void test_no_file(void **state)
{
	struct bearer_token *t = NULL;

	(void)state;
	assert_int_equal(bearer_token_new("/no/such/file", &t), -ENOENT);
	assert_int_equal(bearer_token_new("/", &t), -EISDIR);
	assert_null(t);
	bearer_token_free(NULL);
}

static void test_the_longest(void **state)
{
	static char text[LONGEST + 2];
	struct bearer_token *t = NULL;

	(void)state;
	memset(text, 'a', sizeof(text));
	write_file(text, LONGEST);
	assert_int_equal(bearer_token_new(path, &t), 0);
	assert_int_equal(strlen(bearer_token_header(t)), strlen("Authorization: Bearer ") + LONGEST);
	bearer_token_free(t);
	t = NULL;
	write_file(text, LONGEST + 1);
	assert_int_equal(bearer_token_new(path, &t), -ENODATA);
	write_file(text, LONGEST + 2);
	assert_int_equal(bearer_token_new(path, &t), -ENODATA);
	assert_null(t);
}

/* The first one is news, too; then one that differs is, once. */
static void test_news(void **state)
{
	struct bearer_token *t = NULL;

	(void)state;
	write_file("one", 3);
	assert_int_equal(bearer_token_new(path, &t), 0);
	assert_int_equal(bearer_token_read(t), 1);
	assert_int_equal(bearer_token_read(t), 0);
	write_file("two\n", 4);
	assert_int_equal(bearer_token_read(t), 1);
	assert_string_equal(bearer_token_header(t), "Authorization: Bearer two");
	assert_int_equal(bearer_token_read(t), 0);
	write_file("two", 3); /* the same, written anew */
	assert_int_equal(bearer_token_read(t), 0);
	bearer_token_free(t);
}

/* The old one is good until a new one can be read. */
static void test_the_old_one_stays(void **state)
{
	struct bearer_token *t = NULL;

	(void)state;
	write_file("one", 3);
	assert_int_equal(bearer_token_new(path, &t), 0);
	assert_int_equal(bearer_token_read(t), 1);
	write_file("", 0);
	assert_int_equal(bearer_token_read(t), -ENODATA);
	assert_string_equal(bearer_token_header(t), "Authorization: Bearer one");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(bearer_token_read(t), -ENOENT);
	assert_string_equal(bearer_token_header(t), "Authorization: Bearer one");
	write_file("one", 3);
	assert_int_equal(bearer_token_read(t), 0);
	bearer_token_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_a_token),	  cmocka_unit_test(test_no_file),
		cmocka_unit_test(test_the_longest),	  cmocka_unit_test(test_news),
		cmocka_unit_test(test_the_old_one_stays),
	};

	return run_group_of_descriptors(tests, setup, teardown);
}
