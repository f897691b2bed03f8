/* SPDX-License-Identifier: Apache-2.0 */
/* The live table, for `hearth top` and for `hearth run` without sinks. */
#ifndef HEARTH_CMD_TOP_H
#define HEARTH_CMD_TOP_H

struct config;

/* Profiles onto the terminal until something ends it. The exit status. */
int top_run(const struct config *config);

#endif
