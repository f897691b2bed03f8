/* SPDX-License-Identifier: Apache-2.0 */
/* Views, styles and print options of report, as a user asks for them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "cmd/setup/print_of.h"
#include "cmd/setup/view_of.h"
#include "tests/unit/cmd/parsed.h"

static void test_option_given(void **state)
{
	static const struct {
		const char *words[4], *option;
	} cases[] = {
		{ { "x" }, NULL },
		{ { "--process", "1", "x" }, "--process" },
		{ { "--comm", "a", "x" }, "--comm" },
		{ { "--thread", "1", "x" }, "--thread" },
		{ { "--focus", "a", "x" }, "--focus" },
		{ { "--ignore", "a", "x" }, "--ignore" },
		{ { "--hide", "a", "x" }, "--hide" },
		{ { "--hide-idle", "x" }, "--hide-idle" },
		{ { "--by", "comm", "x" }, "--by" },
		{ { "--kind", "off_cpu", "x" }, "--kind" },
		{ { "--depth", "3", "x" }, NULL }, /* leaves no sample out */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct config config = parse_words(&cmd_report, cases[i].words);
		const char *option = view_option_given(&config);

		if (!option != !cases[i].option || (option && strcmp(option, cases[i].option) != 0))
			fail_msg("%s: %s", cases[i].words[0], option);
		config_fini(&config);
	}
}

static void test_view(void **state)
{
	static const struct {
		const char *words[4], *says; /* NULL: there is one */
	} cases[] = {
		{ { "x" }, NULL },
		{ { "--focus", "a+", "--by=thread", "x" }, NULL },
		{ { "--focus", "(", "x" }, "--focus: '(' is no regular expression: " },
		{ { "--comm", "[", "x" }, "--comm: '[' is no regular expression: " },
		{ { "--by", "nonsense", "x" }, "--by: 'nonsense' is nothing to group by" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct config config = parse_words(&cmd_report, cases[i].words);
		int status = -1;
		struct view *view = view_of(&config, &status);

		assert_int_equal(!view, !!cases[i].says);
		assert_int_equal(status, cases[i].says ? STATUS_USAGE : -1);
		assert_true(!cases[i].says || is_said_last(cases[i].says));
		assert_true(!view || view_is_decided(view, &config));
		view_free(view);
		config_fini(&config);
	}
}

static struct report_style style(const char *color, const char *by)
{
	struct config config = PARSED(&cmd_report, "--color", color, "--rows", "7", "--depth", "3", "--by", by, "x");
	struct report_style style = view_style_of(&config);

	config_fini(&config);
	return style;
}

/* Standard output is no terminal here. */
static void test_style(void **state)
{
	struct report_style s = style("always", "comm");

	(void)state;
	assert_int_equal(s.max_rows, 7);
	assert_int_equal(s.max_depth, 3);
	assert_string_equal(s.by, "comm");
	assert_true(s.colour);
	assert_string_equal(style("auto", "label=team").by, "team"); /* the label's name is a heading */
	assert_false(style("never", "comm").colour);
}

static void test_print(void **state)
{
	struct config config = PARSED(&cmd_report, "x");
	struct print_options o = print_options_of(&config);

	(void)state;
	assert_int_equal(o.form, PRINT_PLAIN);
	assert_false(o.skip_without_container_id || o.hide_source || o.show_source || o.raw);
	assert_null(o.sample_types);
	config_fini(&config);

	config = PARSED(&cmd_report, "--print-form", "typed", "x"); /* it has defaults of its own */
	o = print_options_of(&config);
	assert_int_equal(o.form, PRINT_TYPED);
	assert_true(o.skip_without_container_id);
	assert_non_null(o.sample_types);
	assert_null(o.sample_types[0]);
	config_fini(&config);

	config = PARSED(&cmd_report, "--print-form", "typed", "--print-only-containers", "no", "--print-sample-type",
			"samples", "--print-source", "yes", "x");
	o = print_options_of(&config);
	assert_false(o.skip_without_container_id);
	assert_string_equal(o.sample_types[0], "samples");
	assert_true(o.show_source);
	assert_false(o.hide_source);
	config_fini(&config);

	config = PARSED(&cmd_report, "--print-form", "2025-08", "--print-only-containers", "yes", "--print-source", "no",
			"x");
	o = print_options_of(&config);
	assert_int_equal(o.form, PRINT_2025_08);
	assert_true(o.skip_without_container_id && o.hide_source);
	assert_false(o.show_source);
	config_fini(&config);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_option_given),
		cmocka_unit_test(test_view),
		cmocka_unit_test(test_style),
		cmocka_unit_test(test_print),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
