/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bounded first-in first-out queue of pointers between threads. The queue does not own the objects that the pointers lead
 * to.
 */
#ifndef HEARTH_BASE_QUEUE_H
#define HEARTH_BASE_QUEUE_H

#include <stddef.h>
#include <stdint.h>

struct queue;

struct queue *queue_new(size_t max_items);
void queue_free(struct queue *q);

/* 0, -EAGAIN when full, -EPIPE after queue_close. Never blocks. */
int queue_push(struct queue *q, void *item);

/* Takes the oldest item out for the producer to dispose of (the drop-oldest policy); NULL when empty. Never blocks. */
void *queue_steal_oldest(struct queue *q);

/* Waits for an item until @deadline_ns (CLOCK_MONOTONIC; UINT64_MAX: for ever). NULL at the deadline, or when it is
 * closed and empty. */
void *queue_pop(struct queue *q, uint64_t deadline_ns);

/* No further pushes succeed; poppers get the items that are left, then NULL at once. */
void queue_close(struct queue *q);

size_t queue_count(struct queue *q);

#endif
