/* SPDX-License-Identifier: Apache-2.0 */
/* `hearth convert`: the format that is named or that the name of the file has, and what it says of those that are none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/unit/cmd/parsed.h"

#define CONVERT(said, ...) run_words(&cmd_convert, (const char *const[]){ __VA_ARGS__, NULL }, said)

static char folder[64], in[96], out[96];

static int set_up(void **state)
{
	FILE *f;

	(void)state;
	strcpy(folder, "/tmp/test_convert.XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(in, sizeof(in), "%s/in.folded", folder);
	f = fopen(in, "we");
	return !f || fputs("main;work 3\nmain 1\n", f) < 0 || fclose(f);
}

static int tear_down(void **state)
{
	char command[96];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	return system(command);
}

static const char *out_path(const char *name)
{
	snprintf(out, sizeof(out), "%s/%s", folder, name);
	return out;
}

/* The stacks of @path, as folded ones that are written to @copy. */
static void check_stacks(const char *path, const char *copy)
{
	AUTO_FCLOSE FILE *f = NULL;
	char text[128] = "";

	assert_int_equal(CONVERT(NULL, path, copy), STATUS_DONE);
	f = fopen(copy, "re");
	assert_non_null(f);
	assert_true(fread(text, 1, sizeof(text) - 1, f) > 0);
	assert_string_equal(text, "main 1\nmain;work 3\n");
	assert_true(is_said_last("folded has no place for: everything but names and counts"));
}

/* There and back: the name of the file says how. */
static void test_formats(void **state)
{
	static const char *const names[] = { "x.otlp", "x.otlp.gz", "x.otlp.json", "x.pb.gz", "x.speedscope.json" };
	char copy[96];

	(void)state;
	snprintf(copy, sizeof(copy), "%s/copy.folded", folder);
	check_stacks(in, copy);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		assert_int_equal(CONVERT(NULL, in, out_path(names[i])), STATUS_DONE);
		check_stacks(out, copy);
	}
}

static void test_refusals(void **state)
{
	(void)state;
	assert_int_equal(CONVERT(NULL, in, out_path("x.unheard-of")), STATUS_USAGE);
	assert_true(is_said_last("x.unheard-of' does not say which format to write; end the name in one of "));
	assert_int_equal(access(out, F_OK), -1);
	assert_int_equal(CONVERT(NULL, in, "-"), STATUS_USAGE);
	assert_true(is_said_last("say which format to write to standard output: "));
	assert_int_equal(CONVERT(NULL, "/nowhere/x", out_path("x.otlp")), STATUS_FAILED);
	assert_true(is_said_last("/nowhere/x"));
	assert_int_equal(CONVERT(NULL, in, "/nowhere/x.otlp"), STATUS_FAILED);
	assert_true(is_said_last("/nowhere/x.otlp"));
}

int main(void)
{
	static const struct CMUnitTest tests[] = { cmocka_unit_test(test_formats), cmocka_unit_test(test_refusals) };

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
