/* SPDX-License-Identifier: Apache-2.0 */
/* A comparison whose figures are made by hand, in every form that shows one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "proto/report/diff_table.h"
#include "tests/unit/proto/diff_results.h"
#include "tests/unit/proto/golden.h"
#include "tests/unit/proto/text_profiles.h"

/* Both measures, without and with what a terminal has, whole and cut. */
static void test_table(void **state)
{
	static const struct report_style styles[] = { { 0 },
						      { .columns = 100, .colour = true, .max_rows = 2 },
						      { .columns = 60 } };
	AUTO(buf_fini) struct buf out = BUF_EMPTY;

	(void)state;
	for (enum diff_measure measure = DIFF_SHARES; measure <= DIFF_TIMES; measure++) {
		struct diff_result r = result(measure);

		for (size_t i = 0; i < ARRAY_LEN(styles); i++) {
			buf_printf(&out, "--- %s, %u columns\n", measure == DIFF_TIMES ? "times" : "shares",
				   styles[i].columns);
			assert_int_equal(report_diff(&r, &styles[i], &out), 0);
		}
	}
	assert_golden(&out, "report_diff_table.txt");
}

/* Of twelve changed stacks ten are shown; of runs without times, and of nothing that changed, it says no more than it knows.
 */
static void test_table_ends(void **state)
{
	struct diff_stack many[12];
	struct diff_result r = result(DIFF_SHARES);
	AUTO(buf_fini) struct buf out = BUF_EMPTY;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(many); i++)
		many[i] = stacks[i % 3];
	r.stacks = many;
	for (r.stack_count = 10; r.stack_count <= 12; r.stack_count += 2) {
		r.summary.changed_stacks = r.stack_count;
		r.summary.changed_functions = 0;
		assert_int_equal(report_diff(&r, &(struct report_style){ 0 }, &out), 0);
	}
	r.summary = (struct diff_summary){ .runs = { 1, 1 },
					   .events = { 1, 2 },
					   .seconds = { 0, 9 },
					   .judged_functions = 7,
					   .judged_stacks = 8,
					   .measure = DIFF_SHARES,
					   .sharpness = 0.5 };
	assert_int_equal(report_diff(&r, &(struct report_style){ 0 }, &out), 0);
	assert_int_equal(report_diff_markdown(&r, &(struct report_style){ 0 }, &out), 0);
	assert_golden(&out, "report_diff_ends.txt");
}

static void test_markdown_and_data(void **state)
{
	AUTO(buf_fini) struct buf out = BUF_EMPTY;

	(void)state;
	for (enum diff_measure measure = DIFF_SHARES; measure <= DIFF_TIMES; measure++) {
		struct diff_result r = result(measure);

		assert_int_equal(report_diff_markdown(&r, &(struct report_style){ .max_rows = measure }, &out), 0);
		assert_int_equal(report_diff_csv(&r, &out), 0);
		assert_int_equal(report_diff_json(&r, &out), 0);
	}
	assert_golden(&out, "report_diff_data.txt");
}

/* Names come out of other people's files. Whatever they hold, a row stays one row of seven cells, and Markdown finds no
 * link, no HTML and no emphasis in it. */
static void test_markdown_names(void **state)
{
	static const struct {
		const char *name, *shown;
	} cases[] = {
		{ "plain", "plain" },
		{ "a|b", "a&#124;b" },
		{ "a\\|b", "a&#92;&#124;b" },
		{ "`a`", "&#96;a&#96;" },
		{ "Vec<T>::at", "Vec&#60;T&#62;::at" },
		{ "</code><script>", "&#60;/code&#62;&#60;script&#62;" },
		{ "&lt;", "&#38;lt;" },
		{ "[a](b)", "&#91;a&#93;(b)" },
		{ "![a][b]", "!&#91;a&#93;&#91;b&#93;" },
		{ "*a* __b__ ~c~ $d$", "&#42;a&#42; &#95;&#95;b&#95;&#95; &#126;c&#126; &#36;d&#36;" },
		{ "a\nb\rc\td\x7f\033[1m", "a?b?c?d??&#91;1m" },
		{ "a\xc2\x85"
		  "b\xff",
		  "a?b?" },
		{ "https://a.b/c", "https&#58;//a.b/c" },
		{ "www.a.b WWW.a w.a", "www&#46;a.b WWW&#46;a w.a" },
		{ "a@b.cd", "a@<wbr>b.cd" },
		{ "", "" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(buf_fini) struct buf out = BUF_EMPTY, row = BUF_EMPTY;
		struct diff_function f = { .name = cases[i].name,
					   .module = cases[i].name,
					   .self = { 0.5, 0.75, 0.25, 0.125, true } };
		struct diff_result r = result(DIFF_SHARES);

		r.functions = &f;
		r.function_count = 1;
		assert_int_equal(report_diff_markdown(&r, &(struct report_style){ 0 }, &out), 0);
		buf_printf(&row,
			   "|---|\n| **+25.00%%** | ±12.50%% | 50.00%% | 75.00%% | +50.0%% | itself | <code>%s</code>%s%s%s "
			   "|\n\n<sub>",
			   cases[i].shown, *cases[i].shown ? " (<code>" : "", cases[i].shown,
			   *cases[i].shown ? "</code>)" : "");
		if (!strstr(buf_text(&out), buf_text(&row)))
			fail_msg("%s is not in\n%s", buf_text(&row), buf_text(&out));
	}
}

static void free_diff(struct diff **d)
{
	diff_free(*d);
}

/* Picture and page take their bands from a comparison. Its runs are known as @measure; of runs without stacks the shown
 * result is of no account. */
static struct diff *compared(enum diff_measure measure)
{
	struct diff *d = diff_new(NULL);
	const struct diff_result *r;

	assert_non_null(d);
	for (int run = 0; run < 4; run++) {
		AUTO(put_profiles)
		struct profiles *p = text_profiles(run % 2 ? "c;f@app 900\nc;g@app 100\n" : "c;f@app 880\nc;g@app 120\n", 0);

		assert_int_equal(diff_add_run(d, run < 2 ? DIFF_A : DIFF_B, p), 0);
	}
	assert_int_equal(diff_judge(d, measure, 0, &r), 0);
	return d;
}

static void test_pictures(void **state)
{
	AUTO(buf_fini) struct buf out = BUF_EMPTY;

	(void)state;
	for (enum diff_measure measure = DIFF_SHARES; measure <= DIFF_TIMES; measure++) {
		AUTO(free_diff) struct diff *d = compared(measure);
		AUTO(buf_fini) struct buf svg = BUF_EMPTY, html = BUF_EMPTY;
		struct diff_result r = result(measure);

		assert_int_equal(report_diff_svg(d, &r, &svg), 0);
		golden_part(&svg, ".u0{", "</text>", &out);
		golden_part(&svg, "<g id=\"frames\"", "<script>", &out);
		assert_int_equal(report_diff_html(d, &r, &html), 0);
		golden_part(&html, "<h1>", "</h1>", &out);
		golden_part(&html, "<script id=\"data\"", "</script>", &out);
	}
	golden_rounded(&out);
	assert_golden(&out, "report_diff_pictures.txt");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_table_ends),
		cmocka_unit_test(test_markdown_and_data),
		cmocka_unit_test(test_markdown_names),
		cmocka_unit_test(test_pictures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
