/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One sink in front of several. Each child has a bounded queue and a thread of its own, so that a slow child delays nobody.
 *
 *   consume() --item--> [queue] --> thread --> child 0          an item holds one reference of the profiles and
 *             --item--> [queue] --> thread --> child 1          one hold of the shared ack; both go with the item
 *
 * The producer's ack is completed with the last hold: consume() has one while it hands out, each item of a durable child one
 * until that completes the item's own ack; the other children never delay it. Profiles with an ack must be kept: when a
 * durable child has no room, no child gets them. consume() may be called from several threads. A child's consume() is only
 * called by its thread; its flush() and free() by the caller of ours, while its thread is idle.
 */
#include "sinks/sinks.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/queue.h"
#include "base/thread.h"

enum { MAX_CHILDREN = 64, ERROR_LOG_SECONDS = 10 };

struct child {
	struct sink *sink; /* owned */
	struct sink_fanout *fanout;
	struct queue *queue; /* of struct item */
	pthread_t thread;
	bool running;
	size_t pending; /* items queued or being consumed; under the fan-out's lock */
	struct metric *dropped_full, *dropped_error, *dropped_shutdown;	   /* samples */
	struct metric *requests_full, *requests_error, *requests_shutdown; /* of the other signals */
	struct log_limit limit;
};

struct sink_fanout {
	struct sink sink;
	struct child *children;
	size_t count;
	size_t queue_items;
	pthread_mutex_t lock;
	pthread_cond_t settled; /* a child's pending reached 0 */
};

/* The producer's ack, completed when the last hold goes. */
struct shared_ack {
	struct ack *ack;
	_Atomic uint32_t holds;
	_Atomic int error; /* the first one */
};

/* One thing that a child gets: profiles, or the bytes of another signal. */
struct item {
	struct ack ack;		   /* given to a durable child */
	struct shared_ack *shared; /* or NULL */
	struct profiles *p;	   /* or NULL */
	enum otlp_signal signal;
	size_t len;
	uint8_t data[];
};

static void shared_ack_put(struct shared_ack *shared, int error)
{
	int none = 0;

	if (!shared)
		return;
	if (error)
		atomic_compare_exchange_strong(&shared->error, &none, error);
	if (atomic_fetch_sub(&shared->holds, 1) == 1) {
		shared->ack->done(shared->ack, atomic_load(&shared->error));
		free(shared);
	}
}

static void item_done(struct item *item, int error)
{
	shared_ack_put(item->shared, error);
	profiles_put(item->p);
	free(item);
}

static void item_acked(struct ack *ack, int error)
{
	item_done((struct item *)ack, error);
}

static void child_settle(struct child *child)
{
	struct sink_fanout *f = child->fanout;

	pthread_mutex_lock(&f->lock);
	if (--child->pending == 0)
		pthread_cond_broadcast(&f->settled);
	pthread_mutex_unlock(&f->lock);
}

/* Queues @item, which it then owns. On failure it stays the caller's. */
static int child_push(struct child *child, struct item *item)
{
	struct sink_fanout *f = child->fanout;
	int error;

	pthread_mutex_lock(&f->lock);
	child->pending++;
	pthread_mutex_unlock(&f->lock);
	error = queue_push(child->queue, item);
	if (error)
		child_settle(child);
	return error;
}

static void child_consume(struct child *child, struct item *item)
{
	bool acks = item->shared;
	struct profiles *p = profiles_get(item->p);
	int error = sink_consume(child->sink, p, acks ? &item->ack : NULL);

	if (error) {
		metric_add(child->dropped_error, p->sample_events);
		if (error != -EPIPE) /* the reader of our output has gone, and knows */
			log_limited(&child->limit, ERROR_LOG_SECONDS * NSEC_PER_SEC, LOG_ERROR,
				    "sink %s failed: %s; %" PRIu64 " samples are missing there so far",
				    child->sink->ops->name, strerror(-error), metric_get(child->dropped_error));
	}
	if (error || !acks) /* otherwise the item is the child's until it acknowledges, and may be gone already */
		item_done(item, error);
	profiles_put(p);
}

static void child_consume_other(struct child *child, struct item *item)
{
	bool acks = item->shared;
	int error = sink_consume_other(child->sink, item->signal, item->data, item->len, acks ? &item->ack : NULL);

	if (error == -EOPNOTSUPP) { /* not this one: there is nothing to wait for */
		item_done(item, 0);
		return;
	}
	if (error) {
		metric_add(child->requests_error, 1);
		if (error != -EPIPE)
			log_limited(&child->limit, ERROR_LOG_SECONDS * NSEC_PER_SEC, LOG_ERROR,
				    "sink %s failed: %s; %" PRIu64 " requests of other signals are missing there so far",
				    child->sink->ops->name, strerror(-error), metric_get(child->requests_error));
	}
	if (error || !acks)
		item_done(item, error);
}

static void *child_main(void *arg)
{
	struct child *child = arg;
	struct item *item;

	while ((item = queue_pop(child->queue, UINT64_MAX))) {
		if (item->p)
			child_consume(child, item);
		else
			child_consume_other(child, item);
		child_settle(child);
	}
	return NULL;
}

/* Gives @child the profiles @p, or, where that is NULL, @len bytes of @signal. */
static int child_offer(struct child *child, struct profiles *p, enum otlp_signal signal, const uint8_t *data, size_t len,
		       struct shared_ack *shared)
{
	struct item *item = len <= SIZE_MAX - sizeof(*item) ? calloc(1, sizeof(*item) + len) : NULL;
	int error;

	if (!item)
		return -ENOMEM;
	if (!child->sink->ops->durable)
		shared = NULL;
	item->ack.done = item_acked;
	item->shared = shared;
	item->p = p ? profiles_get(p) : NULL;
	item->signal = signal;
	item->len = len;
	if (len)
		memcpy(item->data, data, len);
	if (shared)
		atomic_fetch_add(&shared->holds, 1);
	error = child_push(child, item);
	if (error) {
		if (shared) /* not the last hold: consume() has one */
			atomic_fetch_sub(&shared->holds, 1);
		profiles_put(item->p);
		free(item);
	}
	return error;
}

/* Takes part in profiles all, in other signals who says so. */
static bool child_takes(const struct child *child, const struct profiles *p)
{
	return p || child->sink->ops->consume_other;
}

/* A durable child has no room. */
static bool is_full(const struct sink_fanout *f, const struct profiles *p)
{
	for (size_t i = 0; i < f->count; i++)
		if (f->children[i].sink->ops->durable && child_takes(&f->children[i], p) &&
		    queue_count(f->children[i].queue) >= f->queue_items)
			return true;
	return false;
}

/* Hands out the profiles @p, or, where that is NULL, @len bytes of @signal. */
static int hand_out(struct sink_fanout *f, struct profiles *p, enum otlp_signal signal, const uint8_t *data, size_t len,
		    struct ack *ack)
{
	struct shared_ack *shared = ack ? calloc(1, sizeof(*shared)) : NULL;
	uint64_t missed = 0;
	size_t accepted = 0;
	int error = 0, lost = 0;

	if (ack && !shared)
		return -ENOMEM;
	if (shared && is_full(f, p)) {
		free(shared);
		return -EAGAIN;
	}
	if (shared) {
		shared->ack = ack;
		shared->holds = 1;
	}
	for (size_t i = 0; i < f->count; i++) {
		int refused = child_takes(&f->children[i], p) ? child_offer(&f->children[i], p, signal, data, len, shared)
							      : 0;

		if (refused) {
			missed |= 1ull << i;
			error = refused;
		} else {
			accepted += child_takes(&f->children[i], p);
		}
	}
	if (accepted == 0 && (error || !p)) { /* the producer decides, and counts */
		free(shared);
		return error ? error : -EOPNOTSUPP;
	}
	for (size_t i = 0; i < f->count; i++) {
		if (!(missed >> i & 1))
			continue;
		metric_add(p ? f->children[i].dropped_full : f->children[i].requests_full, p ? p->sample_events : 1);
		if (f->children[i].sink->ops->durable) /* another producer was quicker */
			lost = -EAGAIN;
	}
	shared_ack_put(shared, lost);
	return 0;
}

static int fanout_consume(struct sink *sink, struct profiles *p, struct ack *ack)
{
	return hand_out((struct sink_fanout *)sink, p, 0, NULL, 0, ack);
}

static int fanout_consume_other(struct sink *sink, enum otlp_signal signal, const uint8_t *data, size_t len, struct ack *ack)
{
	return hand_out((struct sink_fanout *)sink, NULL, signal, data, len, ack);
}

/* Waits for @child to have nothing left. Past the deadline what is still queued is dropped; false when it is busy even so.
 */
static bool child_drain(struct child *child, uint64_t deadline_ns)
{
	struct sink_fanout *f = child->fanout;
	struct item *item;
	bool idle;

	pthread_mutex_lock(&f->lock);
	while (child->pending > 0 && thread_cond_wait(&f->settled, &f->lock, deadline_ns) != -ETIMEDOUT)
		;
	idle = child->pending == 0;
	pthread_mutex_unlock(&f->lock);
	if (idle)
		return true;
	while ((item = queue_steal_oldest(child->queue))) {
		metric_add(item->p ? child->dropped_shutdown : child->requests_shutdown,
			   item->p ? item->p->sample_events : 1);
		item_done(item, -ETIMEDOUT);
		child_settle(child);
	}
	return false;
}

static int fanout_flush(struct sink *sink, uint64_t deadline_ns)
{
	struct sink_fanout *f = (struct sink_fanout *)sink;
	int first = 0;

	for (size_t i = 0; i < f->count; i++) {
		struct child *child = &f->children[i];
		int error = child_drain(child, deadline_ns) ? sink_flush(child->sink, deadline_ns) : -ETIMEDOUT;

		if (error && !first)
			first = error;
	}
	return first;
}

static void fanout_free(struct sink *sink)
{
	struct sink_fanout *f = (struct sink_fanout *)sink;

	for (size_t i = 0; i < f->count; i++)
		if (f->children[i].queue)
			queue_close(f->children[i].queue);
	for (size_t i = 0; i < f->count; i++) {
		struct child *child = &f->children[i];

		if (child->running)
			pthread_join(child->thread, NULL);
		queue_free(child->queue);
		sink_free(child->sink);
	}
	pthread_cond_destroy(&f->settled);
	pthread_mutex_destroy(&f->lock);
	free(f->children);
	free(f);
}

static const struct sink_ops fanout_ops = {
	.name = "fanout",
	.durable = true,
	.consume = fanout_consume,
	.consume_other = fanout_consume_other,
	.flush = fanout_flush,
	.free = fanout_free,
};

static struct metric *dropped_counter(struct metrics *metrics, const char *name, const char *help, const char *sink_name,
				      const char *reason)
{
	struct buf labels = BUF_EMPTY;
	struct metric *m;

	metrics_label(&labels, "sink", sink_name, strlen(sink_name));
	metrics_label(&labels, "reason", reason, strlen(reason));
	m = metrics_counter(metrics, name, buf_text(&labels), help);
	buf_fini(&labels);
	return m;
}

static struct metric *dropped_samples(struct metrics *metrics, const char *sink_name, const char *reason)
{
	return dropped_counter(metrics, "hearth_sink_dropped_samples_total",
			       "Samples that a sink did not get or could not take.", sink_name, reason);
}

static struct metric *dropped_requests(struct metrics *metrics, const char *sink_name, const char *reason)
{
	return dropped_counter(metrics, "hearth_sink_dropped_requests_total",
			       "Requests of logs, metrics or traces that a sink did not get or could not take.", sink_name,
			       reason);
}

static int child_start(struct child *child, size_t queue_items, struct metrics *metrics)
{
	const char *name = child->sink->ops->name;
	char thread_name[16];
	int error;

	child->dropped_full = dropped_samples(metrics, name, "queue full");
	child->dropped_error = dropped_samples(metrics, name, "error");
	child->dropped_shutdown = dropped_samples(metrics, name, "shutdown");
	if (child->sink->ops->consume_other) {
		child->requests_full = dropped_requests(metrics, name, "queue full");
		child->requests_error = dropped_requests(metrics, name, "error");
		child->requests_shutdown = dropped_requests(metrics, name, "shutdown");
	}
	child->queue = queue_new(queue_items);
	if (!child->queue)
		return -ENOMEM;
	snprintf(thread_name, sizeof(thread_name), "sink-%.10s", name);
	error = thread_start(&child->thread, thread_name, child_main, child);
	child->running = !error;
	return error;
}

static void free_children(struct sink *const *children, size_t count)
{
	for (size_t i = 0; i < count; i++)
		sink_free(children[i]);
}

int sink_fanout_new(struct sink *const *children, size_t count, size_t queue_items, struct metrics *metrics,
		    struct sink **ret)
{
	struct sink_fanout *f = calloc(1, sizeof(*f));
	int error = count > MAX_CHILDREN ? -E2BIG : 0;

	if (f && !error)
		f->children = calloc(count + 1, sizeof(*f->children));
	if (!f || !f->children || thread_cond_init(&f->settled) != 0) {
		free_children(children, count);
		if (f)
			free(f->children);
		free(f);
		return error ? error : -ENOMEM;
	}
	f->sink.ops = &fanout_ops;
	pthread_mutex_init(&f->lock, NULL);
	f->count = count;
	f->queue_items = queue_items;
	for (size_t i = 0; i < count; i++) {
		f->children[i].fanout = f;
		f->children[i].sink = children[i];
	}
	for (size_t i = 0; i < count && !error; i++)
		error = child_start(&f->children[i], queue_items, metrics);
	if (error) {
		fanout_free(&f->sink);
		return error;
	}
	*ret = &f->sink;
	return 0;
}
