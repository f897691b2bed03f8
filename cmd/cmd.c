/* SPDX-License-Identifier: Apache-2.0 */
/* The list of commands. A new one gets its line here, its bit in cmd.h, and a file of its own. */
#include "cmd/cmd.h"

#include <string.h>

static const struct cmd *const all[] = {
	&cmd_run,     &cmd_top,	  &cmd_record, &cmd_report, &cmd_diff,	  &cmd_view, &cmd_convert,
	&cmd_symbols, &cmd_store, &cmd_serve,  &cmd_check,  &cmd_version, &cmd_help, NULL,
};

const struct cmd *const *cmd_all(void)
{
	return all;
}

const struct cmd *cmd_find(const char *name)
{
	for (size_t i = 0; all[i]; i++) {
		if (!strcmp(all[i]->name, name))
			return all[i];
	}
	return NULL;
}
