/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the configuration again while a session runs. Main thread. */
#ifndef HEARTH_CMD_RELOAD_H
#define HEARTH_CMD_RELOAD_H

#include <stdbool.h>

struct session;
struct config;

/* Does SIGHUP mean that: was a file read, and is there no terminal that could have hung up? */
bool reload_is_wanted(const struct config *config);

/*
 * Reads all options again as they were read at first. What may change while it runs (ON_RELOAD) counts at once; of the rest
 * that changed it is said that it counts at the next start. With a mistake in the file everything stays. Logs.
 */
void reload(struct session *s);

#endif
