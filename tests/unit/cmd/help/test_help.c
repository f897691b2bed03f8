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
#include "cmd/options/command.h"
#include "cmd/help/completion.h"
#include "cmd/help/help.h"
#include "cmd/options/options.h"

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

static void check_lines(const struct cmd *cmd)
{
	AUTO(buf_fini) struct buf help = BUF_EMPTY;

	help_write(cmd, &help);
	for (const char *p = buf_text(&help); *p; p += strcspn(p, "\n") + 1) {
		size_t len = strcspn(p, "\n");

		if (len > 120 || (len && p[len - 1] == ' '))
			fail_msg("hearth help %s: %.*s", cmd ? cmd->name : "", (int)len, p);
	}
}

static void test_lines_fit(void **state)
{
	(void)state;
	check_lines(NULL);
	for (const struct cmd *const *c = cmd_all(); *c; c++)
		check_lines(*c);
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

/* Sections of the manual: each command with its operands, and whole entries of options and variables. */
static void test_manual_entries(void **state)
{
	static const char *const entries[] = {
		"\n.B hearth convert\n[\\fIOPTION\\fR]... IN OUT\n.br\n",
		"\n\\fB\\-\\-log\\-format\\fR \\fItext|json|logfmt\\fR\n", /* without a letter */
		" level [text].\n(All commands.)\n",			   /* with what it is when not given */
		".TP\n\\fB\\-v\\fR, \\fB\\-\\-verbose\\fR\nsay more about what happens.\n(All commands.)\n",
		"\n(run, serve, check)\n",
		"reports them.\n.PP\nWithout a command it is hearth run.\n",
		".TP\n.B HEARTH_FREQ\n\\-\\-freq\n.TP\n",
		("\n\\-\\-collector, then\n.BR OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT ,\nthen\n.B "
		 "OTEL_EXPORTER_OTLP_ENDPOINT\n"),
		"\nhearth convert x.otlp x.pb.gz\n", /* an example */
	};
	AUTO(buf_fini) struct buf man = BUF_EMPTY;
	const char *at;

	(void)state;
	help_write_man(&man);
	at = strstr(buf_text(&man), "\n.SH COMMANDS\n");
	for (const struct cmd *const *c = cmd_all(); *c; c++) { /* in their order */
		AUTO(buf_fini) struct buf head = BUF_EMPTY;

		buf_printf(&head, "\n.SS hearth %s%s", (*c)->name, (*c)->operands[0] ? " " : "");
		for (const char *p = (*c)->operands; *p; p++)
			buf_printf(&head, *p == '-' ? "\\%c" : "%c", *p);
		buf_putc(&head, '\n');
		at = at ? strstr(at, buf_text(&head)) : NULL;
		if (!at)
			fail_msg("the manual lacks %s", buf_text(&head));
	}
	for (enum option_group group = 0; group < GROUP_MAX; group++) {
		AUTO(buf_fini) struct buf head = BUF_EMPTY;

		buf_printf(&head, "\n.SS %s\n", option_group_title(group));
		at = strstr(at, buf_text(&head));
		if (!at)
			fail_msg("the manual lacks %s", buf_text(&head));
	}
	for (size_t i = 0; i < ARRAY_LEN(entries); i++)
		if (!strstr(buf_text(&man), entries[i]))
			fail_msg("the manual lacks %s", entries[i]);
	assert_null(strstr(buf_text(&man), "\n\n"));
}

/* What each shell is told of an option with a value of each kind, and of a text with its own quotes in it. */
static void test_completion(void **state)
{
	static const struct {
		const char *shell, *line;
	} cases[] = {
		{ "zsh", "\t\t\t'*--symbols=[" },
		{ "zsh", "]:value:(full tables off)' \\\n" },
		{ "zsh", "]:FILE:_files' \\\n" },
		{ "zsh", "\t\t\t'*-p+[" },
		{ "zsh", "]:PID,...:_pids' \\\n" },
		{ "zsh", "]:HZ:' \\\n" },
		{ "zsh", "\t\t\t'*--no-inherit[" },
		{ "zsh", "hearth'\\''s" },
		{ "zsh", "\\:" },
		{ "fish", " -l symbols -x -a 'full tables off' -d '" },
		{ "fish", " -s p -l pid -x -a '(__fish_complete_pids)' -d '" },
		{ "fish", " -s F -l freq -x -d '" },
		{ "fish", " -l no-inherit -d '" },
		{ "fish", " -s o -l output -r -F -d '" },
		{ "fish", "hearth\\'s" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(buf_fini) struct buf out = BUF_EMPTY;

		completion_write(cases[i].shell, &out);
		if (!strstr(buf_text(&out), cases[i].line))
			fail_msg("%s is not told: %s", cases[i].shell, cases[i].line);
		assert_null(strstr(buf_text(&out), "::("));
	}
}

/* Behind `hearth help` fish offers each command. */
static void test_completion_of_help(void **state)
{
	AUTO(buf_fini) struct buf out = BUF_EMPTY;
	const char *line;

	(void)state;
	completion_write("fish", &out);
	line = strstr(buf_text(&out), "complete -c hearth -n '__hearth_is help' -a '");
	assert_non_null(line);
	line = strchr(strstr(line, "-a '"), '\'') + 1;
	for (const struct cmd *const *c = cmd_all(); *c; c++) {
		assert_memory_equal(line, (*c)->name, strlen((*c)->name));
		line += strlen((*c)->name);
		assert_int_equal(*line++, ' ');
	}
	assert_int_equal(*line, '\'');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden),
		cmocka_unit_test(test_lines_fit),
		cmocka_unit_test(test_manual_names_every_option),
		cmocka_unit_test(test_manual_entries),
		cmocka_unit_test(test_completion),
		cmocka_unit_test(test_completion_of_help),
	};

	cmd_list(all_commands);
	if (options_fill_in(all_option_texts))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
