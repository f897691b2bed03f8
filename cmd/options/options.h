/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table made of options.def, and the parser it drives. An option's value comes from the first of: its flag, its HEARTH_
 * variable, OpenTelemetry's standard variables (the collector's options only; see environment.c), the configuration file,
 * the default.
 */
#ifndef HEARTH_CMD_OPTIONS_OPTIONS_H
#define HEARTH_CMD_OPTIONS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cmd/options/config.h"

struct buf;
struct cmd;

enum option_kind {
	OPTION_FLAG,
	OPTION_U64,
	OPTION_DOUBLE,
	OPTION_DURATION,
	OPTION_SIZE,
	OPTION_STRING,
	OPTION_CHOICE,
	OPTION_LIST,  /* a value each time it is given */
	OPTION_WORDS, /* values with commas between them */
	OPTION_PIDS,
	OPTION_FREQ, /* a number, or "max", which is 0 */
};

enum option_group {
	GROUP_SAMPLING,
	GROUP_FILTERS,
	GROUP_OUTPUT,
	GROUP_PRINT,
	GROUP_ENRICH,
	GROUP_NAMES,
	GROUP_COLLECTOR,
	GROUP_STORE,
	GROUP_SERVER,
	GROUP_REPORT,
	GROUP_TUNING,
	GROUP_GENERAL,
	GROUP_MAX,
};

struct option_spec {
	const char *name;     /* "" when it has only a letter */
	char letter;	      /* 0 when it has only a name */
	const char *argument; /* "" for flags; the values of a choice, '|' between them */
	enum option_kind kind;
	const char *default_text; /* "" when not set */
	uint64_t least, most;
	unsigned commands; /* enum on_command */
	enum option_group group;
	const char *help;
	size_t offset; /* of its field in struct config */
};

/* A text that another table makes: in arguments, help texts and descriptions of commands {NAME} stands for it. */
struct option_text {
	const char *name; /* NULL at the end of a list */
	void (*print)(struct buf *out);
};

/* All that are named anywhere. cmd/cmd.c. */
extern const struct option_text all_option_texts[];

/* Puts the texts @all (borrowed) into the table, once, before there are threads. 0 or -ENOMEM. */
int options_fill_in(const struct option_text *all);

/* Appends @text with the texts that it names. */
void option_text_write(const char *text, struct buf *out);

/* The table, in the order of options.def. */
const struct option_spec *options_table(size_t *count_ret);

/* The heading of a group in help texts. */
const char *option_group_title(enum option_group group);

enum { OPTION_ENV_BYTES = 64 };

/* The variable of an option: "HEARTH_REPORT_INTERVAL". False when it has none. */
bool option_env_name(const struct option_spec *spec, char name[static OPTION_ENV_BYTES]);

/*
 * Stores @text as the value of @spec; a list or PIDs are appended to. 0; -EINVAL with a message for the user that begins
 * with
 * @origin ("--freq", "HEARTH_FREQ"); -ENOMEM.
 */
int option_set(const struct option_spec *spec, const char *text, const char *origin, struct config *config,
	       struct buf *error);

/* Frees the list that @spec has in @config; texts and numbers stay. */
void option_clear(const struct option_spec *spec, struct config *config);

/* Whether @config has a value of @spec other than none (off, 0, an empty list). */
bool option_is_set(const struct option_spec *spec, const struct config *config);

/*
 * Fills @config for @cmd; argv[0] is skipped. 0; -EINVAL with what is wrong in @error, one line; -EBADMSG: the same of a
 * file's pipelines; -ENOMEM. config_fini() either way.
 */
int options_parse(const struct cmd *cmd, int argc, char **argv, struct config *config, struct buf *error);

#endif
