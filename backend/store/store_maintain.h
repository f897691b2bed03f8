/* SPDX-License-Identifier: Apache-2.0 */
/* Work on the whole of a store, and the room that it takes. */
#ifndef HEARTH_BACKEND_STORE_STORE_MAINTAIN_H
#define HEARTH_BACKEND_STORE_STORE_MAINTAIN_H

#include <stdint.h>

#include "backend/store/store.h"

/* Work on the whole of a store, done by its writer; returns when it is done. Merging is done anyhow, but only of hours that
 * are over; compacting also gives all free room back, which takes as much again while it lasts. */
enum store_task { STORE_PRUNE, STORE_MERGE, STORE_COMPACT, STORE_CLEAR };

struct store_maintain_ops {
	/* Does a task. -ENOTSUP: such a store does that by itself. */
	int (*task)(struct store *s, enum store_task task);

	/* Optional: the bytes that each table and index takes on disk, the largest first. Reads all of the store. */
	int (*tables)(struct store *s, int (*fn)(void *arg, const char *name, uint64_t bytes), void *arg);
};

#endif
