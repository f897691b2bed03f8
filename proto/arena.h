/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is freed all at once: blocks are cut off zeroed chunks and never returned one by one. Not shared between
 * threads while it grows. */
#ifndef HEARTH_PROTO_ARENA_H
#define HEARTH_PROTO_ARENA_H

#include <stddef.h>

struct arena;

/* NULL for want of memory. */
struct arena *arena_new(void);
void arena_free(struct arena *a); /* accepts NULL */

/* @size_bytes zeroed bytes, 8-byte aligned; NULL for want of memory. */
void *arena_alloc(struct arena *a, size_t size_bytes);

/* Bytes held, what is not handed out yet included. */
size_t arena_memory_bytes(const struct arena *a);

/* What all arenas of the process hold, and what is kept for the next ones. */
size_t arenas_memory_bytes(void);
size_t arenas_spare_bytes(void);

/* Frees what is kept for the next ones: for who seldom makes any. */
void arenas_give_back(void);

#endif
