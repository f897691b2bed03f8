/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times of timer ticks. A time since the block's start is so many periods and a rest; on one cpu the rest is nearly always
 * the same, so what is kept is its difference from what was usual there. Packing and reading go through the same steps.
 */
#ifndef HEARTH_BACKEND_STORE_BLOCK_TIMES_H
#define HEARTH_BACKEND_STORE_BLOCK_TIMES_H

#include <stdint.h>

#include "backend/store/column.h"

#define PERIOD_DEFAULT (1u << 20) /* of series without one: about a millisecond */

enum { USUAL_CPUS = 1024 };

struct usual_rest {
	uint32_t of_cpu[USUAL_CPUS];
};

static inline uint64_t period_or_default(uint32_t period)
{
	return period ? period : PERIOD_DEFAULT;
}

/* @value, of -@period to less than twice @period, on a circle of @period. It is done for each event, so without a division,
 * and without a branch on what cannot be foreseen. */
static inline uint32_t circle_place(int64_t value, uint64_t period)
{
	value += (int64_t)((uint64_t)(value >> 63) & period) - (int64_t)period;
	return (uint32_t)(value + (int64_t)((uint64_t)(value >> 63) & period));
}

static inline void usual_rest_learn(uint32_t *usual, int64_t distance, uint64_t period)
{
	/* Far off: another clock, begin anew there. Near: noise, follow it slowly. */
	int64_t step = distance > (int64_t)(period / 16) || -distance > (int64_t)(period / 16) ? distance : distance / 8;

	*usual = circle_place((int64_t)*usual + step, period);
}

/* What is usual on @cpu; below @period, though it may have been learned from a series with a longer one. */
static inline uint32_t *usual_rest_of(struct usual_rest *u, uint32_t cpu, uint64_t period)
{
	uint32_t *usual = &u->of_cpu[cpu % USUAL_CPUS];

	if (*usual >= period)
		*usual %= (uint32_t)period;
	return usual;
}

/* How @rest, which is below @period, differs from what is usual. */
static inline uint64_t usual_rest_difference(struct usual_rest *u, uint32_t cpu, uint64_t period, uint64_t rest)
{
	uint32_t *usual = usual_rest_of(u, cpu, period);
	int64_t ahead = circle_place((int64_t)rest - *usual, period);
	int64_t distance = ahead > (int64_t)(period / 2) ? ahead - (int64_t)period : ahead; /* the shorter way */

	usual_rest_learn(usual, distance, period);
	return column_zigzag(distance);
}

/* The rest again. @difference may be anything; the result is below @period. */
static inline uint64_t usual_rest_apply(struct usual_rest *u, uint32_t cpu, uint64_t period, uint64_t difference)
{
	uint32_t *usual = usual_rest_of(u, cpu, period);
	int64_t distance = column_unzigzag(difference < 2 * period ? difference : difference % (2 * period));
	uint64_t rest = circle_place((int64_t)*usual + distance, period);

	usual_rest_learn(usual, distance, period);
	return rest;
}

#endif
