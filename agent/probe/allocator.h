/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions by which a process allocates memory, of the allocator that it really has: one in the program itself, one in
 * a library (jemalloc, tcmalloc, ...), or the C library's. No state; the caller's thread.
 */
#ifndef HEARTH_AGENT_PROBE_ALLOCATOR_H
#define HEARTH_AGENT_PROBE_ALLOCATOR_H

#include <stdbool.h>
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
	bool follows_children;
};

/* Adds those of the process @pid to @set, which is all 0 at first. 0; -ENOENT, -errno with @err filled; -ENOMEM. */
int allocator_add(struct alloc_set *set, uint32_t pid, struct agent_error *err);
/* Adds those of its file @path alone, as its root has it. -ENOENT: there are none; -ENOMEM. */
int allocator_add_file(struct alloc_set *set, uint32_t pid, const char *path);

/* Is @path a C library, which any other allocator goes before? */
bool allocator_is_libc(const char *path);
void allocator_set_free(struct alloc_set *set); /* one of the heap; accepts NULL */

#endif
