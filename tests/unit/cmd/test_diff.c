/* SPDX-License-Identifier: Apache-2.0 */
/* `hearth diff` over small captures: which side is which, forms of the result, pictures, and the status of --fail-above. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/io.h"
#include "tests/unit/cmd/parsed.h"
#include "tests/unit/descriptors.h"

#define DIFF(said, ...) run_words(&cmd_diff, (const char *const[]){ __VA_ARGS__, NULL }, said)

static char folder[64], a_path[128], b_path[128], other[128], times[128];

static void write_text(const char *path, const char *text)
{
	AUTO_FCLOSE FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
}

static int make_captures(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/test_diff.XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(a_path, sizeof(a_path), "%s/a.folded", folder);
	snprintf(b_path, sizeof(b_path), "%s/b.folded", folder);
	snprintf(other, sizeof(other), "%s/other.folded", folder);
	snprintf(times, sizeof(times), "%s/times.json", folder);
	write_text(times,
		   "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"shared\":{\"frames\":[{\"name\":"
		   "\"main\"}]},\"profiles\":[{\"type\":\"sampled\",\"name\":\"t\",\"unit\":\"seconds\",\"startValue\":0,"
		   "\"endValue\":9,\"samples\":[[0]],\"weights\":[9]}]}");
	write_text(a_path, "main;work 5000\nmain;idle 5000\n");
	write_text(b_path, "main;work 5000\nmain;idle 2500\nmain;added 2500\n");
	write_text(other, "main;work 5001\nmain;idle 4999\n");
	return 0;
}

static int remove_captures(void **state)
{
	char command[96];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	return system(command);
}

/* "added" took a quarter of the whole, which is more than noise. */
static void test_fail_above(void **state)
{
	static const struct {
		const char *limit;
		int status;
		bool is_same;
	} cases[] = {
		{ "24%", STATUS_CHANGED, false }, { "24.9", STATUS_CHANGED, false }, { "25", STATUS_DONE, false },
		{ "26 %", STATUS_DONE, false },	  { "100", STATUS_DONE, false },     { "0", STATUS_CHANGED, false },
		{ "0", STATUS_DONE, true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		int status = DIFF(NULL, a_path, cases[i].is_same ? other : b_path, "--fail-above", cases[i].limit);

		if (status != cases[i].status)
			fail_msg("%s: %d", cases[i].limit, status);
		if (status == STATUS_CHANGED)
			assert_true(is_said_last("was added by"));
	}
	assert_int_equal(DIFF(NULL, b_path, a_path, "--fail-above", "24%"), STATUS_CHANGED); /* idle grew then */
}

static void test_forms(void **state)
{
	static const struct {
		const char *words[3], *has;
	} cases[] = {
		{ { "--format", "table" }, "added" }, { { "--format", "markdown" }, "|" }, { { "--markdown" }, "|" },
		{ { "--format", "csv" }, "," },	      { { "--format", "json" }, "{" },
	};
	const char *said;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const char *words[] = { a_path, b_path, cases[i].words[0], cases[i].words[1], NULL };

		assert_int_equal(run_words(&cmd_diff, words, &said), STATUS_DONE);
		if (!strstr(said, "added") || !strstr(said, cases[i].has))
			fail_msg("%s: %s", cases[i].words[0], said);
	}
	assert_int_equal(DIFF(&said, a_path, b_path, "--format", "csv"), STATUS_DONE);
	assert_null(strchr(said, '{'));
}

static void test_sides(void **state)
{
	static const struct {
		const char *words[6];
		int status;
	} cases[] = {
		{ { a_path, b_path }, STATUS_DONE },
		{ { a_path, other, "--", b_path }, STATUS_DONE },
		{ { a_path, "--", other, b_path }, STATUS_DONE },
		{ { a_path, other, b_path }, STATUS_USAGE },
		{ { "--", a_path, b_path }, STATUS_USAGE },
		{ { a_path, "--", b_path }, STATUS_DONE },
	};
	const char *said;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		if (run_words(&cmd_diff, cases[i].words, NULL) != cases[i].status)
			fail_msg("case %zu", i);
	assert_int_equal(run_words(&cmd_diff, cases[1].words, &said), STATUS_DONE);
	assert_non_null(strstr(said, "A  2 runs"));
	assert_int_equal(run_words(&cmd_diff, cases[2].words, &said), STATUS_DONE);
	assert_non_null(strstr(said, "B  2 runs"));
}

static void test_pictures(void **state)
{
	static const struct {
		const char *name, *has;
	} cases[] = { { "x.svg", "<svg" }, { "x.html", "<!DOCTYPE html>" } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(buf_fini) struct buf text = BUF_EMPTY;
		char path[128];

		snprintf(path, sizeof(path), "%s/%s", folder, cases[i].name);
		assert_int_equal(DIFF(NULL, a_path, b_path, "-o", path), STATUS_DONE);
		assert_int_equal(io_read_file(path, SIZE_MAX, &text), 0);
		if (!strcasestr(buf_text(&text), cases[i].has) || !strstr(buf_text(&text), "added"))
			fail_msg("%s: %.200s", path, buf_text(&text));
		assert_int_equal(i && strstr(buf_text(&text), "<?xml") == buf_text(&text), 0);
	}
	assert_int_equal(DIFF(NULL, a_path, b_path, "-o", "x.otlp"), STATUS_USAGE);
	assert_int_equal(DIFF(NULL, a_path, b_path, "-o", "/nowhere/x.svg"), STATUS_FAILED);
	assert_true(is_said_last("cannot write /nowhere/x.svg: No such file"));
}

static void test_refused(void **state)
{
	static const char *const limits[] = { "101", "-1", "2x", "%", "nan", "2 % ", "" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(limits) - 1; i++) {
		assert_int_equal(DIFF(NULL, a_path, b_path, "--fail-above", limits[i]), STATUS_USAGE);
		assert_true(is_said_last("is no part of the whole"));
	}
	assert_int_equal(DIFF(NULL, a_path, "/nowhere/x"), STATUS_FAILED);
	assert_true(is_said_last("cannot read /nowhere/x: No such file"));
	assert_int_equal(DIFF(NULL, a_path, times), STATUS_FAILED);
	assert_true(is_said_last("times.json counts something else than the captures before it"));
	assert_int_equal(DIFF(NULL, a_path, b_path, "--focus", "("), STATUS_USAGE);
	assert_int_equal(DIFF(NULL, a_path, b_path, "--focus", "absent"), STATUS_FAILED);
	assert_true(is_said_last("holds no samples that are asked for"));
	assert_int_equal(DIFF(NULL, a_path, b_path, "--measure", "time"), STATUS_FAILED);
	assert_true(is_said_last("--measure time needs two captures a side at least"));
	assert_int_equal(DIFF(NULL, a_path, b_path, "--measure", "share"), STATUS_DONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fail_above), cmocka_unit_test(test_forms),   cmocka_unit_test(test_sides),
		cmocka_unit_test(test_pictures),   cmocka_unit_test(test_refused),
	};

	return run_group_of_descriptors(tests, make_captures, remove_captures);
}
