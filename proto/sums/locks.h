/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks of programs, by what threads waited for: how long for each lock, in which functions threads waited for it, and in
 * which functions, of which threads, it was let go. A lock is a futex of a process. The time is that of samples of type
 * off_cpu; those of type waker tell who let go, those of type contentions how often. Grows with the number of locks. Not
 * shared between threads.
 */
#ifndef HEARTH_PROTO_SUMS_LOCKS_H
#define HEARTH_PROTO_SUMS_LOCKS_H

#include "proto/sums/view.h"

enum lock_side { LOCK_WAITERS, LOCK_RELEASERS, LOCK_SIDES };

/* A function that waits for a lock, or lets it go. */
struct lock_party {
	const char *name; /* "worker: take (pthread_mutex_lock)" */
	uint64_t weight;  /* ns of the waits */
	uint64_t events;
};

struct lock_row {
	const char *process, *lock;
	int64_t pid;	 /* -1: not told */
	uint64_t weight; /* ns that threads waited */
	uint64_t events; /* samples of that */
	uint64_t count;	 /* how often they did, by an estimate; 0: not told */
	uint32_t party_cnt[LOCK_SIDES];
	const struct lock_party *parties[LOCK_SIDES]; /* heaviest first */
	uint64_t told_weight[LOCK_SIDES];	      /* of all of them */
};

struct locks;

/* @view: borrowed; NULL: everything. NULL without memory. */
struct locks *locks_new(const struct view *view);
void locks_free(struct locks *l);

/* 0 or -ENOMEM (samples are then missing). */
int locks_add(struct locks *l, const struct profiles *p);

/* Heaviest first, then by process and lock. Valid until the next call on @l. NULL with 0 when there are none or without
 * memory. */
const struct lock_row *locks_rows(struct locks *l, uint32_t *count_ret);

#endif
