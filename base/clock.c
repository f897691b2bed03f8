/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two clocks and the offset between them. The offset is one atomic number: any thread may read or refresh it; 0 means
 * that it was not measured yet.
 */
#include "base/clock.h"

#include <stdatomic.h>
#include <time.h>

enum { READINGS = 5 };

static _Atomic int64_t unix_minus_mono_ns;

static uint64_t read_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts); /* cannot fail for these two clocks */
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

uint64_t clock_mono_ns(void)
{
	return read_ns(CLOCK_MONOTONIC);
}

uint64_t clock_unix_ns(void)
{
	return read_ns(CLOCK_REALTIME);
}

void clock_refresh(void)
{
	uint64_t best_gap = UINT64_MAX;
	int64_t offset = 0;

	/* The reading with the least time between its two ends was not interrupted. */
	for (int i = 0; i < READINGS; i++) {
		uint64_t before = clock_mono_ns();
		uint64_t wall = clock_unix_ns();
		uint64_t gap = clock_mono_ns() - before;

		if (gap < best_gap) {
			best_gap = gap;
			offset = (int64_t)(wall - before - gap / 2);
		}
	}
	atomic_store_explicit(&unix_minus_mono_ns, offset, memory_order_relaxed);
}

uint64_t clock_mono_to_unix_ns(uint64_t mono_ns)
{
	int64_t offset = atomic_load_explicit(&unix_minus_mono_ns, memory_order_relaxed);

	if (!offset) {
		clock_refresh();
		offset = atomic_load_explicit(&unix_minus_mono_ns, memory_order_relaxed);
	}
	return mono_ns + (uint64_t)offset;
}
