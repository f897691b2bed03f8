/* SPDX-License-Identifier: Apache-2.0 */
/* The processes of --pid and threads of --tid: when have all of them ended? Main thread. */
#ifndef HEARTH_CMD_SETUP_TARGETS_H
#define HEARTH_CMD_SETUP_TARGETS_H

#include <stddef.h>

struct config;
struct loop;

struct targets {
	struct target *items; /* owned */
	size_t count, alive;
	void (*on_end)(void *arg);
	void *arg;
};

/*
 * Calls @on_end from @loop once all of them have ended, or at once when they have already; never when there are none, or
 * when the kernel cannot tell of one (a thread that leads no process, before Linux 6.9). 0 or -errno, logged.
 */
int targets_watch(struct targets *t, const struct config *config, struct loop *loop, void (*on_end)(void *arg), void *arg);
void targets_fini(struct targets *t);

#endif
