/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interface of all that profiles are sent to. The agent and the receiver are the only producers; both know nothing but
 * this interface.
 *
 * consume() borrows a frozen struct profiles (profiles_get() to keep it) and must not block on I/O unless its sink stands
 * behind a queue (sinks/fanout). It returns 0, -EAGAIN (full now: the producer decides), or another -errno. When an ack is
 * given, a durable sink (ops->durable) completes it exactly once, from any thread, also when consume() failed after
 * accepting; the others ignore it. A producer that gets an error from consume() itself completes nothing and is told nothing
 * later.
 *
 * consume_other() takes OTLP logs, metrics and traces, sound requests as encoded bytes (borrowed), with acks as consume()
 * has them; -EOPNOTSUPP: this sink has no use for the signal, and no ack will come. flush() brings out what is buffered,
 * until
 * @deadline_ns of CLOCK_MONOTONIC: 0, or -ETIMEDOUT with the rest counted as lost. free() accepts what is half built. flush
 * and free are called by the thread that wired the sink.
 */
#ifndef HEARTH_PROTO_SINK_H
#define HEARTH_PROTO_SINK_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include "proto/profiles.h"

struct ack {
	void (*done)(struct ack *ack, int error); /* 0 or -errno */
};

enum otlp_signal { OTLP_LOGS, OTLP_METRICS, OTLP_TRACES, OTLP_PROFILES, OTLP_OTHERS = OTLP_PROFILES, OTLP_SIGNALS };

/* The name of a signal in names of files and labels of counters. */
static inline const char *otlp_signal_name(enum otlp_signal signal)
{
	static const char *const names[] = {
		[OTLP_LOGS] = "logs", [OTLP_METRICS] = "metrics", [OTLP_TRACES] = "traces", [OTLP_PROFILES] = "profiles"
	};

	return names[signal];
}

struct sink;

struct sink_ops {
	const char *name; /* as in --sink NAME */
	bool durable;	  /* completes acks; the others ignore them */
	int (*consume)(struct sink *sink, struct profiles *p, struct ack *ack);
	int (*consume_other)(struct sink *sink, enum otlp_signal signal, const uint8_t *data, size_t len,
			     struct ack *ack);		       /* optional */
	int (*flush)(struct sink *sink, uint64_t deadline_ns); /* optional */
	void (*free)(struct sink *sink);
};

struct sink { /* first member of every struct sink_foo */
	const struct sink_ops *ops;
};

static inline int sink_consume(struct sink *s, struct profiles *p, struct ack *ack)
{
	return s->ops->consume(s, p, ack);
}

static inline int sink_consume_other(struct sink *s, enum otlp_signal signal, const uint8_t *data, size_t len,
				     struct ack *ack)
{
	return s->ops->consume_other ? s->ops->consume_other(s, signal, data, len, ack) : -EOPNOTSUPP;
}

static inline int sink_flush(struct sink *s, uint64_t deadline_ns)
{
	return s && s->ops->flush ? s->ops->flush(s, deadline_ns) : 0;
}

static inline void sink_free(struct sink *s)
{
	if (s)
		s->ops->free(s);
}

#endif
