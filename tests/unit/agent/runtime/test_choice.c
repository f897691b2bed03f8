/* SPDX-License-Identifier: Apache-2.0 */
/* Runtimes by name: each has a word of its own, lists turn on what they say, and words of other profilers are known. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "agent/runtime/choice.h"
#include "base/buf.h"
#include "base/cleanup.h"

/* The runtimes that the list @text leaves off. */
static uint32_t off_after(const char *text)
{
	AUTO_FREE char *copy = strdup(text);
	uint32_t off = 12345;
	bool is_first = true;

	assert_non_null(copy);
	for (char *rest = copy, *part; (part = strsep(&rest, ",")); is_first = false)
		assert_int_equal(runtime_choose(part, is_first, &off), 0);
	return off;
}

static void test_lists(void **state)
{
	const uint32_t python = RUNTIME_BIT(RUNTIME_PYTHON), php = RUNTIME_BIT(RUNTIME_PHP),
		       maps = RUNTIME_BIT(RUNTIME_PERF_MAP), dotnet = RUNTIME_BIT(RUNTIME_OF_CODE + CODE_DOTNET);

	(void)state;
	assert_int_equal(off_after("all"), 0);
	assert_int_equal(off_after("none"), UINT32_MAX);
	assert_int_equal(off_after("python"), ~python);
	assert_int_equal(off_after("python,php"), ~(python | php));
	assert_int_equal(off_after("none,php"), ~php);
	assert_int_equal(off_after("php,all"), 0);
	assert_int_equal(off_after("-php"), php);
	assert_int_equal(off_after("all,-php,-python"), python | php);
	assert_int_equal(off_after("-php,php"), 0);
	assert_int_equal(off_after("native,go"), UINT32_MAX);
	assert_int_equal(off_after("dotnet"), ~(dotnet | maps)); /* what helps it is on, too, ... */
	assert_int_equal(off_after("all,-dotnet"), dotnet);	 /* ... and stays, as others need it */
}

static void test_words(void **state)
{
	static const char *const tracers[] = { "perl", "php",	 "python", "hotspot", "ruby",  "v8",
					       "go",   "dotnet", "labels", "beam",    "luajit" };
	AUTO(buf_fini) struct buf text = BUF_EMPTY;
	const struct runtime_word *words;
	uint32_t off = 0;
	size_t count;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(tracers); i++) {
		assert_int_equal(runtime_choose(tracers[i], true, &off), 0);
		assert_int_equal(off == UINT32_MAX, !strcmp(tracers[i], "go"));
	}
	assert_int_equal(runtime_choose("all", true, &off), 0);
	assert_int_equal(off, 0);
	assert_int_equal(runtime_choose("phyton", true, &off), -ENOENT);
	assert_int_equal(runtime_choose("", true, &off), -ENOENT);
	assert_int_equal(runtime_choose("-", true, &off), -ENOENT);
	/* each runtime with chains has a name, and no two have the same */
	for (uint32_t id = 0; id < RUNTIME_ID_MAX; id++) {
		assert_true(strlen(runtime_own_word(id)) > 0);
		for (uint32_t other = 0; other < id; other++)
			assert_string_not_equal(runtime_own_word(id), runtime_own_word(other));
	}
	assert_string_equal(runtime_own_word(RUNTIME_PERF_MAP), "perf-map");
	assert_string_equal(runtime_own_word(RUNTIME_ID_MAX), "");
	assert_string_equal(runtime_own_word(UINT32_MAX), "");
	words = runtime_words(&count);
	runtime_words_print(&text);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(!!strstr(buf_text(&text), words[i].word), words[i].bits || words[i].with);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
