/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small records of the other signals, and a store that keeps them itself. Where one does not, they lie in a file beside it
 * (backend/signals/, which is who asks and whom others ask).
 */
#ifndef HEARTH_BACKEND_STORE_STORE_RECORDS_H
#define HEARTH_BACKEND_STORE_STORE_RECORDS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backend/store/store_read.h"

enum { SIGNAL_NAME_BYTES = 128, SIGNAL_BODY_BYTES = 256 }; /* longer ones are cut */

/* Labels of these records beside those of their resource and STORE_TRACE_LABEL, STORE_SPAN_LABEL. */
#define SIGNAL_NAME_LABEL   "span_name" /* backend/query/selected.h has it, too */
#define SIGNAL_METRIC_LABEL "metric"

/* Strings live until the callback that got them, or the call that they were given to, returns. */
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
	int64_t id; /* of this log line in where it is kept; 2^53 at most, as JSON's numbers are */
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

/* Adding and committing belong to one thread; all else may come from any. Errors are -errno. */
struct store_record_ops {
	/* Adds to what the next commit keeps. 0 or -ENOMEM. */
	int (*add_span)(struct store *s, const struct kept_span *span);
	int (*add_log)(struct store *s, const struct kept_log *log);
	int (*add_exemplar)(struct store *s, const struct kept_exemplar *exemplar);

	/* Keeps what was added, for @age_ns (0: for ever); tries for half a minute, or until *@is_ending, where the store
	 * cannot be reached. What was added is gone after an error, too. */
	int (*commit)(struct store *s, uint64_t age_ns, const _Atomic bool *is_ending);

	/* Call @fn for the records, the newest first, until it returns something else than 0, which is returned. @fn must
	 * not ask for more. 0, or as questions of the store. */
	int (*spans)(struct store *s, const struct signals_question *q, int (*fn)(void *arg, const struct kept_span *span),
		     void *arg);
	int (*logs)(struct store *s, const struct signals_question *q, int (*fn)(void *arg, const struct kept_log *log),
		    void *arg);
	int (*exemplars)(struct store *s, const struct signals_question *q,
			 int (*fn)(void *arg, const struct kept_exemplar *exemplar), void *arg);

	int (*clear)(struct store *s); /* removes all */
};

#endif
