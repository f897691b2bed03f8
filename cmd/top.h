/* SPDX-License-Identifier: Apache-2.0 */
/* The live table, for `hearth top` and for `hearth run` without sinks. */
#ifndef HEARTH_CMD_TOP_H
#define HEARTH_CMD_TOP_H

#include <stdbool.h>

struct config;

/* Profiles onto the terminal until something ends it; with @keep also into the store, which a page shows. The exit status.
 */
int top_run(const struct config *config, bool keep);

#endif
