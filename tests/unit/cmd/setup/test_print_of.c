/* SPDX-License-Identifier: Apache-2.0 */
/* Options of the print sink: each alone, and what the typed form has when nothing is said. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cmd/setup/print_of.h"
#include "tests/unit/cmd/parsed.h"

/* The options, each a letter where it is on, and the lists behind them. */
static void check(const char *const *words, const char *expected)
{
	static const char *const forms[] = { "plain", "typed", "debug", "2025-09", "2025-08" };
	struct config config = parse_words(&cmd_run, words);
	const struct print_options o = print_options_of(&config);
	AUTO(buf_fini) struct buf text = BUF_EMPTY;

	buf_printf(&text, "%s %s%s%s%s%s%s%s%s%s", forms[o.form], o.skip_without_container_id ? "c" : "",
		   o.hide_resource_attributes ? "r" : "", o.hide_profile_attributes ? "p" : "",
		   o.hide_sample_attributes ? "s" : "", o.hide_frames ? "f" : "", o.hide_source ? "h" : "",
		   o.show_source ? "S" : "", o.raw ? "R" : "", o.container_id ? o.container_id : "");
	buf_puts(&text, o.sample_types ? " types" : "");
	for (const char *const *t = o.sample_types; t && *t; t++)
		buf_printf(&text, " %s", *t);
	buf_puts(&text, o.frame_types ? " frames" : "");
	for (const char *const *t = o.frame_types; t && *t; t++)
		buf_printf(&text, " %s", *t);
	assert_string_equal(buf_text(&text), expected);
	config_fini(&config);
}

#define CHECK(expected, ...) check((const char *const[]){ __VA_ARGS__, NULL }, expected)

static void test_each(void **state)
{
	(void)state;
	CHECK("plain ", NULL);
	CHECK("plain ", "--print-form", "plain");
	CHECK("debug ", "--print-form", "debug");
	CHECK("2025-09 ", "--print-form", "2025-09");
	CHECK("2025-08 ", "--print-form", "2025-08");
	CHECK("plain c", "--print-only-containers", "yes");
	CHECK("plain ", "--print-only-containers", "no");
	CHECK("plain r", "--print-no-resource-attributes");
	CHECK("plain p", "--print-no-profile-attributes");
	CHECK("plain s", "--print-no-sample-attributes");
	CHECK("plain f", "--print-no-frames");
	CHECK("plain S", "--print-source", "yes");
	CHECK("plain h", "--print-source", "no");
	CHECK("plain R", "--print-raw");
	CHECK("plain 0123abc", "--print-container", "0123abc");
	CHECK("plain  types samples events", "--print-sample-type", "samples", "--print-sample-type", "events");
	CHECK("plain  frames go native", "--print-frame-type", "go", "--print-frame-type", "native");
}

/* It shows what has a container alone, and no sample type but those that are named. */
static void test_typed(void **state)
{
	(void)state;
	CHECK("typed c types", "--print-form", "typed");
	CHECK("typed  types", "--print-form", "typed", "--print-only-containers", "no");
	CHECK("typed c types samples", "--print-form", "typed", "--print-sample-type", "samples");
}

int main(void)
{
	static const struct CMUnitTest tests[] = { cmocka_unit_test(test_each), cmocka_unit_test(test_typed) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
