/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of the process. The C library's allocator keeps freed memory, and much of that stays resident after a burst;
 * the functions here limit that, and tell in metrics which part of the program holds how much.
 */
#ifndef HEARTH_BASE_MEMORY_H
#define HEARTH_BASE_MEMORY_H

#include <stddef.h>

struct metrics;

/* From now on each large block has a mapping of its own, which goes when it is freed. Without this the library raises its
 * limit with each such block, and a freed buffer of some MB leaves a hole in the heap. Called once, at the start. */
void memory_map_large(void);

/* Gives freed memory back to the kernel when there is much of it. To be called every few seconds; any thread. */
void memory_give_back(void);

/* The same when more than @bytes of it are resident, which memory that was given back before is not. For who keeps some for
 * the next burst; costs a read of /proc and a look at each block that is free. Any thread. */
void memory_give_back_above(size_t bytes);

/* A mapping of zeros, of which only pages that are touched are resident: for large arrays of which little is used. All
 * zeros at first. */
struct memory_zeros {
	void *at;
	size_t bytes;
};

/* Makes it at least @bytes; it may move. 0 or -ENOMEM, it is then as before. */
int memory_zeros_reach(struct memory_zeros *z, size_t bytes);
void memory_zeros_fini(struct memory_zeros *z);

/* Has @bytes of the program's own constants at @at, which are not needed for now, leave its resident memory; they come back
 * from the file when they are read. */
void memory_leave_constants(const void *at, size_t bytes);

/* Says in @metrics (NULL: nowhere) that @part, a literal, holds @bytes of memory now: hearth_memory_bytes{part="@part"}. */
void memory_tell(struct metrics *metrics, const char *part, size_t bytes);

/* The same for files and rings that @what has mapped: their pages are resident only while they are used. */
void memory_tell_mapped(struct metrics *metrics, const char *what, size_t bytes);

/* Says in metrics how much of the process is resident, by kind, and how much its allocator has in use and keeps. */
void memory_tell_process(struct metrics *metrics);

#endif
