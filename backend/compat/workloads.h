/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The containers that run, their processes, and the functions that were seen in each. They are kept in bounded memory: the
 * process that was not seen for longest goes when it is used up, and all go that were not seen for a while. Any thread may
 * add and ask.
 */
#ifndef HEARTH_BACKEND_COMPAT_WORKLOADS_H
#define HEARTH_BACKEND_COMPAT_WORKLOADS_H

#include <stdint.h>

#include "base/buf.h"
#include "proto/sink.h"

struct metrics;
struct workloads;

struct workloads_config {
	uint64_t memory_bytes; /* 16 MiB when 0 */
	uint64_t keep_age_ns;  /* 1 h when 0 */
};

/* Counts in @metrics what does not fit. NULL when out of memory. */
struct workloads *workloads_new(const struct workloads_config *config, struct metrics *metrics);
void workloads_free(struct workloads *w); /* accepts NULL */

/* Takes up what @p brings of containers, at @now_ns (CLOCK_MONOTONIC): samples and events of resources with a container.id.
 * Processes are named by the sample's attributes or the resource's. */
void workloads_add(struct workloads *w, const struct profiles *p, uint64_t now_ns);

/* A sink that passes everything on to @next, which it owns from then on also when it fails, and adds what was taken to @w,
 * which it does not own. 0 or -ENOMEM. */
int workloads_sink_new(struct workloads *w, struct sink *next, struct sink **ret);

/* The answers, as JSON with a line feed at the end. -ENOENT: no such workload, or no such process in it; -ENOMEM. */
int workloads_write(struct workloads *w, struct buf *out);
int workloads_write_functions(struct workloads *w, const char *id, struct buf *out);
int workloads_write_process_functions(struct workloads *w, const char *id, int64_t pid, struct buf *out);

#endif
