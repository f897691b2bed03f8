/* SPDX-License-Identifier: Apache-2.0 */
/* Passwords in words of a command line: which part is one, and that hearth still has it while others read x's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "cmd/options/hide.h"

static const struct {
	const char *word, *shown;
} cases[] = {
	{ "http://u:secret@h:1/x", "http://u:xxxxxx@h:1/x" },
	{ "--collector=grpc://u:a:b@c@h", "--collector=grpc://u:xxxxx@h" }, /* the last @ ends it */
	{ "clickhouse+http://u:p@h/db?a=b:c@d", "clickhouse+http://u:x@h/db?a=b:c@d" },
	{ "http://u:@h", "http://u:@h" },
	{ "http://u@h:1", "http://u@h:1" },
	{ "http://h:1/a:b@c", "http://h:1/a:b@c" },
	{ "http://h:1?u:p@h", "http://h:1?u:p@h" },
	{ "http://h#u:p@h", "http://h#u:p@h" },
	{ "u:p@h", "u:p@h" },
	{ "", "" },
};

static void test_text(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO_FREE char *text = strdup(cases[i].word);

		hide_password(text);
		assert_string_equal(text, cases[i].shown);
	}
}

static void test_words(void **state)
{
	enum { COUNT = ARRAY_LEN(cases) };
	char memory[COUNT + 3][64], *argv[COUNT + 4] = { NULL };

	(void)state;
	for (size_t i = 0; i < COUNT + 3; i++) {
		snprintf(memory[i], sizeof(memory[i]), "%s",
			 !i || i == COUNT + 2 ? "http://u:p@h"
			 : i == COUNT + 1     ? "--"
					      : cases[i - 1].word);
		argv[i] = memory[i];
	}
	hide_passwords(COUNT + 3, argv);
	for (size_t i = 0; i < COUNT; i++) {
		assert_string_equal(memory[i + 1], cases[i].shown); /* where others look */
		assert_string_equal(argv[i + 1], cases[i].word);
		if (argv[i + 1] != memory[i + 1])
			free(argv[i + 1]);
	}
	assert_string_equal(memory[0], "http://u:p@h");		/* the program's name */
	assert_string_equal(memory[COUNT + 2], "http://u:p@h"); /* another program's word */
	assert_ptr_equal(argv[COUNT + 2], memory[COUNT + 2]);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_text), cmocka_unit_test(test_words) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
