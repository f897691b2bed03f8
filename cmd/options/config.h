/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The settings of a command: one field an option of options.def, filled by options_parse() and passed down read-only. There
 * is no other place for settings.
 */
#ifndef HEARTH_CMD_OPTIONS_CONFIG_H
#define HEARTH_CMD_OPTIONS_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct string_list {
	char **items; /* owned, NULL-terminated when count > 0, else NULL */
	size_t count;
};

struct pid_list {
	uint32_t *items; /* owned */
	size_t count;
};

/* The C type of each kind of option. */
#define CONFIG_FLAG	bool
#define CONFIG_U64	uint64_t
#define CONFIG_DOUBLE	double
#define CONFIG_DURATION uint64_t     /* nanoseconds */
#define CONFIG_SIZE	uint64_t     /* bytes */
#define CONFIG_STRING	const char * /* borrowed from argv, the environment or the table; NULL: not set */
#define CONFIG_CHOICE	const char * /* the same; one of the values listed */
#define CONFIG_LIST	struct string_list
#define CONFIG_WORDS	struct string_list
#define CONFIG_PIDS	struct pid_list
#define CONFIG_FREQ	uint64_t /* 0: max */

struct cmd;
struct config_file;
struct pipelines;

struct config {
#define OPTION(field, name, letter, argument, kind, ...) CONFIG_##kind field;
#include "cmd/options/options.def"
#undef OPTION
	const struct pipelines *pipelines; /* of that file; borrowed, NULL when it has none */
	struct config_file *file;	   /* that texts above are borrowed from; owned, NULL when there is none */
	const struct cmd *cmd;		   /* what was parsed ... */
	int argc;
	char **argv;	       /* ... to be parsed again when the file changes; borrowed */
	char *const *operands; /* what follows the options; borrowed from argv, NULL-terminated */
	size_t operand_count;
	size_t operands_after_dashes; /* how many of them stand behind a `--` */
};

void config_fini(struct config *config);

#endif
