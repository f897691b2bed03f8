/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of a range of time in which samples were taken: an average over time is over that part. A store does not say when
 * somebody sampled, only what was met; so all of a kind's samples count, of whatever series, and between two of them no more
 * than COVERAGE_GAP_NS apart the time is taken for covered: a machine that idles has few samples.
 */
#ifndef HEARTH_BACKEND_STORE_COVERAGE_H
#define HEARTH_BACKEND_STORE_COVERAGE_H

#include "backend/store/store_read.h"
#include "base/clock.h"

#define COVERAGE_GAP_NS (5 * MINUTE_NS)

struct coverage {
	uint64_t covered_ns;	 /* how much of the range */
	uint64_t from_ns, to_ns; /* where the covered part begins and ends, Unix; both 0 when there is none */
	uint64_t last_from_ns;	 /* where its last piece without a gap begins */
};

/* The coverage of @sel's range and kind; its matchers and stacks do not matter. Both ends are exact to 60 ms, gaps within to
 * a minute. 0, -ENOMEM or an error of the store. */
int coverage_of(struct store *store, const struct store_selection *sel, struct coverage *ret);

#endif
