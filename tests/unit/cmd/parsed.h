/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of a command as its options make them, and the last word that was logged. */
#ifndef HEARTH_TESTS_CMD_PARSED_H
#define HEARTH_TESTS_CMD_PARSED_H

#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/options/command.h"
#include "cmd/options/config.h"
#include "cmd/options/options.h"

enum { PARSED_WORDS = 24 };

/* What `hearth @cmd WORDS...` is set to; config_fini() ends it, before the next one is parsed. */
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

static inline bool is_said_last(const char *text)
{
	struct log_message last;

	return log_recent(&last, 1) == 1 && strstr(last.text, text);
}

#endif
