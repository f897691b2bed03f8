/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the live table, for `hearth top` and for `hearth run` without sinks. */
#ifndef HEARTH_CMD_TOP_H
#define HEARTH_CMD_TOP_H

#include <stdbool.h>

struct config;

/* Shows profiles on the terminal until something ends it; with @keep also writes the store, which a page shows. Returns the
 * exit status. */
int top_run(const struct config *config, bool keep);

#endif
