/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two sinks, one after the other, in the producer's thread: for two that never wait, where a thread and a queue for each
 * (the fan-out) would be too much, and where one of them is used by the producer's thread for other things too. The second
 * one is told also when the first one fails.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/metrics.h"
#include "sinks/sinks.h"

struct sink_tee {
	struct sink sink;
	struct sink *first, *second; /* owned */
	struct metric *dropped;
};

/* Neither is asked for an ack: what is kept is the second one's business, and whether the first one shows it nobody waits
 * for. */
static int tee_consume(struct sink *sink, struct profiles *p, struct ack *ack)
{
	struct sink_tee *tee = (struct sink_tee *)sink;
	int first = sink_consume(tee->first, p, NULL), second = sink_consume(tee->second, p, NULL);

	(void)ack;
	if (second)
		metric_add(tee->dropped, p->sample_events);
	return first;
}

static int tee_flush(struct sink *sink, uint64_t deadline_ns)
{
	struct sink_tee *tee = (struct sink_tee *)sink;
	int first = sink_flush(tee->first, deadline_ns), second = sink_flush(tee->second, deadline_ns);

	return first ? first : second;
}

static void tee_free(struct sink *sink)
{
	struct sink_tee *tee = (struct sink_tee *)sink;

	sink_free(tee->first);
	sink_free(tee->second);
	free(tee);
}

static const struct sink_ops tee_ops = {
	.name = "tee",
	.consume = tee_consume,
	.flush = tee_flush,
	.free = tee_free,
};

int sink_tee_new(struct sink *first, struct sink *second, struct metrics *metrics, struct sink **ret)
{
	struct sink_tee *tee = calloc(1, sizeof(*tee));
	AUTO(buf_fini) struct buf labels = BUF_EMPTY;

	if (!tee) {
		sink_free(first);
		sink_free(second);
		return -ENOMEM;
	}
	tee->sink.ops = &tee_ops;
	tee->first = first;
	tee->second = second;
	metrics_label(&labels, "sink", second->ops->name, strlen(second->ops->name));
	metrics_label(&labels, "reason", "queue full", strlen("queue full"));
	tee->dropped = metrics_counter(metrics, "hearth_sink_dropped_samples_total", buf_text(&labels),
				       "Samples that a sink did not get or could not take.");
	*ret = &tee->sink;
	return 0;
}
