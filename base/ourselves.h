/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes that are hearth: the two halves, the keeper, and the helpers of both, by the pids that profiles have for
 * them. Whoever samples looks for them while somebody waits for a profile of hearth itself; whoever answers adds up what was
 * told.
 */
#ifndef HEARTH_BASE_OURSELVES_H
#define HEARTH_BASE_OURSELVES_H

#include <stdbool.h>
#include <stdint.h>

enum { OURSELVES_MAX = 63 };

struct ourselves {
	uint32_t count;
	uint32_t pids[OURSELVES_MAX];
};

/* Finds @pid and all that descends from it, by the lists of children in @proc, a mount of /proc whose pids are meant. On a
 * kernel without such lists (CONFIG_PROC_CHILDREN) it is @pid alone. */
void ourselves_read(const char *proc, uint32_t pid, struct ourselves *ret);

/* Adds @o to what is known; where there is no more room the oldest are forgotten. Any thread, as in all that follows. */
void ourselves_saw(const struct ourselves *o);

/* All that are known: those that were seen, this process, and the other half. */
void ourselves_known(struct ourselves *ret);

/* Whether @o has @pid. */
bool ourselves_has(const struct ourselves *o, uint32_t pid);

/* The name of hearth's executable, as profiles have it in process.executable.name. Valid until the end. */
const char *ourselves_name(void);

/* The path by which hearth is started once more. In a bundle, whose C library's loader is what the kernel started, it is
 * bin/hearth there. Valid until the end. */
const char *ourselves_program(void);

/* The path of the file that holds hearth's code; in a bundle lib/hearth there. Valid until the end. */
const char *ourselves_file(void);

#endif
