/* SPDX-License-Identifier: Apache-2.0 */
/* The sink that says how much came, a message for each request: the Collector's debug exporter in its usual form. */
#include "sinks/sink_type.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/log.h"

static int count_consume(struct sink *sink, struct profiles *p, struct ack *ack)
{
	uint64_t profile_count = 0;

	(void)sink, (void)ack;
	for (uint32_t i = 0; i < p->resource_count; i++)
		for (uint32_t k = 0; k < p->resources[i].scope_count; k++)
			profile_count += p->resources[i].scopes[k].profile_count;
	log_info("profiles: %" PRIu32 " resources, %" PRIu64 " profiles, %" PRIu64 " samples", p->resource_count,
		 profile_count, p->sample_events);
	return 0;
}

static int count_consume_other(struct sink *sink, enum otlp_signal signal, const uint8_t *data, size_t len, struct ack *ack)
{
	(void)sink, (void)data, (void)ack;
	log_info("%s: a request of %zu bytes", otlp_signal_name(signal), len);
	return 0;
}

static void count_free(struct sink *sink)
{
	free(sink);
}

static const struct sink_ops count_ops = {
	.name = "count",
	.consume = count_consume,
	.consume_other = count_consume_other,
	.free = count_free,
};

static int make_count(const struct sink_settings *settings, const char *value, struct sink **ret, struct buf *error)
{
	struct sink *s = calloc(1, sizeof(*s));

	(void)settings, (void)value, (void)error;
	if (!s)
		return -ENOMEM;
	s->ops = &count_ops;
	*ret = s;
	return 0;
}

const struct sink_type sink_type_count = {
	.name = "count",
	.help = "a message for each report",
	.make = make_count,
};
