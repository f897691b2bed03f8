/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts who was active when: the weight of each process, of each thread, or of each group of a view, with its course over
 * time. Grows with their number. Not shared between threads.
 */
#ifndef HEARTH_PROTO_SUMS_ACTIVITY_H
#define HEARTH_PROTO_SUMS_ACTIVITY_H

#include "proto/sums/view.h"

/* The slots of a course: its times are as exact as one part in half of them. */
enum { ACTIVITY_SLOTS = 256 };

enum activity_rows { ACTIVITY_PROCESSES, ACTIVITY_THREADS, ACTIVITY_GROUPS };

struct activity_row {
	const char *name;    /* of the process or thread, or of the group */
	const char *process; /* of a thread: its process's */
	int64_t pid, tid;    /* -1 where it is not told, or has no place in the row */
	uint64_t weight;
	uint64_t events;
	uint32_t threads; /* of a process: how many had samples */
	uint64_t first_unix_ns, last_unix_ns;
	uint64_t slots[ACTIVITY_SLOTS]; /* weight by time */
};

struct activity;

struct activity *activity_new(enum activity_rows rows, const struct view *view);
void activity_free(struct activity *a);

/* 0 or -ENOMEM (samples are then missing). */
int activity_add(struct activity *a, const struct profiles *p);

enum activity_rows activity_kind(const struct activity *a);
const struct weight_sum *activity_sum(const struct activity *a);

/* The slots of all rows: slot i begins at @start + i * @slot; how many of them the capture fills. */
struct activity_time {
	uint64_t start_unix_ns, slot_ns;
	uint32_t slot_count;
};
struct activity_time activity_time(const struct activity *a);

/* Heaviest first, then by name and ids. Valid until the next call on @a. NULL with 0 when there are none or without
 * memory. */
const struct activity_row *const *activity_rows(struct activity *a, uint32_t *count_ret);

#endif
