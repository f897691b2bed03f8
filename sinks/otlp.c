/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The OTLP exporter: consume() encodes, compresses and queues; one thread of its own sends, oldest first, and tries
 * again until the collector has answered. Every sample that came in is in the end counted once: exported, or dropped with a
 * reason.
 *
 *   consume() --> requests of at most max_export_bytes --> [queue, max_queue_bytes] --> sending --> collector
 *                                                            | full: the oldest goes    | retry: stays "sending"
 *
 * The requests of one consume() share a batch, which completes the producer's ack when the last of them is settled. The lock
 * guards the queue and the flags; a request belongs to whoever took it off the queue, and acks are completed without the
 * lock.
 */
#include "sinks/sinks.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/gzip.h"
#include "base/log.h"
#include "base/metrics.h"
#include "proto/otlp.h"
#include "sinks/otlp_http.h"
#include "base/thread.h"

enum {
	DEFAULT_EXPORT_BYTES = (4 << 20) - (64 << 10), /* common receivers stop at 4 MiB */
	DEFAULT_QUEUE_BYTES = 64 << 20,
	BACKOFF_FIRST_MS = 500,
	BACKOFF_MAX_MS = 30000,
	LOG_INTERVAL_S = 10,
	GZIP_LEVEL = 1, /* profiles shrink about as well as at 6, at a third of the time */
};

struct batch {		 /* what one consume() queued */
	struct ack *ack; /* or NULL */
	_Atomic uint32_t open;
	_Atomic int error; /* of the last request that failed */
};

struct request {
	struct request *next;
	struct batch *batch;
	uint8_t *frame; /* OTLP_GRPC_PREFIX_BYTES, then the body */
	size_t len;	/* of the body */
	uint64_t samples;
};

struct request_list {
	struct request *first, **last;
};

struct sink_otlp {
	struct sink sink;
	struct otlp_http *http;
	size_t max_export_bytes, max_queue_bytes;
	bool gzip;
	pthread_t thread;
	bool running;

	pthread_mutex_t lock;
	pthread_cond_t wake; /* for the thread: work, flushing, abandon or stop */
	pthread_cond_t idle; /* for flush(): nothing queued, nothing being sent */
	struct request_list queue;
	size_t queued_bytes; /* with what is being sent */
	bool sending, flushing, stop;
	_Atomic bool abandon; /* set under the lock, looked at by a transfer without it */

	bool away; /* the collector, as last seen by the thread */
	struct log_limit full_limit, refused_limit, partial_limit;
	struct metric *requests[OTLP_HTTP_ABANDONED];
	struct metric *bytes, *retries, *exported, *rejected_profiles;
	struct metric *dropped_full, *dropped_refused, *dropped_shutdown;
};

static void list_init(struct request_list *list)
{
	list->first = NULL;
	list->last = &list->first;
}

static void list_append(struct request_list *list, struct request *r)
{
	*list->last = r;
	list->last = &r->next;
}

static struct request *list_pop(struct request_list *list)
{
	struct request *r = list->first;

	if (r) {
		list->first = r->next;
		r->next = NULL;
		if (!list->first)
			list->last = &list->first;
	}
	return r;
}

static void request_free(struct request *r)
{
	free(r->frame);
	free(r);
}

/* The end of a request. Not under the lock: the producer is called. */
static void request_settle(struct request *r, int error)
{
	struct batch *b = r->batch;

	if (error)
		atomic_store(&b->error, error);
	if (atomic_fetch_sub(&b->open, 1) == 1) {
		if (b->ack)
			b->ack->done(b->ack, atomic_load(&b->error));
		free(b);
	}
	request_free(r);
}

static uint64_t drop_all(struct request_list *list, struct metric *reason, int error)
{
	uint64_t samples = 0;
	struct request *r;

	while ((r = list_pop(list))) {
		samples += r->samples;
		metric_add(reason, r->samples);
		request_settle(r, error);
	}
	return samples;
}

/* --- consume: encode, compress, queue --- */

struct encoding {
	struct sink_otlp *sink;
	struct batch *batch;
	struct request_list requests;
};

static int add_request(void *arg, const uint8_t *message, size_t len, uint64_t samples)
{
	static const uint8_t no_prefix[OTLP_GRPC_PREFIX_BYTES];
	struct encoding *e = arg;
	struct request *r = calloc(1, sizeof(*r));
	AUTO(buf_fini) struct buf frame = BUF_EMPTY;
	uint8_t *fitted;

	if (!r)
		return -ENOMEM;
	buf_append(&frame, no_prefix, sizeof(no_prefix));
	if (e->sink->gzip) {
		if (gzip_pack(message, len, GZIP_LEVEL, &frame))
			frame.failed = true;
	} else {
		buf_append(&frame, message, len);
	}
	if (frame.failed) {
		free(r);
		return -ENOMEM;
	}
	r->len = frame.len - OTLP_GRPC_PREFIX_BYTES;
	fitted = realloc(frame.data, frame.len); /* the queue's bound counts what is used */
	r->frame = fitted ? fitted : frame.data;
	frame = BUF_EMPTY;
	r->samples = samples;
	r->batch = e->batch;
	e->batch->open++;
	list_append(&e->requests, r);
	return 0;
}

/* Queues @requests; what there is no room for any more comes back in @dropped, oldest first. */
static void enqueue(struct sink_otlp *o, struct request_list *requests, struct request_list *dropped)
{
	struct request *r;

	pthread_mutex_lock(&o->lock);
	while ((r = list_pop(requests))) {
		o->queued_bytes += r->len;
		list_append(&o->queue, r);
	}
	while (o->queued_bytes > o->max_queue_bytes && (r = list_pop(&o->queue))) {
		o->queued_bytes -= r->len;
		list_append(dropped, r);
	}
	pthread_cond_signal(&o->wake);
	pthread_mutex_unlock(&o->lock);
}

static int otlp_consume(struct sink *sink, struct profiles *p, struct ack *ack)
{
	struct sink_otlp *o = (struct sink_otlp *)sink;
	struct encoding e = { .sink = o, .batch = calloc(1, sizeof(*e.batch)) };
	struct request_list dropped;
	struct request *r;
	int error;

	list_init(&e.requests);
	list_init(&dropped);
	if (!e.batch)
		return -ENOMEM;
	e.batch->ack = ack;
	error = p->resource_count > 0 ? otlp_encode_split(p, o->max_export_bytes, add_request, &e) : 0;
	if (error || !e.requests.first) {
		while ((r = list_pop(&e.requests)))
			request_free(r);
		free(e.batch);
		if (!error && ack) /* nothing to send */
			ack->done(ack, 0);
		return error;
	}
	enqueue(o, &e.requests, &dropped);
	if (drop_all(&dropped, o->dropped_full, -ENOBUFS) > 0)
		log_limited(&o->full_limit, LOG_INTERVAL_S * NSEC_PER_SEC, LOG_WARN,
			    "the queue for %s is full (%zu MiB): the oldest samples go, %" PRIu64 " so far",
			    otlp_http_url(o->http), o->max_queue_bytes >> 20, metric_get(o->dropped_full));
	return 0;
}

/* --- the sending thread --- */

static const char *advice(enum otlp_http_cause cause)
{
	switch (cause) {
	case OTLP_CAUSE_CREDENTIALS:
		return " (check the credentials: a header, the token's file or the URL's user)";
	case OTLP_CAUSE_PLACE:
		return " (check the URL; collectors take profiles at http://HOST:4318/v1development/profiles and "
		       "grpc://HOST:4317)";
	case OTLP_CAUSE_SIZE:
		return " (lower the size of an export)";
	default:
		return "";
	}
}

static void note_away(struct sink_otlp *o, const struct otlp_http_answer *a)
{
	if (o->away)
		return;
	o->away = true;
	log_warn("cannot reach %s: %s%s%s; keeping up to %zu MiB and retrying", otlp_http_url(o->http), a->status,
		 a->status[0] && a->message[0] ? ": " : "", a->message, o->max_queue_bytes >> 20);
}

static void note_back(struct sink_otlp *o)
{
	if (o->away)
		log_info("%s answers again", otlp_http_url(o->http));
	o->away = false;
}

static void account_ok(struct sink_otlp *o, const struct request *r, size_t sent, const struct otlp_http_answer *a)
{
	metric_add(o->exported, r->samples);
	metric_add(o->bytes, sent);
	if (a->rejected > 0)
		metric_add(o->rejected_profiles, a->rejected);
	if (a->rejected > 0 || a->message[0])
		log_limited(&o->partial_limit, LOG_INTERVAL_S * NSEC_PER_SEC, LOG_WARN,
			    "%s did not take %" PRId64 " of the profiles of a request: %s", otlp_http_url(o->http),
			    a->rejected, a->message);
}

static void account_refused(struct sink_otlp *o, const struct request *r, const struct otlp_http_answer *a)
{
	metric_add(o->dropped_refused, r->samples);
	log_limited(&o->refused_limit, LOG_INTERVAL_S * NSEC_PER_SEC, LOG_ERROR,
		    "%s refused %" PRIu64 " samples with %s%s%s%s", otlp_http_url(o->http), r->samples, a->status,
		    a->message[0] ? ": " : "", a->message, advice(a->cause));
}

/* How long to wait after the @failures-th failure in a row: doubled each time, and half of it left to chance, so that many
 * senders do not come back at once. */
static uint64_t backoff_ns(unsigned failures)
{
	uint64_t full = BACKOFF_FIRST_MS * NSEC_PER_MSEC << (failures < 7 ? failures - 1 : 6);
	uint64_t chance;

	if (full > BACKOFF_MAX_MS * NSEC_PER_MSEC)
		full = BACKOFF_MAX_MS * NSEC_PER_MSEC;
	if (getrandom(&chance, sizeof(chance), 0) != sizeof(chance))
		chance = clock_mono_ns();
	return full / 2 + chance % (full / 2);
}

/* Waits before the next attempt; while a flush waits for us, no longer than the first step (a Retry-After is kept to). False
 * when the rest was given up. */
static bool pause_before_retry(struct sink_otlp *o, unsigned failures, uint64_t retry_after_ns)
{
	uint64_t start = clock_mono_ns(), wait = retry_after_ns ? retry_after_ns : backoff_ns(failures);
	uint64_t hurried = retry_after_ns ? retry_after_ns : BACKOFF_FIRST_MS * NSEC_PER_MSEC;
	bool go_on;

	pthread_mutex_lock(&o->lock);
	while (!o->abandon) {
		uint64_t until = start + (o->flushing && hurried < wait ? hurried : wait);

		if (clock_mono_ns() >= until)
			break;
		thread_cond_wait(&o->wake, &o->lock, until);
	}
	go_on = !o->abandon;
	pthread_mutex_unlock(&o->lock);
	return go_on;
}

/* Sends @r until it is settled one way or the other. Returns what its ack is told. */
static int deliver(struct sink_otlp *o, const struct request *r)
{
	for (unsigned failures = 1;; failures++) {
		struct otlp_http_answer answer;
		size_t sent;

		otlp_http_post(o->http, r->frame + OTLP_GRPC_PREFIX_BYTES, r->len, &o->abandon, &answer, &sent);
		if (answer.outcome == OTLP_HTTP_ABANDONED)
			break;
		metric_add(o->requests[answer.outcome], 1);
		if (answer.outcome == OTLP_HTTP_OK) {
			note_back(o);
			account_ok(o, r, sent, &answer);
			return 0;
		}
		if (answer.outcome == OTLP_HTTP_REFUSED) {
			note_back(o);
			account_refused(o, r, &answer);
			return -EREMOTEIO;
		}
		note_away(o, &answer);
		if (!pause_before_retry(o, failures, answer.retry_after_ns))
			break;
		metric_add(o->retries, 1);
	}
	metric_add(o->dropped_shutdown, r->samples);
	return -ETIMEDOUT;
}

static void *otlp_main(void *arg)
{
	struct sink_otlp *o = arg;
	struct request *r;

	pthread_mutex_lock(&o->lock);
	for (;;) {
		size_t len;
		int error;

		while (!(r = list_pop(&o->queue)) && !o->stop)
			pthread_cond_wait(&o->wake, &o->lock);
		if (!r)
			break;
		o->sending = true;
		pthread_mutex_unlock(&o->lock);
		len = r->len;
		error = deliver(o, r);
		request_settle(r, error);
		pthread_mutex_lock(&o->lock);
		o->queued_bytes -= len;
		o->sending = false;
		pthread_cond_broadcast(&o->idle);
	}
	pthread_mutex_unlock(&o->lock);
	return NULL;
}

/* Gives up what is queued and being sent. The lock is held, and let go on the way. True when there was anything. */
static bool abandon_rest(struct sink_otlp *o)
{
	struct request_list rest;
	struct request *r;
	bool any = o->sending || o->queue.first;

	list_init(&rest);
	while ((r = list_pop(&o->queue))) {
		o->queued_bytes -= r->len;
		list_append(&rest, r);
	}
	o->abandon = true;
	pthread_cond_signal(&o->wake);
	otlp_http_wake(o->http);
	while (o->sending)
		pthread_cond_wait(&o->idle, &o->lock);
	o->abandon = false;
	pthread_mutex_unlock(&o->lock);
	drop_all(&rest, o->dropped_shutdown, -ETIMEDOUT);
	pthread_mutex_lock(&o->lock);
	return any;
}

static int otlp_flush(struct sink *sink, uint64_t deadline_ns)
{
	struct sink_otlp *o = (struct sink_otlp *)sink;
	int error = 0;

	pthread_mutex_lock(&o->lock);
	o->flushing = true;
	pthread_cond_signal(&o->wake);
	while ((o->sending || o->queue.first) && error != -ETIMEDOUT)
		error = thread_cond_wait(&o->idle, &o->lock, deadline_ns);
	error = abandon_rest(o) ? -ETIMEDOUT : 0;
	o->flushing = false;
	pthread_mutex_unlock(&o->lock);
	return error;
}

static void otlp_free(struct sink *sink)
{
	struct sink_otlp *o = (struct sink_otlp *)sink;

	if (o->running) {
		pthread_mutex_lock(&o->lock);
		abandon_rest(o);
		o->stop = true;
		pthread_cond_signal(&o->wake);
		pthread_mutex_unlock(&o->lock);
		pthread_join(o->thread, NULL);
	}
	pthread_cond_destroy(&o->idle);
	pthread_cond_destroy(&o->wake);
	pthread_mutex_destroy(&o->lock);
	otlp_http_free(o->http);
	free(o);
}

static const struct sink_ops otlp_ops = {
	.name = "otlp",
	.durable = true,
	.consume = otlp_consume,
	.flush = otlp_flush,
	.free = otlp_free,
};

static void register_counters(struct sink_otlp *o, struct metrics *m)
{
	static const char *const results[] = {
		[OTLP_HTTP_OK] = "result=\"ok\"",
		[OTLP_HTTP_REFUSED] = "result=\"refused\"",
		[OTLP_HTTP_BUSY] = "result=\"busy\"",
		[OTLP_HTTP_TIMEOUT] = "result=\"timeout\"",
		[OTLP_HTTP_UNREACHABLE] = "result=\"unreachable\"",
	};
	static const char dropped[] = "hearth_export_dropped_samples_total";
	static const char dropped_help[] = "Samples that no collector will get from this process, by reason.";

	for (size_t i = 0; i < OTLP_HTTP_ABANDONED; i++)
		o->requests[i] = metrics_counter(m, "hearth_export_requests_total", results[i],
						 "Attempts to deliver an export request, by how they ended.");
	o->retries = metrics_counter(m, "hearth_export_retries_total", NULL,
				     "Attempts that repeated an earlier one of the same request.");
	o->bytes = metrics_counter(m, "hearth_export_bytes_total", NULL,
				   "Bytes of the acknowledged request bodies, as sent (compressed).");
	o->exported = metrics_counter(m, "hearth_exported_samples_total", NULL, "Samples in acknowledged requests.");
	o->rejected_profiles = metrics_counter(
		m, "hearth_export_rejected_profiles_total", NULL,
		"Profiles inside acknowledged requests that the collector says it did not take.");
	o->dropped_full = metrics_counter(m, dropped, "reason=\"queue full\"", dropped_help);
	o->dropped_refused = metrics_counter(m, dropped, "reason=\"refused\"", dropped_help);
	o->dropped_shutdown = metrics_counter(m, dropped, "reason=\"shutdown\"", dropped_help);
}

int sink_otlp_new(const struct otlp_sink_config *config, struct metrics *metrics, struct sink **ret)
{
	struct sink_otlp *o = calloc(1, sizeof(*o));
	int error;

	if (!o)
		return -ENOMEM;
	o->sink.ops = &otlp_ops;
	o->gzip = !config->no_gzip;
	o->max_export_bytes = config->max_export_bytes ? config->max_export_bytes : DEFAULT_EXPORT_BYTES;
	o->max_queue_bytes = config->max_queue_bytes ? config->max_queue_bytes : DEFAULT_QUEUE_BYTES;
	list_init(&o->queue);
	pthread_mutex_init(&o->lock, NULL);
	thread_cond_init(&o->wake);
	thread_cond_init(&o->idle);
	error = otlp_http_new(config, &o->http);
	if (!error) {
		register_counters(o, metrics);
		error = thread_start(&o->thread, "sink-otlp-send", otlp_main, o);
	}
	o->running = !error;
	if (error) {
		otlp_free(&o->sink);
		return error;
	}
	*ret = &o->sink;
	return 0;
}
