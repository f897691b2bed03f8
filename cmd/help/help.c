/* SPDX-License-Identifier: Apache-2.0 */
/* `hearth help` and --help: two columns, options by group, defaults in brackets, wrapped to HELP_COLUMNS. */
#include "cmd/help/help.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/text/nearest.h"
#include "cmd/options/command.h"
#include "cmd/help/completion.h"
#include "cmd/options/config.h"
#include "cmd/options/foreign.h"
#include "cmd/options/options.h"
#include "cmd/files/output.h"
#include "cmd/help/topics.h"

enum {
	HELP_COLUMNS = 120,
	LEFT_COLUMN = 34,
	COMMAND_COLUMN = 12,
	LONGEST_ARGUMENT = 60, /* longer ones are told in the text */
};

/* Appends @text from column @column on, broken at spaces to lines of HELP_COLUMNS that start at column @indent. */
static void write_wrapped(const char *text, size_t column, size_t indent, struct buf *out)
{
	for (const char *p = text; *p; p += strspn(p, " ")) {
		size_t len = strcspn(p, " \n");

		if (column > indent && column + 1 + len > HELP_COLUMNS) {
			buf_printf(out, "\n%*s", (int)indent, "");
			column = indent;
		} else if (column > indent) {
			buf_putc(out, ' ');
			column++;
		}
		buf_append(out, p, len);
		column += len;
		p += len;
		for (; *p == '\n'; p++) {
			buf_printf(out, "\n%*s", p[1] == '\n' ? 0 : (int)indent, "");
			column = indent;
		}
	}
	buf_putc(out, '\n');
}

/* A row: @left, then @text in the right column. */
static void write_row(const char *left, const char *text, struct buf *out)
{
	size_t len = strlen(left);

	if (len + 2 > LEFT_COLUMN)
		buf_printf(out, "%s\n%*s", left, LEFT_COLUMN, "");
	else
		buf_printf(out, "%-*s", LEFT_COLUMN, left);
	write_wrapped(text, LEFT_COLUMN, LEFT_COLUMN, out);
}

/* " (a, b or c)" of "a|b|c". */
static void write_choices(const char *choices, struct buf *out)
{
	const char *last = strrchr(choices, '|');

	buf_puts(out, " (");
	for (const char *p = choices; *p; p++) {
		if (*p == '|')
			buf_puts(out, p == last ? " or " : ", ");
		else
			buf_putc(out, *p);
	}
	buf_putc(out, ')');
}

static void write_option(const struct option_spec *o, struct buf *out)
{
	AUTO(buf_fini) struct buf left = BUF_EMPTY;
	AUTO(buf_fini) struct buf text = BUF_EMPTY;

	if (o->letter)
		buf_printf(&left, "  -%c%s", o->letter, o->name[0] ? ", " : "");
	else
		buf_puts(&left, "      ");
	if (o->name[0])
		buf_printf(&left, "--%s", o->name);
	buf_puts(&text, o->help);
	if (strlen(o->argument) > LONGEST_ARGUMENT) {
		buf_puts(&left, " WHICH");
		write_choices(o->argument, &text);
	} else if (o->argument[0]) {
		buf_printf(&left, " %s", o->argument);
	}
	if (o->default_text[0])
		buf_printf(&text, " [%s]", o->default_text);
	write_row(buf_text(&left), buf_text(&text), out);
}

static void write_options(const struct cmd *cmd, struct buf *out)
{
	size_t count;
	const struct option_spec *options = options_table(&count);

	for (enum option_group group = 0; group < GROUP_MAX; group++) {
		bool is_open = false;

		for (size_t i = 0; i < count; i++) {
			if (options[i].group != group || !(options[i].commands & cmd->bit))
				continue;
			if (!is_open)
				buf_printf(out, "\n%s:\n", option_group_title(group));
			is_open = true;
			write_option(&options[i], out);
		}
	}
}

static void write_overview(struct buf *out)
{
	buf_puts(out, "hearth shows where the time of a whole Linux machine goes, down to the function.\n\n"
		      "Usage: hearth [COMMAND] [OPTION]...\n\nCommands:\n");
	for (const struct cmd *const *c = cmd_all(); *c; c++) {
		buf_printf(out, "  %-*s", COMMAND_COLUMN - 2, (*c)->name);
		write_wrapped((*c)->summary, COMMAND_COLUMN, COMMAND_COLUMN, out);
	}
	buf_puts(out, "\nExamples:\n");
	for (const struct cmd *const *c = cmd_all(); *c; c++) {
		if ((*c)->example)
			buf_printf(out, "  %s\n", (*c)->example);
	}
	buf_puts(out, "\nTopics:\n ");
	for (const struct topic *t = topics; t->name; t++)
		buf_printf(out, " %s", t->name);
	buf_puts(out, "\n\n");
	write_wrapped(
		"'hearth help COMMAND' lists a command's options. Each option is also a variable: --report-interval is "
		"HEARTH_REPORT_INTERVAL. Exit status: 0 done, 1 failed, 2 wrong usage.",
		0, 0, out);
}

void help_write(const struct cmd *cmd, struct buf *out)
{
	AUTO(buf_fini) struct buf description = BUF_EMPTY;

	if (!cmd) {
		write_overview(out);
		return;
	}
	buf_printf(out, "Usage: hearth %s [OPTION]...%s%s\n\n", cmd->name, cmd->operands[0] ? " " : "", cmd->operands);
	option_text_write(cmd->description, &description);
	write_wrapped(buf_text(&description), 0, 0, out);
	if (cmd->example)
		buf_printf(out, "\nExample: %s\n", cmd->example);
	write_options(cmd, out);
}

int help_print(const struct cmd *cmd)
{
	AUTO(buf_fini) struct buf text = BUF_EMPTY;

	help_write(cmd, &text);
	return output_write(&text);
}

static int help_on_topic(const char *word)
{
	AUTO(buf_fini) struct buf text = BUF_EMPTY;
	struct nearest nearest = nearest_to(word);
	const char *answer = foreign_answer(FOREIGN_COMMAND, 0, word);

	if (!strcmp(word, "topics")) {
		for (const struct topic *t = topics; t->name; t++)
			buf_printf(&text, "hearth help %s\n", t->name);
		return output_write(&text);
	}
	for (const struct topic *t = topics; t->name; t++) {
		nearest_offer(&nearest, t->name);
		if (strcmp(t->name, word))
			continue;
		buf_puts(&text, t->text);
		return output_write(&text);
	}
	for (const struct cmd *const *c = cmd_all(); *c; c++)
		nearest_offer(&nearest, (*c)->name);
	if (answer)
		log_error("there is no 'hearth %s': %s", word, answer);
	else if (nearest.best)
		log_error("no help on '%s'; did you mean 'hearth help %s'?", word, nearest.best);
	else
		log_error("no help on '%s': there is no such command or topic; 'hearth help' lists them", word);
	return STATUS_USAGE;
}

static int run_help(const struct config *config)
{
	AUTO(buf_fini) struct buf text = BUF_EMPTY;
	const struct cmd *cmd = NULL;

	if (config->man) {
		help_write_man(&text);
		return output_write(&text);
	}
	if (config->completion) {
		completion_write(config->completion, &text);
		return output_write(&text);
	}
	if (!config->operand_count)
		return help_print(NULL);
	cmd = cmd_find(config->operands[0]);
	return cmd ? help_print(cmd) : help_on_topic(config->operands[0]);
}

const struct cmd cmd_help = {
	.name = "help",
	.bit = ON_HELP,
	.summary = "explain the commands and their options",
	.operands = "[COMMAND|TOPIC]",
	.description = "Explains a command or a topic, or lists them all. --man prints the manual page, for `hearth help "
		       "--man | man -l -`.",
	.max_operands = 1,
	.run = run_help,
};
