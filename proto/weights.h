/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of weights, which are whatever a sender says: sums of absurd weights wrap around, in every place that adds. */
#ifndef HEARTH_PROTO_WEIGHTS_H
#define HEARTH_PROTO_WEIGHTS_H

#include <stdint.h>

static inline int64_t weights_add(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a + (uint64_t)b);
}

static inline int64_t weights_less(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a - (uint64_t)b);
}

static inline int64_t weights_times(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a * (uint64_t)b);
}

#endif
