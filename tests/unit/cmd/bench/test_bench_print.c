/* SPDX-License-Identifier: Apache-2.0 */
/* Figures of `hearth bench`: those that are known with their ratio, those that are not with the reason. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "cmd/bench/bench.h"

static const struct bench_figure figures[] = {
	{ .name = "both", .unit = "us", .ours = 1.5, .other = 3, .beside = "perf" },
	{ .name = "tens", .unit = "MB", .ours = 12.34, .other = 10, .beside = "perf" },
	{ .name = "hundreds", .unit = "ms", .ours = 100, .other = 99.96, .beside = "perf" },
	{ .name = "alone", .unit = "s", .ours = 10, .other = NAN },
	{ .name = "absent", .unit = "s", .ours = 2, .other = NAN, .beside = "addr2line", .why = "not here" },
	{ .name = "ours fails", .unit = "s", .ours = NAN, .other = 2, .beside = "perf", .why = "needs root" },
	{ .name = "ours fails untold", .unit = "s", .ours = NAN, .other = NAN },
	{ .name = "nothing beside", .unit = "s", .ours = 2, .other = 0, .beside = "perf", .why = "it took nothing" },
};

static void test_table(void **state)
{
	static const char *const lines[] = {
		"both                                          1.50 us              3.00 us              0.50   perf\n",
		"tens                                          12.3 MB              10.0 MB              1.23   perf\n",
		"hundreds                                      100 ms               100.0 ms             1.00   perf\n",
		"alone                                         10.0 s               -                    -      nothing to "
		"compare it with\n",
		"absent                                        2.00 s               -                    -      addr2line: "
		"not here\n",
		"ours fails                                    -                    2.00 s               -      needs "
		"root\n",
		"ours fails untold                             -                    -                    -      it failed "
		"here\n",
		"nothing beside                                2.00 s               0.00 s               -      perf: it "
		"took nothing\n",
	};
	AUTO(buf_fini) struct buf out = BUF_EMPTY, want = BUF_EMPTY;
	const char *text, *rows;

	(void)state;
	bench_print_table(figures, ARRAY_LEN(figures), 4, 0.26, &out);
	text = buf_text(&out);
	assert_non_null(strstr(text, ", 4 CPUs, each busy with a program 30 calls deep; load average before: 0.3\n\n"));
	rows = strstr(text, "WHO\n");
	assert_non_null(rows);
	for (size_t i = 0; i < ARRAY_LEN(lines); i++)
		buf_puts(&want, lines[i]);
	assert_string_equal(rows + strlen("WHO\n"), buf_text(&want));
}

static void test_json(void **state)
{
	static const struct {
		const char *name, *hearth, *other, *beside, *why;
	} cases[] = {
		{ "both", "1.5", "3", "perf", "" },
		{ "alone", "10", "null", "", "" },
		{ "absent", "2", "null", "addr2line", "not here" },
		{ "ours fails", "null", "2", "perf", "needs root" },
		{ "ours fails untold", "null", "null", "", "it failed here" },
	};
	AUTO(buf_fini) struct buf out = BUF_EMPTY;

	(void)state;
	bench_print_json(figures, ARRAY_LEN(figures), &out);
	assert_int_equal(buf_text(&out)[0], '[');
	assert_int_equal(buf_text(&out)[out.len - 1], '\n');
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(buf_fini) struct buf name = BUF_EMPTY;
		char fields[5][160], *at;
		size_t count = 0;

		buf_printf(&name, "\"name\": \"%s\"", cases[i].name);
		at = strstr(buf_text(&out), buf_text(&name));
		if (!at)
			fail_msg("%s is missing: %s", cases[i].name, buf_text(&out));
		snprintf(fields[count++], sizeof(fields[0]), "\"hearth\": %s,", cases[i].hearth);
		snprintf(fields[count++], sizeof(fields[0]), "\"other\": %s,", cases[i].other);
		snprintf(fields[count++], sizeof(fields[0]), "\"beside\": \"%s\",", cases[i].beside);
		snprintf(fields[count++], sizeof(fields[0]), "\"why_not\": \"%s\"\n", cases[i].why);
		for (size_t k = 0; k < count; k++) {
			const char *found = strstr(at, fields[k]), *end = strchr(at, '}');

			if (!found || found > end)
				fail_msg("%s lacks %s: %s", cases[i].name, fields[k], at);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_table), cmocka_unit_test(test_json) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
