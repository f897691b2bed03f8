/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the exporter's two halves: consume() and its like (otlp.c), and the sending thread (send.c). */
#ifndef HEARTH_SINKS_OTLP_EXPORTER_H
#define HEARTH_SINKS_OTLP_EXPORTER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/log.h"
#include "base/metrics.h"
#include "sinks/otlp/http.h"
#include "sinks/otlp/request.h"
#include "sinks/sinks.h"

struct spool;

enum { OTLP_LOG_INTERVAL_S = 10 };

struct otlp_counters {
	struct metric *requests[OTLP_HTTP_ABANDONED];
	struct metric *queue_bytes, *bytes, *retries, *splits, *repacked, *exported, *rejected_profiles, *spooled;
	struct metric *forwarded[OTLP_OTHERS];
	struct metric *dropped_full, *dropped_refused, *dropped_shutdown, *dropped_unanswered, *dropped_error;
};

struct sink_otlp {
	struct sink sink;
	struct otlp_http *http;
	size_t max_queue_bytes;
	_Atomic size_t max_export_bytes;   /* lowered by the thread when the collector says that a request is too large */
	_Atomic enum otlp_packing packing; /* changed by the thread when the collector does not take it */
	struct otlp_counters counters;
	struct log_limit full_limit;
	pthread_t thread;
	bool running;

	pthread_mutex_t lock; /* guards from here to the next comment */
	pthread_cond_t wake;  /* for the thread: work, flushing, abandon or stop */
	pthread_cond_t idle;  /* for flush(): the thread has nothing, or has given up what it had */
	struct otlp_requests queue;
	size_t queued_bytes; /* with what the thread holds */
	bool busy;	     /* the thread holds a request, or is sending one */
	bool flushing, stop;
	_Atomic bool abandon; /* set under the lock, looked at by a transfer without it; the thread clears it */
	bool gave_up;	      /* something was dropped for that */

	/* the thread's own */
	struct spool *spool;	   /* or NULL */
	uint64_t spool_bytes;	   /* for messages */
	uint64_t spool_mended_ns;  /* after an error: no sooner used again */
	struct otlp_request *held; /* from the queue, to be tried again; counted in queued_bytes */
	bool is_spools_turn;
	bool away; /* the collector, as last seen */
	unsigned failures;
	uint64_t pause_start_ns, pause_ns, hurried_ns; /* before the next attempt; hurried while a flush waits */
	struct log_limit refused_limit, partial_limit, spool_limit;
};

/* The queue became longer by @bytes, or shorter. Under the lock. */
static inline void otlp_count_queued(struct sink_otlp *o, ptrdiff_t bytes)
{
	o->queued_bytes += (size_t)bytes;
	metric_set(o->counters.queue_bytes, o->queued_bytes);
}

/* The sending thread; @arg is the sink. */
void *otlp_send_main(void *arg);

#endif
