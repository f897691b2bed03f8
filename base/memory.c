/* SPDX-License-Identifier: Apache-2.0 */
/* glibc's mallopt(3), mallinfo2(3) and malloc_trim(3), which speak of all of the process's arenas. */
#include "base/memory.h"

#include <malloc.h>
#include <stddef.h>

enum {
	LARGE_BYTES = 256 << 10,
	MUCH_BYTES = 4 << 20, /* a burst's leftovers; to trim less is not worth the page faults that follow */
};

void memory_map_large(void)
{
	(void)mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
}

void memory_give_back(void)
{
	if (mallinfo2().fordblks > MUCH_BYTES)
		(void)malloc_trim(0);
}
