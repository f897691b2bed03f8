/* SPDX-License-Identifier: Apache-2.0 */
/* A sink that counts, and fails when the profile asks for it: its resource says test.errno=N. */
#ifndef HEARTH_TESTS_RECORDER_H
#define HEARTH_TESTS_RECORDER_H

#include "proto/sink.h"

struct sink_recorder {
	struct sink sink;
	uint64_t sample_events;
	uint64_t other[3];
};

static inline int recorder_consume(struct sink *sink, struct profiles *p, struct ack *ack)
{
	struct sink_recorder *r = (struct sink_recorder *)sink;
	assert_null(ack);
	if (p->resource_count) {
		const struct any_value *v = profiles_find_key(p, &p->resources[0].resource.attributes, "test.errno");
		if (v && v->kind == VALUE_INT)
			return -(int)v->integer;
	}
	r->sample_events += p->sample_events;
	return 0;
}

static inline int recorder_other(struct sink *sink, enum otlp_signal signal, const uint8_t *data, size_t len,
				 struct ack *ack)
{
	struct sink_recorder *r = (struct sink_recorder *)sink;
	assert_null(ack);
	assert_non_null(data);
	r->other[signal] += 1 + len;
	return 0;
}

static const struct sink_ops recorder_ops = {
	.name = "recorder",
	.consume = recorder_consume,
	.consume_other = recorder_other,
};

#endif
