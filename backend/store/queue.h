/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way into a store: a bounded queue of profiles with their acknowledgements, filled by a sink and emptied by the store's
 * writer. Consumers of the sink may be on any thread; one thread takes out.
 */
#ifndef HEARTH_BACKEND_STORE_QUEUE_H
#define HEARTH_BACKEND_STORE_QUEUE_H

#include <stddef.h>
#include <stdint.h>

#include "proto/sink.h"

struct metrics;

/* An item that waits, or is being kept. */
struct store_item {
	struct profiles *p;
	struct ack *ack; /* NULL: nobody asks */
	size_t bytes;
};

struct store_queue;

/* At most @max_items of them, and a last one more when the profiles take @max_bytes of memory; those turned away are counted
 * in @registry (NULL: nowhere). 0 or -ENOMEM. */
int store_queue_new(size_t max_items, size_t max_bytes, struct metrics *registry, struct store_queue **ret);

/* Accepts NULL. The queue must be empty, and no sink may push to it any more. */
void store_queue_free(struct store_queue *q);

/* Waits for an item until @deadline_ns (CLOCK_MONOTONIC); it is the caller's until it is settled. NULL at the deadline, and
 * when the queue is closed and empty. */
struct store_item *store_queue_pop(struct store_queue *q, uint64_t deadline_ns);

/* The @count items are kept (@err 0), or lost: their acks are told, and they are freed. */
void store_queue_settle(struct store_queue *q, struct store_item *const *items, size_t count, int err);

/* Bytes of the profiles that wait or are being kept. */
size_t store_queue_bytes(const struct store_queue *q);

/* Closes the queue: nothing more is taken in. */
void store_queue_close(struct store_queue *q);

/* Waits until everything that is in now is settled. 0 or -ETIMEDOUT at @deadline_ns (CLOCK_MONOTONIC). */
int store_queue_flush(struct store_queue *q, uint64_t deadline_ns);

/* A durable sink, called @name (a literal), that fills the queue, to be freed before it: consume answers -EAGAIN when it is
 * full, -EPIPE once it is closed. 0 or -ENOMEM. */
int store_queue_sink(struct store_queue *q, const char *name, struct sink **ret);

#endif
