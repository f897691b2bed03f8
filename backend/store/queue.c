/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Invariant: an item that was accepted is settled once, in any order; done never overtakes accepted. The memory of an item
 * counts until it is settled.
 */
#include "backend/store/queue.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/metrics.h"
#include "base/queue.h"
#include "base/thread.h"
#include "proto/profiles.h"

struct store_queue {
	struct queue *items; /* of struct store_item */
	size_t max_bytes;
	struct metric *full;
	_Atomic size_t bytes; /* of profiles, also of those taken out */
	pthread_mutex_t lock;
	pthread_cond_t moved;
	uint64_t accepted, done; /* items, under the lock */
};

struct queue_sink {
	struct sink sink;
	struct sink_ops ops;
	struct store_queue *queue;
};

int store_queue_new(size_t max_items, size_t max_bytes, struct metrics *registry, struct store_queue **ret)
{
	struct store_queue *q = calloc(1, sizeof(*q));

	if (!q)
		return -ENOMEM;
	q->items = queue_new(max_items);
	if (!q->items) {
		free(q);
		return -ENOMEM;
	}
	q->max_bytes = max_bytes;
	if (registry)
		q->full = metrics_counter(registry, "hearth_store_queue_full_total", NULL,
					  "Batches sent back because the store was behind.");
	pthread_mutex_init(&q->lock, NULL);
	thread_cond_init(&q->moved);
	*ret = q;
	return 0;
}

void store_queue_free(struct store_queue *q)
{
	if (!q)
		return;
	queue_free(q->items);
	pthread_mutex_destroy(&q->lock);
	pthread_cond_destroy(&q->moved);
	free(q);
}

struct store_item *store_queue_pop(struct store_queue *q, uint64_t deadline_ns)
{
	return queue_pop(q->items, deadline_ns);
}

void store_queue_settle(struct store_queue *q, struct store_item *const *items, size_t count, int err)
{
	for (size_t i = 0; i < count; i++) {
		if (items[i]->ack)
			items[i]->ack->done(items[i]->ack, err);
		atomic_fetch_sub(&q->bytes, items[i]->bytes);
		profiles_put(items[i]->p);
		free(items[i]);
	}
	pthread_mutex_lock(&q->lock);
	q->done += count;
	pthread_cond_broadcast(&q->moved);
	pthread_mutex_unlock(&q->lock);
}

size_t store_queue_bytes(const struct store_queue *q)
{
	return atomic_load(&q->bytes);
}

void store_queue_close(struct store_queue *q)
{
	queue_close(q->items);
}

int store_queue_flush(struct store_queue *q, uint64_t deadline_ns)
{
	uint64_t wanted;
	int err = 0;

	pthread_mutex_lock(&q->lock);
	wanted = q->accepted;
	while (q->done < wanted && !err)
		err = thread_cond_wait(&q->moved, &q->lock, deadline_ns);
	err = q->done < wanted ? -ETIMEDOUT : 0;
	pthread_mutex_unlock(&q->lock);
	return err;
}

/* --- the sink --- */

static int sink_consume_profiles(struct sink *sink, struct profiles *p, struct ack *ack)
{
	struct store_queue *q = ((struct queue_sink *)sink)->queue;
	struct store_item *item = malloc(sizeof(*item));
	const size_t bytes = profiles_memory_bytes(p);
	int err = -EAGAIN;

	if (!item)
		return -ENOMEM;
	*item = (struct store_item){ .p = profiles_get(p), .ack = ack, .bytes = bytes };
	pthread_mutex_lock(&q->lock); /* so that flush() counts what was accepted */
	if (atomic_load(&q->bytes) < q->max_bytes) {
		atomic_fetch_add(&q->bytes, bytes);
		err = queue_push(q->items, item);
		if (err)
			atomic_fetch_sub(&q->bytes, bytes);
		else
			q->accepted++;
	}
	pthread_mutex_unlock(&q->lock);
	if (err) {
		metric_add(q->full, 1);
		profiles_put(p);
		free(item);
	}
	return err;
}

static int sink_flush_profiles(struct sink *sink, uint64_t deadline_ns)
{
	return store_queue_flush(((struct queue_sink *)sink)->queue, deadline_ns);
}

static void sink_free_self(struct sink *sink)
{
	free(sink);
}

int store_queue_sink(struct store_queue *q, const char *name, struct sink **ret)
{
	struct queue_sink *s = malloc(sizeof(*s));

	if (!s)
		return -ENOMEM;
	*s = (struct queue_sink){ .sink = { &s->ops },
				  .ops = { .name = name,
					   .durable = true,
					   .consume = sink_consume_profiles,
					   .flush = sink_flush_profiles,
					   .free = sink_free_self },
				  .queue = q };
	*ret = &s->sink;
	return 0;
}
