/* SPDX-License-Identifier: Apache-2.0 */
/* V8's names, as node 12, 18 and 20 wrote them; and texts that are none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "symbols/jit/v8_name.h"

static const struct {
	const char *text, *name, *file;
	uint32_t line, column;
	bool is_optimized;
} names[] = {
	{ "JS:*fib /tmp/fib.js:1:13", "fib", "/tmp/fib.js", 1, 13, true },
	{ "JS:^fib /tmp/fib.js:1:13", "fib", "/tmp/fib.js", 1, 13, false },
	{ "JS:+fib /tmp/fib.js:10:13", "fib", "/tmp/fib.js", 10, 13, true },
	{ "LazyCompile:*foo /path/file.js:12", "foo", "/path/file.js", 12, 0, true },
	{ "LazyCompile:~nextTick node:internal/process/task_queues:104:18", "nextTick", "node:internal/process/task_queues",
	  104, 18, false },
	{ "Function:~Module._load internal/modules/cjs/loader.js:724:24", "Module._load", "internal/modules/cjs/loader.js",
	  724, 24, false },
	{ "JS:*get prop /my files/a b.js:1:19", "get prop", "/my files/a b.js", 1, 19, true },
	{ "JS:~ /my files/a.js:3:28", "(anonymous)", "/my files/a.js", 3, 28, false },
	{ "JS:~ :1:20", "(anonymous)", "", 1, 20, false },
	{ "Eval:~ node:internal/main/run_main_module:1:1", "(eval)", "node:internal/main/run_main_module", 1, 1, false },
	{ "Script:~ file:///a%20b.mjs:1:1", "(script)", "file:///a%20b.mjs", 1, 1, false },
	{ "JS:+'fib file:///a.js:1:13", "fib", "file:///a.js", 1, 13, true },
	{ "JS:*'fib file:///a.js:1:13", "fib", "file:///a.js", 1, 13, true },
	{ "JS:o+ file:///a.js:1:1", "(anonymous)", "file:///a.js", 1, 1, true },
	{ "JS:o*'work ext:core/01_core.js:7:9", "work", "ext:core/01_core.js", 7, 9, true },
	{ "JS:~'odd' /a.js:1:1", "'odd'", "/a.js", 1, 1, false },
	{ "JS:*'", "(anonymous)", "", 0, 0, true },
	{ "JS:*foo", "foo", "", 0, 0, true },
	{ "JS:*", "(anonymous)", "", 0, 0, true },
	{ "JS:*foo odd.js:7:1", "foo", "odd.js", 7, 1, true },
	{ "JS:*foo odd.js", "foo", "odd.js", 0, 0, true },
	{ "JS:*foo /a.js:99999999999999999999:1", "foo", "/a.js:99999999999999999999", 1, 0, true },
};

static const char *const others[] = { "",
				      "JS:",
				      "JS:o",
				      "JS:o~foo /a.js:1:1",
				      "JS:foo /a.js:1:1",
				      "Builtin:ArrayPush",
				      "BytecodeHandler:Star0",
				      "RegExp:a*b",
				      "JS",
				      "LazyCompile:",
				      "java.lang.String::hashCode",
				      "js:*foo a:1",
				      "JSX:*f" };

static void test_names(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		size_t len = strlen(names[i].text);
		AUTO_FREE char *text = malloc(len); /* reading behind it would be seen */
		struct v8_name v8;

		memcpy(text, names[i].text, len);
		assert_true(v8_name_parse(text, len, &v8));
		if (v8.name_len != strlen(names[i].name) || memcmp(v8.name, names[i].name, v8.name_len) ||
		    v8.file_len != strlen(names[i].file) || (v8.file_len && memcmp(v8.file, names[i].file, v8.file_len)))
			fail_msg("%s: %.*s in %.*s", names[i].text, (int)v8.name_len, v8.name, (int)v8.file_len, v8.file);
		assert_int_equal(v8.line, names[i].line);
		assert_int_equal(v8.column, names[i].column);
		assert_int_equal(v8.is_optimized, names[i].is_optimized);
	}
}

static void test_others(void **state)
{
	struct v8_name v8;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		if (v8_name_parse(others[i], strlen(others[i]), &v8))
			fail_msg("%s is taken for V8's", others[i]);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
