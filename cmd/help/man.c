/* SPDX-License-Identifier: Apache-2.0 */
/* The manual page, in man(7) macros, from the same tables as the help. */
#include "cmd/help/help.h"

#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "cmd/options/command.h"
#include "cmd/options/environment.h"
#include "cmd/options/options.h"

/* Text as roff takes it: '-' is a minus sign, a line must not begin with a control character, a blank line is a paragraph.
 */
static void write_text(const char *text, struct buf *out)
{
	bool at_start = true;

	for (const char *p = text; *p; p++) {
		if (*p == '\n' && p[1] == '\n') {
			buf_puts(out, "\n.PP");
			continue;
		}
		if (at_start && (*p == '.' || *p == '\''))
			buf_puts(out, "\\&");
		if (*p == '-')
			buf_puts(out, "\\-");
		else if (*p == '\\')
			buf_puts(out, "\\e");
		else
			buf_putc(out, *p);
		at_start = *p == '\n';
	}
}

static void write_line(const char *text, struct buf *out)
{
	write_text(text, out);
	buf_putc(out, '\n');
}

static void write_commands(struct buf *out)
{
	buf_puts(out, ".SH COMMANDS\n");
	for (const struct cmd *const *c = cmd_all(); *c; c++) {
		AUTO(buf_fini) struct buf description = BUF_EMPTY;

		option_text_write((*c)->description, &description);
		buf_printf(out, ".SS hearth %s", (*c)->name);
		buf_puts(out, (*c)->operands[0] ? " " : "");
		write_line((*c)->operands, out);
		write_line(buf_text(&description), out);
	}
}

static void write_option(const struct option_spec *o, struct buf *out)
{
	const char *separator = "";

	buf_puts(out, ".TP\n\\fB");
	if (o->letter)
		buf_printf(out, "\\-%c", o->letter);
	if (o->name[0]) {
		buf_puts(out, o->letter ? "\\fR, \\fB\\-\\-" : "\\-\\-");
		write_text(o->name, out);
	}
	buf_puts(out, "\\fR");
	if (o->argument[0]) {
		buf_puts(out, " \\fI");
		write_text(o->argument, out);
		buf_puts(out, "\\fR");
	}
	buf_putc(out, '\n');
	write_text(o->help, out);
	if (o->default_text[0]) {
		buf_puts(out, " [");
		write_text(o->default_text, out);
		buf_putc(out, ']');
	}
	buf_puts(out, ".\n(");
	if ((o->commands & ON_ALL) == ON_ALL) {
		buf_puts(out, "All commands.)\n");
		return;
	}
	for (const struct cmd *const *c = cmd_all(); *c; c++) {
		if (o->commands & (*c)->bit) {
			buf_printf(out, "%s%s", separator, (*c)->name);
			separator = ", ";
		}
	}
	buf_puts(out, ")\n");
}

static void write_options(struct buf *out)
{
	size_t count;
	const struct option_spec *options = options_table(&count);

	buf_puts(out, ".SH OPTIONS\nThe default stands in brackets, the commands that take the option in parentheses.\n");
	for (enum option_group group = 0; group < GROUP_MAX; group++) {
		buf_printf(out, ".SS %s\n", option_group_title(group));
		for (size_t i = 0; i < count; i++) {
			if (options[i].group == group)
				write_option(&options[i], out);
		}
	}
}

static void write_environment(struct buf *out)
{
	size_t count;
	const struct option_spec *options = options_table(&count);
	char name[OPTION_ENV_BYTES], otel[2][64];

	buf_puts(out, ".SH ENVIRONMENT\n");
	write_line("Each variable stands for an option and counts when the option is not given. Flags take yes or no; "
		   "options that may "
		   "be repeated take one value a line. An empty variable counts as unset.",
		   out);
	for (size_t i = 0; i < count; i++) {
		int otel_count = environment_otel_names(cmd_find("run"), &options[i], otel);

		if (!option_env_name(&options[i], name))
			continue;
		buf_printf(out, ".TP\n.B %s\n", name);
		write_text("--", out);
		write_text(options[i].name, out);
		if (otel_count == 1)
			buf_printf(out, ", then\n.B %s", otel[0]);
		else if (otel_count)
			buf_printf(out, ", then\n.BR %s ,\nthen\n.B %s", otel[0], otel[1]);
		buf_putc(out, '\n');
	}
	buf_puts(out, ".TP\n.BR OTEL_EXPORTER_OTLP_PROFILES_PROTOCOL ,\nthen\n.B OTEL_EXPORTER_OTLP_PROTOCOL\n");
	write_line("What is sent is http/protobuf; another value is warned of.", out);
}

void help_write_man(struct buf *out)
{
	buf_puts(out, ".TH HEARTH 1 \"\" \"hearth " HEARTH_VERSION "\" \"User Commands\"\n"
		      ".SH NAME\nhearth \\- whole\\-system continuous profiler\n.SH SYNOPSIS\n");
	for (const struct cmd *const *c = cmd_all(); *c; c++) {
		buf_printf(out, "%s.B hearth %s\n[\\fIOPTION\\fR]... ", c == cmd_all() ? "" : ".br\n", (*c)->name);
		write_line((*c)->operands, out);
	}
	buf_puts(out, ".SH DESCRIPTION\n");
	write_line("hearth samples every CPU of a Linux machine, walks the stacks of kernel and programs (frame pointers "
		   "are not needed), "
		   "names the functions, and speaks OTLP profiles. The same program receives, prints and reports them.\n\n"
		   "Without a command it is hearth run.",
		   out);
	write_commands(out);
	write_options(out);
	write_environment(out);
	buf_puts(out, ".SH FILES\n");
	write_line("$XDG_CONFIG_HOME/hearth.yaml (~/.config/hearth.yaml), else /etc/hearth.yaml: settings, as 'hearth help "
		   "configuration' explains them.",
		   out);
	buf_puts(out, ".SH EXIT STATUS\n0 done, 1 failed, 2 wrong usage.\n");
	write_line("hearth record with a command passes on the command's status: 128 + the signal that killed it, 126 when "
		   "it could not "
		   "be executed, 127 when it was not found.",
		   out);
	buf_puts(out, ".SH EXAMPLES\n.nf\n");
	for (const struct cmd *const *c = cmd_all(); *c; c++) {
		if ((*c)->example)
			write_line((*c)->example, out);
	}
	buf_puts(out, ".fi\n");
}
