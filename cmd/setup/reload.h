/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the configuration again while a session runs. Main thread. */
#ifndef HEARTH_CMD_SETUP_RELOAD_H
#define HEARTH_CMD_SETUP_RELOAD_H

#include <stdbool.h>

struct session;
struct config;

/* Does SIGHUP mean that: was a file read, and is there no terminal that could have hung up? */
bool reload_is_wanted(const struct config *config);

/*
 * Reads all options again as they were read at first. Options that may change at run time (ON_RELOAD) count at once; for
 * others that changed the log says that they count at the next start. With a mistake in the file everything stays. Logs.
 */
void reload(struct session *s);

#endif
