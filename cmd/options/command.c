/* SPDX-License-Identifier: Apache-2.0 */
/* The list of commands, for options and help. It is set once, before there are threads. */
#include "cmd/options/command.h"

#include <string.h>

static const struct cmd *const no_command;
static const struct cmd *const *told = &no_command;

void cmd_list(const struct cmd *const *all)
{
	told = all;
}

const struct cmd *const *cmd_all(void)
{
	return told;
}

const struct cmd *cmd_find(const char *name)
{
	for (size_t i = 0; told[i]; i++) {
		if (!strcmp(told[i]->name, name))
			return told[i];
	}
	return NULL;
}
