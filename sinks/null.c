/* SPDX-License-Identifier: Apache-2.0 */
/* The sink that forgets: for benchmarks, and for a producer that is run for its counters alone. */
#include "sinks/sink_type.h"

#include <stdlib.h>

#include "base/buf.h"

static int null_consume(struct sink *sink, struct profiles *p, struct ack *ack)
{
	(void)sink, (void)p, (void)ack;
	return 0;
}

static int null_consume_other(struct sink *sink, enum otlp_signal signal, const uint8_t *data, size_t len, struct ack *ack)
{
	(void)sink, (void)signal, (void)data, (void)len, (void)ack;
	return 0;
}

static void null_free(struct sink *sink)
{
	free(sink);
}

static const struct sink_ops null_ops = {
	.name = "null",
	.consume = null_consume,
	.consume_other = null_consume_other,
	.free = null_free,
};

int sink_null_new(struct sink **ret)
{
	struct sink *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->ops = &null_ops;
	*ret = s;
	return 0;
}

static int make_null(const struct sink_settings *settings, const char *value, struct sink **ret, struct buf *error)
{
	(void)settings, (void)value, (void)error;
	return sink_null_new(ret);
}

/* The counters are there whatever the sinks are; who names this one wants them and nothing else. */
static int make_prometheus(const struct sink_settings *settings, const char *value, struct sink **ret, struct buf *error)
{
	(void)value;
	if (!settings->receives) {
		buf_puts(error, "--sink: prometheus is what 'hearth serve' counts for /metrics");
		return -EINVAL;
	}
	return sink_null_new(ret);
}

const struct sink_type sink_type_null = { .name = "null", .make = make_null };
const struct sink_type sink_type_prometheus = {
	.name = "prometheus",
	.help = "nowhere: /metrics counts them",
	.make = make_prometheus,
};
