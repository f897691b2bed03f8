/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The events of profiles one by one, by thread and time: what formats want that show a course and no sums. Events without a
 * time stand at their profile's start. Only events of the first kind of sample are taken (struct weight_sum). Not shared
 * between threads.
 */
#ifndef HEARTH_PROTO_SUMS_TIMELINE_H
#define HEARTH_PROTO_SUMS_TIMELINE_H

#include "proto/sums/stack_walk.h"

struct timeline_thread {
	int64_t pid, tid; /* -1: unknown */
	struct str comm;
	struct str process; /* its executable's name; "" when unknown */
};

struct timeline_event {
	uint64_t time_unix_ns;
	uint64_t weight;  /* nanoseconds where the kind of sample has a time, else samples */
	uint64_t samples; /* that it stands for: 1 where there are times */
	uint32_t thread, stack;
	int32_t cpu; /* -1: unknown */
};

/* Frame ids, leaf first. */
struct timeline_stack {
	uint32_t first, count; /* in frame_ids */
};

struct timeline {
	struct timeline_thread *threads;
	struct timeline_event *events; /* by thread, then time */
	struct timeline_stack *stacks;
	uint32_t *frame_ids;
	struct frame *frames; /* by id; strings live as long as the profiles */
	size_t thread_count, event_count, stack_count, frame_id_count, frame_count;
	struct weight_sum sum;
	bool is_time; /* weights are nanoseconds */
};

/* @p must outlive the result. 0 or -ENOMEM. */
int timeline_new(const struct profiles *p, struct timeline **ret);
void timeline_free(struct timeline *t);

/* Puts the events in the order of time over all threads. */
void timeline_sort_by_time(struct timeline *t);

/* --- formats --- */

/* speedscope's own (file-format-schema.json): one sampled profile a thread, heaviest first. 0 or -ENOMEM. */
int timeline_write_speedscope(const struct timeline *t, const char *name, struct buf *out);

/* Firefox Profiler's processed profile format: threads on a time line. Not compressed. 0 or -ENOMEM. */
int timeline_write_firefox(const struct timeline *t, struct buf *out);

/* Writes the text of `perf script`, event by event in the order of time; for flame graph tools and those that import it. The
 * timeline must be sorted by time. 0 or -ENOMEM. */
int timeline_write_perf_script(const struct timeline *t, struct buf *out);

#endif
