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

/* Signed distance from @a to @b on a circle of @period. */
static inline int64_t circle_distance(uint64_t a, uint64_t b, uint64_t period)
{
	uint64_t ahead = (b + period - a) % period;

	return ahead > period / 2 ? (int64_t)ahead - (int64_t)period : (int64_t)ahead;
}

static inline void usual_rest_learn(uint32_t *usual, int64_t distance, uint64_t period)
{
	/* Far off: another clock, begin anew there. Near: noise, follow it slowly. */
	int64_t step = distance > (int64_t)(period / 16) || -distance > (int64_t)(period / 16) ? distance : distance / 8;

	*usual = (uint32_t)(((int64_t)*usual + step + (int64_t)period) % (int64_t)period);
}

static inline uint64_t usual_rest_difference(struct usual_rest *u, uint32_t cpu, uint64_t period, uint64_t rest)
{
	uint32_t *usual = &u->of_cpu[cpu % USUAL_CPUS];
	int64_t distance;

	*usual %= (uint32_t)period;
	distance = circle_distance(*usual, rest, period);
	usual_rest_learn(usual, distance, period);
	return column_zigzag(distance);
}

/* The rest again. @difference may be anything; the result is below @period. */
static inline uint64_t usual_rest_apply(struct usual_rest *u, uint32_t cpu, uint64_t period, uint64_t difference)
{
	uint32_t *usual = &u->of_cpu[cpu % USUAL_CPUS];
	int64_t distance = column_unzigzag(difference % (2 * period));
	uint64_t rest;

	*usual %= (uint32_t)period;
	rest = (uint64_t)((int64_t)*usual + distance + (int64_t)(2 * period)) % period;
	usual_rest_learn(usual, distance, period);
	return rest;
}

#endif
