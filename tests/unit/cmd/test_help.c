/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Help texts against tests/golden/help_*.txt, and the manual's list of options against the table. To renew the golden files
 * after a change that was meant: hearth help > tests/golden/help_overview.txt, hearth help run > tests/golden/help_run.txt,
 * ...
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "cmd/cmd.h"
#include "cmd/help.h"
#include "cmd/options.h"

static void read_golden(const char *name, struct buf *out)
{
	char path[128], chunk[4096];
	AUTO_FCLOSE FILE *file = NULL;
	size_t n;

	snprintf(path, sizeof(path), TEST_DATA "/golden/help_%s.txt", name);
	file = fopen(path, "r");
	if (!file)
		fail_msg("%s is missing", path);
	while ((n = fread(chunk, 1, sizeof(chunk), file)) > 0)
		buf_append(out, chunk, n);
}

static void check_golden(const struct cmd *cmd)
{
	AUTO(buf_fini) struct buf golden = BUF_EMPTY, help = BUF_EMPTY;

	read_golden(cmd ? cmd->name : "overview", &golden);
	help_write(cmd, &help);
	assert_string_equal(buf_text(&help), buf_text(&golden));
}

static void test_golden(void **state)
{
	(void)state;
	check_golden(NULL);
	for (const struct cmd *const *c = cmd_all(); *c; c++)
		check_golden(*c);
}

static void test_lines_fit(void **state)
{
	(void)state;
	for (const struct cmd *const *c = cmd_all(); *c; c++) {
		AUTO(buf_fini) struct buf help = BUF_EMPTY;

		help_write(*c, &help);
		for (const char *p = buf_text(&help); *p; p += strcspn(p, "\n") + 1) {
			size_t len = strcspn(p, "\n");

			if (len > 100 || (len && p[len - 1] == ' '))
				fail_msg("hearth help %s: %.*s", (*c)->name, (int)len, p);
		}
	}
}

/* The name as roff has it: each '-' escaped. */
static void escape(const char *name, struct buf *out)
{
	for (; *name; name++)
		buf_printf(out, *name == '-' ? "\\%c" : "%c", *name);
}

static void test_manual_names_every_option(void **state)
{
	AUTO(buf_fini) struct buf man = BUF_EMPTY;
	size_t count;
	const struct option_spec *o = options_table(&count);

	(void)state;
	help_write_man(&man);
	assert_non_null(strstr(buf_text(&man), ".TH HEARTH 1"));
	for (size_t i = 0; i < count; i++) {
		AUTO(buf_fini) struct buf flag = BUF_EMPTY;
		char env[OPTION_ENV_BYTES];

		buf_puts(&flag, o[i].name[0] ? "\\fB" : "");
		if (o[i].letter && o[i].name[0])
			buf_printf(&flag, "\\-%c\\fR, \\fB", o[i].letter);
		buf_puts(&flag, o[i].name[0] ? "\\-\\-" : "\\fB\\-");
		if (o[i].name[0])
			escape(o[i].name, &flag);
		else
			buf_putc(&flag, o[i].letter);
		buf_puts(&flag, "\\fR");
		if (!strstr(buf_text(&man), buf_text(&flag)))
			fail_msg("the manual lacks %s", buf_text(&flag));
		if (option_env_name(&o[i], env) && !strstr(buf_text(&man), env))
			fail_msg("the manual lacks %s", env);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden),
		cmocka_unit_test(test_lines_fit),
		cmocka_unit_test(test_manual_names_every_option),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
