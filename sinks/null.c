/* SPDX-License-Identifier: Apache-2.0 */
/* The sink that forgets: for benchmarks, and for a producer that is run for its counters alone. */
#include "sinks/sinks.h"

#include <stdlib.h>

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
