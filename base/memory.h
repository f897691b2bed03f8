/* SPDX-License-Identifier: Apache-2.0 */
/* What the C library's allocator keeps of memory that was freed, of which much stays resident after a burst. */
#ifndef HEARTH_BASE_MEMORY_H
#define HEARTH_BASE_MEMORY_H

/* Large blocks are mapped each for itself from now on, and gone when freed. The library moves that limit up with each one
 * that is freed; then a buffer of some MB, freed, leaves a hole in the heap. Called once, at the start. */
void memory_map_large(void);

/* Gives freed memory back to the kernel when it is much. Meant for each few seconds; any thread. */
void memory_give_back(void);

#endif
