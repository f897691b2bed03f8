/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small records of the other signals that came through the receivers: what leads from a span, a log line or an exemplar of a
 * metric to the samples of its process at its time. They lie in a file of their own beside the store's, FOLDER/signals.db,
 * or in memory, with a limit and an age of their own; or in the store, where that keeps such (ClickHouse), with an age
 * alone. Collectors get the signals as they came.
 *
 * Nobody waits for them to be kept: requests go into a bounded queue, and a thread of their own decodes and commits them,
 * some 100 ms later at most. Each one that is lost on the way is counted. Keeping and questions may come from any thread.
 */
#ifndef HEARTH_BACKEND_SIGNALS_SIGNALS_H
#define HEARTH_BACKEND_SIGNALS_SIGNALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backend/store/store_records.h"
#include "proto/sink.h"

struct metrics;
struct signals;

struct signals_config {
	struct store *store; /* keeps them itself; borrowed, and all else but the age means nothing; NULL */
	const char *folder;  /* the store's; NULL: in memory */
	uint64_t bytes;	     /* at most, on disk; in memory a sixteenth of it */
	uint64_t age_ns;     /* older ones go; 0: none does */
	bool read_only;
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
