/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of a command as its options make them, a command that runs in this process, and the last word that was
 * logged.
 */
#ifndef HEARTH_TESTS_CMD_PARSED_H
#define HEARTH_TESTS_CMD_PARSED_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/options/command.h"
#include "cmd/options/config.h"
#include "cmd/options/options.h"

enum { PARSED_WORDS = 24 };

/* The settings of `hearth @cmd WORDS...`; config_fini() ends it, before the next one is parsed. */
static inline struct config parse_words(const struct cmd *cmd, const char *const *words)
{
	static char *argv[PARSED_WORDS + 2];
	AUTO(buf_fini) struct buf error = BUF_EMPTY;
	struct config config;
	int argc = 0;

	argv[argc++] = (char *)(uintptr_t)cmd->name;
	while (*words && argc <= PARSED_WORDS)
		argv[argc++] = (char *)(uintptr_t)*words++;
	argv[argc] = NULL;
	if (options_parse(cmd, argc, argv, &config, &error))
		fail_msg("%s: %s", argv[1], buf_text(&error));
	return config;
}

#define PARSED(cmd, ...) parse_words(cmd, (const char *const[]){ __VA_ARGS__, NULL })

/* Runs `hearth @cmd WORDS...`: its status; *@said (unless NULL) is what it wrote to standard output, until the next one. */
static inline int run_words(const struct cmd *cmd, const char *const *words, const char **said)
{
	static char text[64 << 10];
	struct config config = parse_words(cmd, words);
	AUTO_FCLOSE FILE *out = tmpfile();
	int saved_out = dup(STDOUT_FILENO), status;

	fflush(stdout);
	dup2(fileno(out), STDOUT_FILENO);
	status = cmd->run(&config);
	fflush(stdout);
	dup2(saved_out, STDOUT_FILENO);
	close(saved_out);
	config_fini(&config);
	rewind(out);
	text[fread(text, 1, sizeof(text) - 1, out)] = '\0';
	if (said)
		*said = text;
	return status;
}

static inline bool is_said_last(const char *text)
{
	struct log_message last;

	return log_recent(&last, 1) == 1 && strstr(last.text, text);
}

#endif
