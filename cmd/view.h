/* SPDX-License-Identifier: Apache-2.0 */
/* The page on a capture that was just made. */
#ifndef HEARTH_CMD_VIEW_H
#define HEARTH_CMD_VIEW_H

#include <stdbool.h>
#include <sys/types.h>

/* A process that waits to show it: forked before this one gives up what running a program takes. */
struct viewer {
	pid_t pid; /* 0: none */
	int go_fd;
};

/* For the capture @path, which need not be there yet. 0 or -errno, said. */
int view_fork(struct viewer *v, const char *path);

/* Shows it as 'hearth view --open' does, as the user who called sudo, until that ends; or (@shows is not set) does not.
 * Accepts one that was not forked. */
void view_end(struct viewer *v, bool shows);

#endif
