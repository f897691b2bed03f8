/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions by which a process allocates memory, of the allocator that it really has: one in the program itself, one in
 * a library (jemalloc, tcmalloc, ...), or the C library's. No state; the caller's thread.
 */
#ifndef HEARTH_AGENT_PROBE_ALLOCATOR_H
#define HEARTH_AGENT_PROBE_ALLOCATOR_H

#include <stddef.h>
#include <stdint.h>

struct agent_error;

struct alloc_place {
	uint32_t pid;
	uint32_t size;	 /* enum alloc_size */
	char *file;	 /* owned */
	uint64_t offset; /* in it */
};

struct alloc_set {
	struct alloc_place *list;
	uint32_t count, cap;
};

/* Finds those of the @count processes @pids. 0; -ENOENT, -errno with @err filled; -ENOMEM. */
int allocator_find(const uint32_t *pids, size_t count, struct alloc_set **ret, struct agent_error *err);
void allocator_set_free(struct alloc_set *set); /* accepts NULL */

#endif
