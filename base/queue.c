/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bounded queue: a ring of pointers under one mutex. Any number of producers and consumers. Invariant: the items are
 * ring[(first + i) % max_items] for i < count.
 */
#include "base/queue.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"

struct queue {
	pthread_mutex_t lock;
	pthread_cond_t has_change; /* an item came or the queue was closed */
	bool is_closed;
	size_t first, count, max_items;
	void *ring[];
};

struct queue *queue_new(size_t max_items)
{
	struct queue *q;
	pthread_condattr_t attr;
	size_t bytes;

	if (__builtin_mul_overflow(max_items, sizeof(void *), &bytes) || __builtin_add_overflow(bytes, sizeof(*q), &bytes))
		return NULL;
	q = calloc(1, bytes);
	if (!q)
		return NULL;
	q->max_items = max_items;
	pthread_mutex_init(&q->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&q->has_change, &attr);
	pthread_condattr_destroy(&attr);
	return q;
}

void queue_free(struct queue *q)
{
	if (!q)
		return;
	pthread_cond_destroy(&q->has_change);
	pthread_mutex_destroy(&q->lock);
	free(q);
}

int queue_push(struct queue *q, void *item)
{
	int err = 0;

	pthread_mutex_lock(&q->lock);
	if (q->is_closed) {
		err = -EPIPE;
	} else if (q->count == q->max_items) {
		err = -EAGAIN;
	} else {
		q->ring[(q->first + q->count++) % q->max_items] = item;
		pthread_cond_signal(&q->has_change);
	}
	pthread_mutex_unlock(&q->lock);
	return err;
}

/* The caller holds the lock. */
static void *take_first(struct queue *q)
{
	void *item;

	if (!q->count)
		return NULL;
	item = q->ring[q->first];
	q->first = (q->first + 1) % q->max_items;
	q->count--;
	return item;
}

void *queue_steal_oldest(struct queue *q)
{
	void *item;

	pthread_mutex_lock(&q->lock);
	item = take_first(q);
	pthread_mutex_unlock(&q->lock);
	return item;
}

void *queue_pop(struct queue *q, uint64_t deadline_ns)
{
	struct timespec ts = { .tv_sec = (time_t)(deadline_ns / NSEC_PER_SEC),
			       .tv_nsec = (long)(deadline_ns % NSEC_PER_SEC) };
	int err = 0;
	void *item;

	pthread_mutex_lock(&q->lock);
	while (!q->count && !q->is_closed && err != ETIMEDOUT) {
		if (deadline_ns == UINT64_MAX)
			pthread_cond_wait(&q->has_change, &q->lock);
		else
			err = pthread_cond_timedwait(&q->has_change, &q->lock, &ts);
	}
	item = take_first(q);
	pthread_mutex_unlock(&q->lock);
	return item;
}

void queue_close(struct queue *q)
{
	pthread_mutex_lock(&q->lock);
	q->is_closed = true;
	pthread_cond_broadcast(&q->has_change);
	pthread_mutex_unlock(&q->lock);
}

size_t queue_count(struct queue *q)
{
	size_t count;

	pthread_mutex_lock(&q->lock);
	count = q->count;
	pthread_mutex_unlock(&q->lock);
	return count;
}
