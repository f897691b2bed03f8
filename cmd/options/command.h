/* SPDX-License-Identifier: Apache-2.0 */
/* A command of hearth: one const entry at the bottom of the file that implements it. cmd/cmd.c lists them all. */
#ifndef HEARTH_CMD_OPTIONS_COMMAND_H
#define HEARTH_CMD_OPTIONS_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

struct config;

/* The commands an option belongs to. */
enum on_command {
	ON_RUN = 1 << 0,
	ON_RECORD = 1 << 1,
	ON_REPORT = 1 << 2,
	ON_SERVE = 1 << 3,
	ON_CHECK = 1 << 4,
	ON_VERSION = 1 << 5,
	ON_HELP = 1 << 6,
	ON_CONVERT = 1 << 7,
	ON_SYMBOLS = 1 << 8,
	ON_TOP = 1 << 9,
	ON_STORE = 1 << 10,
	ON_DIFF = 1 << 11,
	ON_VIEW = 1 << 12,
	ON_BENCH = 1 << 13,
	ON_LIVE = ON_RUN | ON_TOP,
	ON_AGENT = ON_RUN | ON_RECORD | ON_TOP,
	ON_PRINT = ON_RUN | ON_SERVE | ON_REPORT,
	ON_ALL = (1 << 14) - 1,
	/* not commands: */
	ON_NO_ENV = 1 << 16,  /* the option has no variable, */
	ON_NO_FILE = 1 << 17, /* is no key of a configuration file, */
	ON_RELOAD = 1 << 18,  /* counts at once when that is read again */
};

/* Exit statuses. A recorded command's own status is passed on as shells do: 126, 127, 128 + signal. */
enum {
	STATUS_DONE = 0,
	STATUS_FAILED = 1,
	STATUS_USAGE = 2,
	STATUS_CHANGED = 3,
	STATUS_NOT_EXECUTABLE = 126,
	STATUS_NOT_FOUND = 127
};

struct cmd {
	const char *name;
	enum on_command bit;
	const char *summary;	 /* one line of the overview */
	const char *operands;	 /* as in the usage line; "" when it takes none */
	const char *description; /* paragraphs of help and manual; may name texts (struct option_text) */
	const char *example;	 /* a command line, or NULL */
	size_t min_operands, max_operands;
	bool ends_at_operand;			 /* the first operand begins a command line of its own */
	int (*run)(const struct config *config); /* returns the exit status; logs what went wrong */
};

extern const struct cmd cmd_run, cmd_top, cmd_record, cmd_report, cmd_diff, cmd_view, cmd_convert, cmd_symbols, cmd_store,
	cmd_serve, cmd_check, cmd_bench, cmd_version, cmd_help;

/* All commands, in the order of the overview; NULL-terminated. cmd/cmd.c. */
extern const struct cmd *const all_commands[];

/* Tells the functions below, and so options and help, which commands there are. @all is borrowed; main() says it first. */
void cmd_list(const struct cmd *const *all);

/* The list that was told; NULL-terminated. */
const struct cmd *const *cmd_all(void);

/* The command called @name, or NULL. */
const struct cmd *cmd_find(const char *name);

#endif
