/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the process takes: the C library's allocator, which keeps memory that was freed, of which much stays resident after a
 * burst; and who holds how much, as metrics.
 */
#ifndef HEARTH_BASE_MEMORY_H
#define HEARTH_BASE_MEMORY_H

#include <stddef.h>

struct metrics;

/* Large blocks are mapped each for itself from now on, and gone when freed. The library moves that limit up with each one
 * that is freed; then a buffer of some MB, freed, leaves a hole in the heap. Called once, at the start. */
void memory_map_large(void);

/* Gives freed memory back to the kernel when it is much. Meant for each few seconds; any thread. */
void memory_give_back(void);

/* Says in @metrics (NULL: nowhere) that @part, a literal, holds @bytes of memory now: hearth_memory_bytes{part="@part"}. */
void memory_tell(struct metrics *metrics, const char *part, size_t bytes);

/* The same of files and rings that @what has mapped, whose pages are resident only while they are used. */
void memory_tell_mapped(struct metrics *metrics, const char *what, size_t bytes);

/* What of the process is resident, by kind, and what its allocator has in use and keeps. */
void memory_tell_process(struct metrics *metrics);

#endif
