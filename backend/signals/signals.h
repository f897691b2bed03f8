/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small records of the other signals that came through the receivers: what leads from a span, a log line or an exemplar of a
 * metric to the samples of its process at its time. They lie in a file of their own beside the store's, FOLDER/signals.db,
 * or in memory, with a limit and an age of their own; collectors get the signals as they came.
 *
 * Nobody waits for them to be kept: requests go into a bounded queue, and a thread of their own decodes and commits them,
 * some 100 ms later at most. Each one that is lost on the way is counted. Keeping and questions may come from any thread.
 */
#ifndef HEARTH_BACKEND_SIGNALS_SIGNALS_H
#define HEARTH_BACKEND_SIGNALS_SIGNALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backend/store/store_read.h"
#include "proto/sink.h"

struct metrics;
struct signals;

enum { SIGNAL_NAME_BYTES = 128, SIGNAL_BODY_BYTES = 256 }; /* longer ones are cut */

/* Labels of these records beside those of their resource and STORE_TRACE_LABEL, STORE_SPAN_LABEL. */
#define SIGNAL_NAME_LABEL   "span_name" /* backend/query/selected.h has it, too */
#define SIGNAL_METRIC_LABEL "metric"

struct signals_config {
	const char *folder; /* the store's; NULL: in memory */
	uint64_t bytes;	    /* at most, on disk; in memory a sixteenth of it */
	uint64_t age_ns;    /* older ones go; 0: none does */
	bool read_only;
};

/* Strings live until the callback that got them returns. */
struct kept_resource {
	const char *service; /* service.name; "" */
	const char *labels;  /* KEY \0 VALUE \0 ..., @len bytes; those beyond 4 KB are left out */
	size_t len;
};

struct kept_span {
	uint8_t trace[16], span[8], parent[8]; /* parent: all 0: it has none */
	uint64_t start_ns, end_ns;	       /* Unix */
	uint8_t kind, status;		       /* as in OTLP */
	const char *name;
	int64_t thread_id; /* as the SDK says it, which may be a number of its own; -1: not said */
	const char *thread_name;
	struct kept_resource resource;
};

struct kept_log {
	int64_t id; /* of this file */
	uint64_t time_ns;
	uint8_t trace[16], span[8]; /* all 0: none */
	uint8_t severity;	    /* as in OTLP */
	const char *body;
	struct kept_resource resource;
};

struct kept_exemplar {
	uint64_t time_ns;
	uint8_t trace[16], span[8]; /* all 0: none */
	double value;
	const char *metric, *unit;
	struct kept_resource resource;
};

/* Which records: those that overlap the range and meet all matchers, of which only labels that a record can have are looked
 * at. @trace and @span choose by an index. */
struct signals_question {
	uint64_t from_ns, to_ns;
	const uint8_t *trace, *span; /* 16 and 8 bytes; NULL: any */
	int64_t id;		     /* of a log; 0: any */
	const struct store_matcher *matchers;
	size_t matcher_count;
	const char *text;     /* in a log's body, in letters of any case; NULL: any */
	uint8_t severity;     /* of a log at least */
	uint64_t deadline_ns; /* CLOCK_MONOTONIC; 0: none */
};

/* @config is copied, but for its folder; @metrics is borrowed, or NULL. A file is made when the first record comes. 0 or
 * -errno. */
int signals_new(const struct signals_config *config, struct metrics *metrics, struct signals **ret);
/* Keeps what is queued first. Accepts NULL. */
void signals_free(struct signals *s);

/* Queues a sound request of @signal, protobuf, which is copied. */
void signals_keep(struct signals *s, enum otlp_signal signal, const uint8_t *data, size_t len);

/* Waits until all that was queued before is kept or lost. */
void signals_flush(struct signals *s);

/* Has retention look at once, with the next that is queued, not within 10 s. */
void signals_look(struct signals *s);

/* Removes all. 0 or -errno. */
int signals_clear(struct signals *s);

/*
 * Call @fn for the records, the newest first, until it returns something else than 0, which is returned. A record that came
 * twice is told twice. @fn must not ask for more. 0, -ETIMEDOUT, -ELOOP as a store's questions, -errno.
 */
int signals_spans(struct signals *s, const struct signals_question *q, int (*fn)(void *arg, const struct kept_span *span),
		  void *arg);
int signals_logs(struct signals *s, const struct signals_question *q, int (*fn)(void *arg, const struct kept_log *log),
		 void *arg);
int signals_exemplars(struct signals *s, const struct signals_question *q,
		      int (*fn)(void *arg, const struct kept_exemplar *exemplar), void *arg);

/* The value of attribute @key of @r as text; NULL: it has none. */
const char *signals_resource_value(const struct kept_resource *r, const char *key);

#endif
