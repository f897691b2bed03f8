/* SPDX-License-Identifier: Apache-2.0 */
/* Regular expressions: what matches, what is refused, and that neither takes for ever. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text/pattern.h"
#include "tests/unit/descriptors.h"

static void test_matches(void **state)
{
	static const struct {
		const char *expression, *text;
		unsigned flags;
		bool is_match;
	} cases[] = {
		{ "alloc", "xmalloc", 0, true },
		{ "^alloc", "xmalloc", 0, false },
		{ "m(al|re)loc$", "xmalloc", 0, true },
		{ "[[:upper:]]\\d{2}", "A12", 0, true },
		{ "std::(vector|map)<.*>::push_back", "std::vector<int>::push_back", 0, true },
		{ "", "anything", 0, true },
		{ "go.*", "gopher", PATTERN_WHOLE, true },
		{ "go", "gopher", PATTERN_WHOLE, false },
		{ "", "", PATTERN_WHOLE, true },
		{ "a|bc", "abc", PATTERN_WHOLE, false },
		{ "\xc3\xa9t.", "\xc3\xa9t\xc3\xa9", PATTERN_WHOLE, true }, /* a character, not a byte */
		{ "b", "\xff\xfe b", 0, true },				    /* text that is no UTF-8 */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct pattern_error err;
		struct pattern *p;

		assert_int_equal(pattern_new(cases[i].expression, cases[i].flags, &p, &err), 0);
		if (pattern_matches(p, cases[i].text, strlen(cases[i].text)) != cases[i].is_match)
			fail_msg("%s on %s", cases[i].expression, cases[i].text);
		pattern_free(p);
	}
}

static void test_refused(void **state)
{
	static const char *const expressions[] = { "(", "a)", "[a", "*", "((a{900}){900}){900}", "a{2000000}", "\xff" };
	char long_one[8192], deep[256];
	struct pattern_error err;
	struct pattern *p;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(expressions); i++) {
		err.message[0] = 0;
		if (pattern_new(expressions[i], 0, &p, &err) != -EINVAL)
			fail_msg("%s is taken", expressions[i]);
		assert_non_null(strstr(err.message, "at character "));
	}
	memset(long_one, 'a', sizeof(long_one) - 1);
	long_one[sizeof(long_one) - 1] = 0;
	assert_int_equal(pattern_new(long_one, 0, &p, &err), -EINVAL);
	memset(deep, '(', 100);
	memset(deep + 100, ')', 100);
	deep[200] = 0;
	assert_int_equal(pattern_new(deep, 0, &p, &err), -EINVAL);
}

/* Each would take hours or all memory with an engine that does not count. */
static void test_bounded(void **state)
{
	static const char *const expressions[] = { "(a*)*b", "(a|aa)+$", "(x+x+)+y", "a++++++++++++++++++++++++++++++++" };
	char text[4096];

	(void)state;
	memset(text, 'a', sizeof(text));
	for (size_t i = 0; i < ARRAY_LEN(expressions); i++) {
		struct pattern_error err;
		struct pattern *p;

		if (pattern_new(expressions[i], 0, &p, &err) == -EINVAL)
			continue;
		pattern_matches(p, text, sizeof(text));
		pattern_free(p);
	}
}

/* That it could not be told is not the same as no match, and is not forgotten with the next text. */
static void test_gives_up(void **state)
{
	struct pattern_error err;
	struct pattern *p;

	(void)state;
	assert_int_equal(pattern_new("^(a|aa)+[^a]$", 0, &p, &err), 0);
	assert_false(pattern_matches(p, "aab", 2));
	assert_true(pattern_matches(p, "aab", 3));
	assert_false(pattern_gave_up(p));
	assert_false(pattern_matches(p, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 40));
	assert_true(pattern_gave_up(p));
	assert_true(pattern_matches(p, "aab", 3));
	assert_true(pattern_gave_up(p));
	pattern_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_matches),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_bounded),
		cmocka_unit_test(test_gives_up),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
