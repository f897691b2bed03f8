/* SPDX-License-Identifier: Apache-2.0 */
/* Every option of the table with values that it takes and values that it does not: at its limits, by flag, by file,
 * elsewhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "cmd/options/command.h"
#include "cmd/options/config.h"
#include "cmd/options/config_file.h"
#include "cmd/options/options.h"

static bool is_number(const struct option_spec *o)
{
	return o->kind == OPTION_U64 || o->kind == OPTION_FREQ || o->kind == OPTION_DURATION || o->kind == OPTION_SIZE;
}

/* As option_set() reads it; nanoseconds by a fraction of their second. */
static void print_value(const struct option_spec *o, uint64_t v, char *text, size_t size)
{
	if (o->kind == OPTION_DURATION)
		snprintf(text, size, "%" PRIu64 ".%09" PRIu64 "s", v / 1000000000, v % 1000000000);
	else
		snprintf(text, size, "%" PRIu64, v);
}

static void check_set(const struct option_spec *o, uint64_t v, const char *refused)
{
	AUTO(buf_fini) struct buf error = BUF_EMPTY;
	AUTO(config_fini) struct config config = { 0 };
	char text[64], want[128];
	int err;

	print_value(o, v, text, sizeof(text));
	err = option_set(o, text, "here", &config, &error);
	snprintf(want, sizeof(want), "here: '%s' is too %s; the %s is ", text, refused ? refused : "",
		 refused && *refused == 's' ? "least" : "most");
	if (!refused && (err || *(const uint64_t *)((const char *)&config + o->offset) != v))
		fail_msg("--%s %s: %s", o->name, text, buf_text(&error));
	if (refused && (err != -EINVAL || strncmp(buf_text(&error), want, strlen(want))))
		fail_msg("--%s %s: %d %s", o->name, text, err, err ? buf_text(&error) : "");
}

static void test_limits(void **state)
{
	size_t count, seen = 0;
	const struct option_spec *o = options_table(&count);

	(void)state;
	for (size_t i = 0; i < count; i++) {
		if (!is_number(&o[i]))
			continue;
		seen++;
		check_set(&o[i], o[i].least, NULL);
		check_set(&o[i], o[i].most, NULL);
		if (o[i].least)
			check_set(&o[i], o[i].least - 1, "small");
		if (o[i].most < UINT64_MAX)
			check_set(&o[i], o[i].most + 1, "large");
	}
	assert_true(seen > 20);
}

static void test_fractions(void **state)
{
	size_t count;
	const struct option_spec *o = options_table(&count);

	(void)state;
	for (size_t i = 0; i < count; i++) {
		const double values[] = { (double)o[i].least, (double)o[i].most, (double)o[i].least - 0.1,
					  (double)o[i].most + 0.1 };

		for (size_t k = 0; k < ARRAY_LEN(values) && o[i].kind == OPTION_DOUBLE; k++) {
			AUTO(buf_fini) struct buf error = BUF_EMPTY;
			AUTO(config_fini) struct config config = { 0 };
			char text[64];

			snprintf(text, sizeof(text), "%g", values[k]);
			if (option_set(&o[i], text, "here", &config, &error) != (k < 2 ? 0 : -EINVAL))
				fail_msg("--%s %s", o[i].name, text);
			if (k >= 2)
				assert_non_null(strstr(buf_text(&error),
						       k == 2 ? "is too small; the least" : "is too large; the most"));
		}
	}
}

/* What no option of this kind takes; NULL: it takes any text. */
static const char *bad_value(const struct option_spec *o)
{
	switch (o->kind) {
	case OPTION_STRING:
	case OPTION_LIST:
		return NULL;
	case OPTION_WORDS:
		return "a,,b";
	default:
		return "n?nsense";
	}
}

/* Whether another option of that name, of other commands, takes what @o does not: in the file it may be either. */
static bool has_free_twin(const struct option_spec *o)
{
	size_t count;
	const struct option_spec *all = options_table(&count);

	for (size_t i = 0; i < count; i++)
		if (!strcmp(all[i].name, o->name) && !bad_value(&all[i]))
			return true;
	return false;
}

/* By flag and by file; there it is said in which line, and that is all that is said. */
static void test_bad_values(void **state)
{
	size_t count, seen = 0;
	const struct option_spec *o = options_table(&count);

	(void)state;
	for (size_t i = 0; i < count; i++) {
		AUTO(buf_fini) struct buf error = BUF_EMPTY, text = BUF_EMPTY, problems = BUF_EMPTY;
		AUTO(config_fini) struct config config = { 0 };
		struct config_file *file = NULL;
		const char *bad = bad_value(&o[i]);
		char want[128];

		if (!bad)
			continue;
		seen++;
		if (option_set(&o[i], bad, "here", &config, &error) != -EINVAL)
			fail_msg("--%s %s", o[i].name, bad);
		assert_int_equal(strncmp(buf_text(&error), "here: ", 6), 0);
		if (!o[i].name[0] || o[i].commands & ON_NO_ENV || has_free_twin(&o[i]))
			continue;
		buf_reset(&error);
		buf_printf(&text, "# first\n%s: '%s'\n", o[i].name, bad);
		assert_int_equal(config_file_parse("c", buf_text(&text), text.len, &file, &error), 0);
		snprintf(want, sizeof(want), "c:2: %s: '%s' ", o[i].name, bad);
		if (config_file_check(file, &problems) != 1 || (strncmp(buf_text(&problems), want, strlen(want)) &&
								!strstr(buf_text(&problems), "there is no 'n?nsense'")))
			fail_msg("%s: %s", o[i].name, problems.len ? buf_text(&problems) : "nothing wrong");
		config_file_free(file);
	}
	assert_true(seen > 60);
}

/* Each option where its commands take it, and unknown to all others. */
static void test_elsewhere(void **state)
{
	size_t count;
	const struct option_spec *o = options_table(&count);

	(void)state;
	clearenv();
	for (const struct cmd *const *c = cmd_all(); *c; c++) {
		for (size_t i = 0; i < count; i++) {
			AUTO(buf_fini) struct buf error = BUF_EMPTY;
			AUTO(config_fini) struct config config = { 0 };
			char name[64], flag[80];
			char *argv[] = { name, flag, NULL };
			bool is_known;

			if (!o[i].name[0])
				continue;
			snprintf(name, sizeof(name), "%s", (*c)->name);
			snprintf(flag, sizeof(flag), "--%s%s", o[i].name, o[i].kind == OPTION_FLAG ? "" : "=");
			(void)options_parse(*c, 2, argv, &config, &error);
			is_known = !error.len || strncmp(buf_text(&error), "unknown option", 14) != 0;
			/* Of another command's it may say more than that it is unknown, but not take it. */
			if (o[i].commands & (*c)->bit && !is_known)
				fail_msg("hearth %s %s: %s", name, flag, buf_text(&error));
			if (!(o[i].commands & (*c)->bit) && !error.len) {
				bool is_twin = false;

				for (size_t k = 0; k < count; k++)
					is_twin |= k != i && !strcmp(o[k].name, o[i].name) && o[k].commands & (*c)->bit;
				if (!is_twin)
					fail_msg("hearth %s takes %s", name, flag);
			}
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_fractions),
		cmocka_unit_test(test_bad_values),
		cmocka_unit_test(test_elsewhere),
	};

	cmd_list(all_commands);
	if (options_fill_in(all_option_texts))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
