/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three scripts of the same content: the commands, the options of each, and what may stand behind an option: one of a
 * choice, a file, a process. Without a command's name options are those of `hearth run`. Behind `hearth record` stands a
 * command line of its own, which the shell completes as it would alone.
 */
#include "cmd/help/completion.h"

#include <stdbool.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "cmd/options/command.h"
#include "cmd/options/options.h"

enum value { VALUE_FREE, VALUE_WORDS, VALUE_FILE, VALUE_PID, VALUE_FLAG };

static enum value value_of(const struct option_spec *o)
{
	static const char *const files[] = { "FILE", "FOLDER", "DIR" };

	if (o->kind == OPTION_FLAG)
		return VALUE_FLAG;
	if (o->kind == OPTION_CHOICE)
		return VALUE_WORDS;
	if (o->kind == OPTION_PIDS)
		return VALUE_PID;
	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		if (!strcmp(o->argument, files[i]))
			return VALUE_FILE;
	return VALUE_FREE;
}

/* The values of a choice, with spaces between them. */
static void print_words(const struct option_spec *o, struct buf *out)
{
	for (const char *p = o->argument; *p; p++)
		buf_putc(out, *p == '|' ? ' ' : *p);
}

/* Calls @fn for each option of @cmd. */
static void each_option(const struct cmd *cmd,
			void (*fn)(const struct cmd *cmd, const struct option_spec *o, struct buf *out), struct buf *out)
{
	size_t count;
	const struct option_spec *options = options_table(&count);

	for (size_t i = 0; i < count; i++)
		if (options[i].commands & cmd->bit)
			fn(cmd, &options[i], out);
}

static bool takes_files(const struct cmd *cmd)
{
	return strstr(cmd->operands, "FILE") || strstr(cmd->operands, "IN");
}

/* --- bash --- */

static void name_of(const struct cmd *cmd, const struct option_spec *o, struct buf *out)
{
	(void)cmd;
	if (o->name[0])
		buf_printf(out, " --%s", o->name);
	if (o->letter)
		buf_printf(out, " -%c", o->letter);
}

static void name_with_value(const struct cmd *cmd, const struct option_spec *o, struct buf *out)
{
	if (o->kind != OPTION_FLAG)
		name_of(cmd, o, out);
}

/* A branch for the option as the word before. */
static void bash_value(const struct cmd *cmd, const struct option_spec *o, struct buf *out)
{
	if (o->kind == OPTION_FLAG)
		return;
	buf_puts(out, "\t");
	if (o->name[0])
		buf_printf(out, "'%s --%s'%s", cmd->name, o->name, o->letter ? " | " : "");
	if (o->letter)
		buf_printf(out, "'%s -%c'", cmd->name, o->letter);
	buf_puts(out, ")\n");
	switch (value_of(o)) {
	case VALUE_WORDS:
		buf_puts(out, "\t\tmapfile -t COMPREPLY < <(compgen -W '");
		print_words(o, out);
		buf_puts(out, "' -- \"$cur\")\n");
		break;
	case VALUE_FILE:
		buf_puts(out, "\t\tcompopt -o filenames\n\t\tmapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n");
		break;
	case VALUE_PID:
		buf_puts(out, "\t\tmapfile -t COMPREPLY < <(compgen -W \"$(cd /proc && echo [0-9]*)\" -- \"$cur\")\n");
		break;
	default:
		break;
	}
	buf_puts(out, "\t\treturn\n\t\t;;\n");
}

static void write_bash(struct buf *out)
{
	const char *separator = "";

	buf_puts(out, "# bash completion of hearth, made by: hearth help --completion bash\n"
		      "_hearth() {\n"
		      "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} cmd=run first=1 i options "
		      "valued commands\n"
		      "\tCOMPREPLY=()\n"
		      "\t[[ $prev == = ]] && prev=${COMP_WORDS[COMP_CWORD - 2]}\n"
		      "\t[[ $cur == = ]] && cur=''\n"
		      "\tcommands='");
	for (const struct cmd *const *c = cmd_all(); *c; c++) {
		buf_printf(out, "%s%s", separator, (*c)->name);
		separator = " ";
	}
	buf_puts(out, "'\n"
		      "\tif ((COMP_CWORD > 1)) && [[ \" $commands \" == *\" ${COMP_WORDS[1]} \"* ]]; then\n"
		      "\t\tcmd=${COMP_WORDS[1]}\n\t\tfirst=2\n\tfi\n"
		      "\tcase $cmd in\n");
	for (const struct cmd *const *c = cmd_all(); *c; c++) {
		buf_printf(out, "\t%s)\n\t\toptions='", (*c)->name);
		each_option(*c, name_of, out);
		buf_puts(out, "'\n\t\tvalued='");
		each_option(*c, name_with_value, out);
		buf_puts(out, " '\n\t\t;;\n");
	}
	buf_puts(out,
		 "\tesac\n"
		 "\tfor ((i = first; i < COMP_CWORD; i++)); do\n"
		 "\t\t[[ ${COMP_WORDS[i]} == -* && ${COMP_WORDS[i]} != -- ]] || break\n"
		 "\t\t[[ $valued == *\" ${COMP_WORDS[i]} \"* ]] || continue\n"
		 "\t\t[[ ${COMP_WORDS[i + 1]} == = ]] && ((i++))\n"
		 "\t\t((i++))\n"
		 "\tdone\n"
		 "\t[[ ${COMP_WORDS[i]} == -- ]] && ((i < COMP_CWORD)) && ((i++))\n"
		 "\tif [[ $cmd == record ]] && ((i < COMP_CWORD || (i == COMP_CWORD && i > first))) && [[ $cur != -* || "
		 "${COMP_WORDS[i - 1]} == -- || $i -lt $COMP_CWORD ]]; then\n"
		 "\t\tif declare -F _command_offset >/dev/null; then\n\t\t\t_command_offset \"$i\"\n"
		 "\t\telif ((i == COMP_CWORD)); then\n\t\t\tmapfile -t COMPREPLY < <(compgen -c -- \"$cur\")\n"
		 "\t\telse\n\t\t\tcompopt -o filenames\n\t\t\tmapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n\t\tfi\n"
		 "\t\treturn\n\tfi\n"
		 "\tcase \"$cmd $prev\" in\n");
	for (const struct cmd *const *c = cmd_all(); *c; c++)
		each_option(*c, bash_value, out);
	buf_puts(
		out,
		"\tesac\n"
		"\tif [[ $cur == -* ]]; then\n\t\tmapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$cur\")\n"
		"\telif ((COMP_CWORD == 1)) || [[ $cmd == help ]]; then\n"
		"\t\tmapfile -t COMPREPLY < <(compgen -W \"$commands\" -- \"$cur\")\n"
		"\telse\n\t\tcase $cmd in\n\t\trecord)\n\t\t\tmapfile -t COMPREPLY < <(compgen -c -- \"$cur\")\n\t\t\t;;\n");
	for (const struct cmd *const *c = cmd_all(); *c; c++)
		if (takes_files(*c))
			buf_printf(out,
				   "\t\t%s)\n\t\t\tcompopt -o filenames\n\t\t\tmapfile -t COMPREPLY < <(compgen -f -- "
				   "\"$cur\")\n"
				   "\t\t\t;;\n",
				   (*c)->name);
	buf_puts(out, "\t\tesac\n\tfi\n}\ncomplete -F _hearth hearth\n");
}

/* --- zsh --- */

/* Text inside of '...' and of an _arguments specification. */
static void zsh_text(const char *text, struct buf *out)
{
	for (; *text; text++) {
		if (*text == '\'')
			buf_puts(out, "'\\'");
		else if (strchr("[]:\\", *text))
			buf_putc(out, '\\');
		buf_putc(out, *text);
	}
}

static void zsh_action(const struct option_spec *o, struct buf *out)
{
	if (value_of(o) == VALUE_FLAG)
		return;
	buf_putc(out, ':');
	zsh_text(value_of(o) == VALUE_WORDS ? "value" : o->argument, out);
	buf_putc(out, ':');
	if (value_of(o) == VALUE_WORDS) {
		buf_putc(out, '(');
		print_words(o, out);
		buf_putc(out, ')');
	} else if (value_of(o) == VALUE_FILE) {
		buf_puts(out, "_files");
	} else if (value_of(o) == VALUE_PID) {
		buf_puts(out, "_pids");
	}
}

static void zsh_option(const struct cmd *cmd, const struct option_spec *o, struct buf *out)
{
	bool has_value = o->kind != OPTION_FLAG;

	(void)cmd;
	if (o->name[0]) {
		buf_printf(out, "\t\t\t'*--%s%s[", o->name, has_value ? "=" : "");
		zsh_text(o->help, out);
		buf_putc(out, ']');
		zsh_action(o, out);
		buf_puts(out, "' \\\n");
	}
	if (o->letter) {
		buf_printf(out, "\t\t\t'*-%c%s[", o->letter, has_value ? "+" : "");
		zsh_text(o->help, out);
		buf_putc(out, ']');
		zsh_action(o, out);
		buf_puts(out, "' \\\n");
	}
}

/* The function's variables are seen by what it calls: none may have the name of one of zsh's own, such as commands. */
static void write_zsh(struct buf *out)
{
	buf_puts(out, "#compdef hearth\n# zsh completion of hearth, made by: hearth help --completion zsh\n_hearth() {\n"
		      "\tlocal subcommand=run\n\tlocal -a subcommands=(\n");
	for (const struct cmd *const *c = cmd_all(); *c; c++) {
		buf_printf(out, "\t\t'%s:", (*c)->name);
		zsh_text((*c)->summary, out);
		buf_puts(out, "'\n");
	}
	buf_puts(
		out,
		"\t)\n"
		"\tif ((CURRENT == 2)) && [[ $words[2] != -* ]]; then\n\t\t_describe command subcommands\n\t\treturn\n\tfi\n"
		"\tif [[ -n ${subcommands[(r)$words[2]:*]} ]]; then\n\t\tsubcommand=$words[2]\n\t\tshift "
		"words\n\t\t((CURRENT--))\n\tfi\n"
		"\tcase $subcommand in\n");
	for (const struct cmd *const *c = cmd_all(); *c; c++) {
		buf_printf(out, "\t%s)\n\t\t_arguments -s -S \\\n", (*c)->name);
		each_option(*c, zsh_option, out);
		buf_puts(out, (*c)->ends_at_operand ? "\t\t\t'(-)1:command:_command_names -e' '*::arguments:_normal'\n"
			      : takes_files(*c)	    ? "\t\t\t'*:file:_files'\n"
			      : *c == &cmd_help	    ? "\t\t\t'1:command:{_describe command subcommands}'\n"
						    : "\t\t\t&& :\n");
		buf_puts(out, "\t\t;;\n");
	}
	buf_puts(out, "\tesac\n}\nif [[ $funcstack[1] == _hearth ]]; then\n\t_hearth \"$@\"\nelse\n\tcompdef _hearth "
		      "hearth\nfi\n");
}

/* --- fish --- */

static void fish_text(const char *text, struct buf *out)
{
	buf_putc(out, '\'');
	for (; *text; text++) {
		if (*text == '\'' || *text == '\\')
			buf_putc(out, '\\');
		buf_putc(out, *text);
	}
	buf_putc(out, '\'');
}

static void fish_option(const struct cmd *cmd, const struct option_spec *o, struct buf *out)
{
	buf_printf(out, "complete -c hearth -n '__hearth_is %s'", cmd->name);
	if (o->letter)
		buf_printf(out, " -s %c", o->letter);
	if (o->name[0])
		buf_printf(out, " -l %s", o->name);
	switch (value_of(o)) {
	case VALUE_FLAG:
		break;
	case VALUE_WORDS:
		buf_puts(out, " -x -a '");
		print_words(o, out);
		buf_putc(out, '\'');
		break;
	case VALUE_FILE:
		buf_puts(out, " -r -F");
		break;
	case VALUE_PID:
		buf_puts(out, " -x -a '(__fish_complete_pids)'");
		break;
	case VALUE_FREE:
		buf_puts(out, " -x");
		break;
	}
	buf_puts(out, " -d ");
	fish_text(o->help, out);
	buf_putc(out, '\n');
}

/* The command line behind the options of @cmd, as it would be completed alone. */
static void fish_command_line(const struct cmd *cmd, struct buf *out)
{
	buf_printf(out,
		   "function __hearth_%s\n"
		   "\tset -l words (commandline -opc) (commandline -ct)\n"
		   "\tset -e words[1..2]\n"
		   "\twhile set -q words[1]; and string match -q -- '-*' $words[1]\n"
		   "\t\tif test \"$words[1]\" = --\n\t\t\tset -e words[1]\n\t\t\tbreak\n\t\tend\n"
		   "\t\tcontains -- $words[1]",
		   cmd->name);
	each_option(cmd, name_with_value, out);
	buf_printf(out,
		   "; and set -e words[1]\n\t\tset -e words[1]\n\tend\n"
		   "\tset -q words[1]; and complete -C (string join ' ' -- $words)\nend\n"
		   "complete -c hearth -n '__hearth_is %s' -x -a '(__hearth_%s)'\n",
		   cmd->name, cmd->name);
}

static void write_fish(struct buf *out)
{
	buf_puts(out, "# fish completion of hearth, made by: hearth help --completion fish\n"
		      "function __hearth_is\n"
		      "\tset -l words (commandline -opc)\n\tset -l command run\n"
		      "\tif set -q words[2]; and not string match -q -- '-*' $words[2]\n\t\tset command $words[2]\n\tend\n"
		      "\ttest $command = $argv[1]\nend\n"
		      "complete -c hearth -f\n");
	for (const struct cmd *const *c = cmd_all(); *c; c++) {
		buf_printf(out, "complete -c hearth -n __fish_use_subcommand -a %s -d ", (*c)->name);
		fish_text((*c)->summary, out);
		buf_putc(out, '\n');
		each_option(*c, fish_option, out);
		if ((*c)->ends_at_operand)
			fish_command_line(*c, out);
		else if (takes_files(*c))
			buf_printf(out, "complete -c hearth -n '__hearth_is %s' -F\n", (*c)->name);
		if (*c == &cmd_help) {
			buf_puts(out, "complete -c hearth -n '__hearth_is help' -a '");
			for (const struct cmd *const *k = cmd_all(); *k; k++)
				buf_printf(out, "%s ", (*k)->name);
			buf_puts(out, "'\n");
		}
	}
}

void completion_write(const char *shell, struct buf *out)
{
	if (!strcmp(shell, "bash"))
		write_bash(out);
	else if (!strcmp(shell, "zsh"))
		write_zsh(out);
	else
		write_fish(out);
}
