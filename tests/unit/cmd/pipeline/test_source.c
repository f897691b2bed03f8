/* SPDX-License-Identifier: Apache-2.0 */
/* All that --config and --set lead to: several sources, and ${...} in values. */
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

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text/tree.h"
#include "cmd/pipeline/source.h"

static void reads(const char *const *sources, const char *const *sets, const char *expected)
{
	AUTO(buf_fini) struct buf error = BUF_EMPTY, out = BUF_EMPTY;
	struct tree t;

	if (source_read_all(sources, sets, &t, &error))
		fail_msg("%s", buf_text(&error));
	tree_write(&t, 0, &out);
	assert_string_equal(buf_text(&out), expected);
	tree_fini(&t);
}

static void refuses(const char *source, const char *set, const char *expected)
{
	const char *const sources[] = { source, NULL }, *const sets[] = { set, NULL };
	AUTO(buf_fini) struct buf error = BUF_EMPTY;
	struct tree t;

	assert_int_equal(source_read_all(sources, sets, &t, &error), -EINVAL);
	assert_string_equal(buf_text(&error), expected);
}

static void test_sources(void **state)
{
	char path[] = "/tmp/hearth-source-XXXXXX";
	const int fd = mkstemp(path);
	const char *const sources[] = { path, "env:TEST_MORE", "yaml:exporters::debug::verbosity: detailed", NULL };
	const char *const sets[] = { "exporters.debug.verbosity=basic", "a.list=[1, 2]", NULL };

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "freq: 9\na: {b: 1}\n", 18), 18);
	close(fd);
	setenv("TEST_MORE", "freq: 10\n", 1);
	reads(sources, NULL, "freq: 10\na:\n  b: 1\nexporters:\n  debug:\n    verbosity: detailed\n");
	reads(sources, sets,
	      "freq: 10\na:\n  b: 1\n  list:\n    - 1\n    - 2\nexporters:\n  debug:\n    verbosity: basic\n");
	unlink(path);
	refuses("/nowhere/x", NULL, "cannot read /nowhere/x: No such file or directory");
	refuses("env:TEST_NOT_SET", NULL, "env:TEST_NOT_SET: there is no such variable");
	refuses("yaml:a: 1", "b", "--set: 'b' is not KEY=VALUE, such as exporters.debug.verbosity=detailed");
	refuses("yaml:a: 1", "b.=1", "--set: a key is empty in 'b.=1'");
	refuses("yaml:'::a': 1", NULL, "yaml:'::a': 1: a key is empty");
}

#define PIPELINES "yaml:service: {}\nx: "

static void test_expansion(void **state)
{
	static const struct {
		const char *value, *becomes;
	} cases[] = {
		{ "a ${env:TEST_A} $$5 $x ${TEST_A}", "a one $5 $x one" },
		{ "${env:TEST_LIST}", "\n  - 1\n  - 2" },
		{ "\"${env:TEST_LIST}\"", "\"[1, 2]\"" },
		{ "${env:TEST_NOT_SET}", "" },
		{ "${env:TEST_NOT_SET:-7s}", "7s" },
		{ "x${env:TEST_EMPTY:-8s}", "x8s" },
		{ "${env:TEST_NESTED}", "one" },
		{ "${yaml:z}", "z" },
	};
	const char *const file[] = { PIPELINES "${file:/nowhere/y}", NULL };

	(void)state;
	setenv("TEST_A", "one", 1);
	setenv("TEST_LIST", "[1, 2]", 1);
	setenv("TEST_EMPTY", "", 1);
	setenv("TEST_NESTED", "${env:TEST_A}", 1);
	setenv("TEST_LOOP", "${env:TEST_LOOP}", 1);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(buf_fini) struct buf text = BUF_EMPTY, expected = BUF_EMPTY;
		const char *sources[2] = { NULL };

		buf_printf(&text, PIPELINES "%s\n", cases[i].value);
		buf_printf(&expected, "service: {}\nx:%s%s\n", cases[i].becomes[0] && cases[i].becomes[0] != '\n' ? " " : "",
			   cases[i].becomes);
		sources[0] = buf_text(&text);
		reads(sources, NULL, buf_text(&expected));
	}
	refuses(file[0], NULL, "yaml:2: cannot read /nowhere/y: No such file or directory");
	refuses(PIPELINES "${env:a b}", NULL, "yaml:2: '${a b}' names no variable; give one such as ${env:NAME}");
	refuses(PIPELINES "${env:TEST_LOOP}", NULL, "yaml:2: what stands for ${...} here names itself");
}

/* A file that is no pipelines' keeps its dollars, as before. */
static void test_flat(void **state)
{
	const char *const sources[] = { "yaml:collector-header: 'A: ${env:HOME}'", NULL };

	(void)state;
	reads(sources, NULL, "collector-header: \"A: ${env:HOME}\"\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sources),
		cmocka_unit_test(test_expansion),
		cmocka_unit_test(test_flat),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
