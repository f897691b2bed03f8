/* SPDX-License-Identifier: Apache-2.0 */
/* A sink that has several owners: a pipeline that several receivers feed, an exporter of several pipelines. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "sinks/stage/stage_sink.h"

struct shared_sink {
	struct stage stage;
	pthread_mutex_t lock; /* one call of the next sink at a time */
	_Atomic unsigned owners;
};

static int shared_consume(struct sink *sink, struct profiles *p, struct ack *ack)
{
	struct shared_sink *s = (struct shared_sink *)sink;
	int err;

	pthread_mutex_lock(&s->lock);
	err = sink_consume(s->stage.next, p, ack);
	pthread_mutex_unlock(&s->lock);
	return err;
}

static int shared_other(struct sink *sink, enum otlp_signal signal, const uint8_t *data, size_t len, struct ack *ack)
{
	struct shared_sink *s = (struct shared_sink *)sink;
	int err;

	pthread_mutex_lock(&s->lock);
	err = sink_consume_other(s->stage.next, signal, data, len, ack);
	pthread_mutex_unlock(&s->lock);
	return err;
}

static int shared_flush(struct sink *sink, uint64_t deadline_ns)
{
	struct shared_sink *s = (struct shared_sink *)sink;
	int err;

	pthread_mutex_lock(&s->lock);
	err = sink_flush(s->stage.next, deadline_ns);
	pthread_mutex_unlock(&s->lock);
	return err;
}

static void shared_free(struct sink *sink)
{
	struct shared_sink *s = (struct shared_sink *)sink;

	if (atomic_fetch_sub(&s->owners, 1) > 1)
		return;
	sink_free(s->stage.next);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

int stage_shared_new(struct sink *next, struct sink **ret)
{
	struct shared_sink *s = calloc(1, sizeof(*s));

	if (!s) {
		sink_free(next);
		return -ENOMEM;
	}
	stage_init(&s->stage, next, shared_consume, shared_free);
	s->stage.ops.consume_other = shared_other;
	s->stage.ops.flush = shared_flush;
	pthread_mutex_init(&s->lock, NULL);
	atomic_init(&s->owners, 1);
	*ret = &s->stage.sink;
	return 0;
}

struct sink *stage_share(struct sink *shared)
{
	atomic_fetch_add(&((struct shared_sink *)shared)->owners, 1);
	return shared;
}
