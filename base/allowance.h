/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work that somebody else may cause without end, and that may take a small part of the time: each nanosecond of it is paid
 * off in twenty, so that it takes 5 % at most, and a tenth of a second of it may come at once. Starts zeroed. One thread.
 */
#ifndef HEARTH_BASE_ALLOWANCE_H
#define HEARTH_BASE_ALLOWANCE_H

#include <stdbool.h>
#include <stdint.h>

enum { ALLOWANCE_PART = 20, ALLOWANCE_BURST_MS = 100 };

struct allowance {
	uint64_t paid_ns; /* CLOCK_MONOTONIC: when all work so far is paid off */
};

/* May such work begin at @now_ns? */
static inline bool allowance_is_left(const struct allowance *a, uint64_t now_ns)
{
	return a->paid_ns <= now_ns + ALLOWANCE_PART * ALLOWANCE_BURST_MS * 1000000ull;
}

/* It began at @began_ns and ended at @now_ns. */
static inline void allowance_spend(struct allowance *a, uint64_t began_ns, uint64_t now_ns)
{
	a->paid_ns = (a->paid_ns > began_ns ? a->paid_ns : began_ns) + ALLOWANCE_PART * (now_ns - began_ns);
}

#endif
