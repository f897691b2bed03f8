/* SPDX-License-Identifier: Apache-2.0 */
/* The sink in front of others that lets the workloads see what they take. */
#include <stdlib.h>

#include "backend/compat/workloads.h"
#include "base/clock.h"

struct workloads_sink {
	struct sink sink;
	struct sink_ops ops; /* durable as @next is */
	struct workloads *workloads;
	struct sink *next; /* owned */
};

static int workloads_consume(struct sink *sink, struct profiles *p, struct ack *ack)
{
	struct workloads_sink *s = (struct workloads_sink *)sink;
	int error = sink_consume(s->next, p, ack);

	if (!error)
		workloads_add(s->workloads, p, clock_mono_ns());
	return error;
}

static int workloads_consume_other(struct sink *sink, enum otlp_signal signal, const uint8_t *data, size_t len,
				   struct ack *ack)
{
	return sink_consume_other(((struct workloads_sink *)sink)->next, signal, data, len, ack);
}

static int workloads_flush(struct sink *sink, uint64_t deadline_ns)
{
	return sink_flush(((struct workloads_sink *)sink)->next, deadline_ns);
}

static void workloads_sink_free(struct sink *sink)
{
	sink_free(((struct workloads_sink *)sink)->next);
	free(sink);
}

int workloads_sink_new(struct workloads *w, struct sink *next, struct sink **ret)
{
	struct workloads_sink *s = calloc(1, sizeof(*s));

	if (!s) {
		sink_free(next);
		return -ENOMEM;
	}
	s->ops = (struct sink_ops){
		.name = next->ops->name,
		.durable = next->ops->durable,
		.consume = workloads_consume,
		.consume_other = workloads_consume_other,
		.flush = workloads_flush,
		.free = workloads_sink_free,
	};
	s->sink.ops = &s->ops;
	s->workloads = w;
	s->next = next;
	*ret = &s->sink;
	return 0;
}
