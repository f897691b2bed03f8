/* SPDX-License-Identifier: Apache-2.0 */
/* The lazy backend's three counters under its names and labels, with bounded cardinality. */
#ifndef HEARTH_BACKEND_INGEST_LAZY_COUNTERS_H
#define HEARTH_BACKEND_INGEST_LAZY_COUNTERS_H

struct lazy_counters;
struct metrics;
struct profiles;

/* NULL when out of memory. @metrics is borrowed. */
struct lazy_counters *lazy_counters_new(struct metrics *metrics);
void lazy_counters_free(struct lazy_counters *lc);

/* Counts what @p holds. A request for which there is no memory to sort its labels is counted in
 * hearth_uncounted_requests_total instead. */
void lazy_counters_add(struct lazy_counters *lc, const struct profiles *p);

#endif
