/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is freed all at once: blocks are cut off zeroed chunks and never returned one by one. Not shared between
 * threads while it grows. */
#ifndef HEARTH_PROTO_ARENA_H
#define HEARTH_PROTO_ARENA_H

#include <stddef.h>

struct arena;

/* NULL without memory. */
struct arena *arena_new(void);
void arena_free(struct arena *a); /* accepts NULL */

/* @size_bytes zeroed bytes, 8-byte aligned; NULL without memory. */
void *arena_alloc(struct arena *a, size_t size_bytes);

/* Bytes held, with those not handed out yet. */
size_t arena_memory_bytes(const struct arena *a);

/* The bytes that all arenas of the process hold, and those kept for the next arenas. */
size_t arenas_memory_bytes(void);
size_t arenas_spare_bytes(void);

/* Frees the memory kept for the next arenas: for callers that seldom make any. */
void arenas_give_back(void);

#endif
