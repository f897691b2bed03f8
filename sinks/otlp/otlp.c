/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The OTLP exporter: consume() encodes, compresses and queues; one thread of its own (send.c) sends, oldest first, and
 * tries again until the collector has answered. Every sample that came in is in the end counted once: exported, dropped with
 * a reason, or still in the spool.
 *
 *   consume() --> requests of at most max_export_bytes --> [queue, max_queue_bytes] --> thread --> collector
 *                                                            | full: the oldest goes    |   ^
 *                                                                      away: [spool, on disk]
 *
 * The requests of one consume() share a batch, which completes the producer's ack when the last of them is settled. The lock
 * guards the queue and the flags; a request belongs to the thread that took it off the queue, and acks are completed without
 * the lock.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/thread.h"
#include "proto/otlp/otlp.h"
#include "sinks/otlp/exporter.h"
#include "sinks/otlp/spool.h"

enum {
	DEFAULT_EXPORT_BYTES = (4 << 20) - (64 << 10), /* common receivers stop at 4 MiB */
	DEFAULT_QUEUE_BYTES = 64 << 20,
	DEFAULT_SPOOL_BYTES = 512 << 20,
	MAX_FOLDER_CHARS = 100,
};

/* --- consume: encode, compress, queue --- */

struct encoding {
	struct sink_otlp *sink;
	struct otlp_batch *batch;
	struct otlp_requests requests;
};

/* In JSON a message grows to about the double: a message too large there is split again, into as many parts as it is too
 * large. */
static int fit_json(struct encoding *e, struct otlp_request *r)
{
	size_t max = e->sink->max_export_bytes, json = otlp_request_json_bytes(r);
	struct otlp_requests parts;
	int error;

	otlp_requests_init(&parts);
	error = json > max ? otlp_request_split(r, (size_t)((double)r->message_bytes * 0.9 * (double)max / (double)json),
						&parts)
			   : -E2BIG;
	if (error) { /* small enough, or a single sample; a lack of memory shows when it is sent */
		otlp_requests_append(&e->requests, r);
		return 0;
	}
	otlp_request_settle(r, 0); /* not the batch's last */
	while ((r = otlp_requests_pop(&parts)))
		fit_json(e, r);
	return 0;
}

static int add_request(void *arg, const uint8_t *message, size_t len, uint64_t samples)
{
	struct encoding *e = arg;
	struct otlp_request *r;
	int error = otlp_request_new(message, len, samples, e->sink->packing, e->batch, &r);

	if (error)
		return error;
	if (otlp_http_protocol(e->sink->http) == OTLP_HTTP_JSON)
		return fit_json(e, r);
	otlp_requests_append(&e->requests, r);
	return 0;
}

/* Queues @requests; what there is no room for any more comes back in @dropped, oldest first. */
static void enqueue(struct sink_otlp *o, struct otlp_requests *requests, struct otlp_requests *dropped)
{
	struct otlp_request *r;

	pthread_mutex_lock(&o->lock);
	while ((r = otlp_requests_pop(requests))) {
		otlp_count_queued(o, (ptrdiff_t)otlp_request_len(r));
		otlp_requests_append(&o->queue, r);
	}
	while (o->queued_bytes > o->max_queue_bytes && (r = otlp_requests_pop(&o->queue))) {
		otlp_count_queued(o, -(ptrdiff_t)otlp_request_len(r));
		otlp_requests_append(dropped, r);
	}
	pthread_cond_signal(&o->wake);
	pthread_mutex_unlock(&o->lock);
}

static void drop_oldest(struct sink_otlp *o, struct otlp_requests *dropped)
{
	struct otlp_request *r;

	if (!dropped->first)
		return;
	while ((r = otlp_requests_pop(dropped))) {
		metric_add(o->counters.dropped_full, r->samples);
		otlp_request_settle(r, -ENOBUFS);
	}
	log_limited(&o->full_limit, OTLP_LOG_INTERVAL_S * NSEC_PER_SEC, LOG_WARN,
		    "the queue for %s is full (%zu MiB): the oldest samples go, %" PRIu64 " so far", otlp_http_url(o->http),
		    o->max_queue_bytes >> 20, metric_get(o->counters.dropped_full));
}

/* consume()'s own hold of the batch, which completes the ack when there are no requests. */
static void release_batch(struct otlp_batch *b)
{
	if (atomic_fetch_sub(&b->open, 1) != 1)
		return;
	if (b->ack)
		b->ack->done(b->ack, atomic_load(&b->error));
	free(b);
}

static int otlp_consume(struct sink *sink, struct profiles *p, struct ack *ack)
{
	struct sink_otlp *o = (struct sink_otlp *)sink;
	struct encoding e = { .sink = o, .batch = calloc(1, sizeof(*e.batch)) };
	struct otlp_requests dropped;
	struct otlp_request *r;
	int error;

	otlp_requests_init(&e.requests);
	otlp_requests_init(&dropped);
	if (!e.batch)
		return -ENOMEM;
	e.batch->ack = ack;
	e.batch->open = 1;
	error = p->resource_count > 0 ? otlp_encode_split(p, o->max_export_bytes, add_request, &e) : 0;
	if (error) {
		e.batch->ack = NULL; /* a caller that gets an error from us is told nothing later */
		while ((r = otlp_requests_pop(&e.requests)))
			otlp_request_settle(r, error);
	} else if (e.requests.first) {
		enqueue(o, &e.requests, &dropped);
	}
	release_batch(e.batch);
	drop_oldest(o, &dropped);
	return error;
}

/* Logs and their like go the same way, one request each, which counts as one sample. */
static int otlp_consume_other(struct sink *sink, enum otlp_signal signal, const uint8_t *data, size_t len, struct ack *ack)
{
	struct sink_otlp *o = (struct sink_otlp *)sink;
	struct otlp_requests requests, dropped;
	struct otlp_batch *batch;
	struct otlp_request *r;
	int error;

	if (!otlp_http_takes(o->http, signal))
		return -EOPNOTSUPP;
	batch = calloc(1, sizeof(*batch));
	if (!batch)
		return -ENOMEM;
	error = otlp_request_new(data, len, 1, o->packing, batch, &r);
	if (error) {
		free(batch);
		return error;
	}
	batch->ack = ack;
	r->signal = signal;
	otlp_requests_init(&requests);
	otlp_requests_init(&dropped);
	otlp_requests_append(&requests, r);
	enqueue(o, &requests, &dropped);
	drop_oldest(o, &dropped);
	return 0;
}

/* --- the end --- */

/* Makes the thread give up what it has and what is queued: into the spool, or dropped and counted. The lock is held, and let
 * go on the way. True when something was dropped. */
static bool abandon_rest(struct sink_otlp *o)
{
	o->gave_up = false;
	o->abandon = true;
	pthread_cond_signal(&o->wake);
	otlp_http_wake(o->http);
	while (o->abandon)
		pthread_cond_wait(&o->idle, &o->lock);
	return o->gave_up;
}

static int otlp_flush(struct sink *sink, uint64_t deadline_ns)
{
	struct sink_otlp *o = (struct sink_otlp *)sink;
	int error = 0;

	pthread_mutex_lock(&o->lock);
	o->flushing = true;
	pthread_cond_signal(&o->wake);
	while ((o->busy || o->queue.first) && error != -ETIMEDOUT)
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
		o->stop = true; /* first: or it would go on with the spool, and wait for an answer once more */
		abandon_rest(o);
		pthread_mutex_unlock(&o->lock);
		pthread_join(o->thread, NULL);
	}
	if (o->spool && spool_samples(o->spool))
		log_info("%" PRIu64 " samples for %s wait in %s for the next start", spool_samples(o->spool),
			 otlp_http_url(o->http), spool_dir(o->spool));
	spool_close(o->spool);
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
	.consume_other = otlp_consume_other,
	.flush = otlp_flush,
	.free = otlp_free,
};

/* --- the beginning --- */

/* Metrics in which the exporter's series are registered; each of several exporters has a label of its own. */
struct series {
	struct metrics *metrics;
	const char *collector; /* or NULL */
};

/* The labels of one series: the collector, when it is named, and @key, when there is one. */
static void put_labels(const struct series *s, const char *key, const char *value, struct buf *out)
{
	if (s->collector)
		metrics_label(out, "collector", s->collector, strlen(s->collector));
	if (key)
		metrics_label(out, key, value, strlen(value));
}

static struct metric *counter(const struct series *s, const char *name, const char *key, const char *value, const char *help)
{
	AUTO(buf_fini) struct buf labels = BUF_EMPTY;

	put_labels(s, key, value, &labels);
	return metrics_counter(s->metrics, name, labels.len ? buf_text(&labels) : NULL, help);
}

static struct metric *gauge(const struct series *s, const char *name, const char *help)
{
	AUTO(buf_fini) struct buf labels = BUF_EMPTY;

	put_labels(s, NULL, NULL, &labels);
	return metrics_gauge(s->metrics, name, labels.len ? buf_text(&labels) : NULL, help);
}

static struct metric *dropped_counter(const struct series *s, const char *reason)
{
	return counter(s, "hearth_export_dropped_samples_total", "reason", reason,
		       "Samples that this process gave up to send, by reason. A collector may have the unanswered ones.");
}

static void register_counters(struct otlp_counters *c, const struct series *s)
{
	static const char *const results[] = {
		[OTLP_HTTP_OK] = "ok",		 [OTLP_HTTP_REFUSED] = "refused",	  [OTLP_HTTP_BUSY] = "busy",
		[OTLP_HTTP_TIMEOUT] = "timeout", [OTLP_HTTP_UNREACHABLE] = "unreachable",
	};

	for (size_t i = 0; i < OTLP_HTTP_ABANDONED; i++)
		c->requests[i] = counter(s, "hearth_export_requests_total", "result", results[i],
					 "Attempts to deliver an export request, by how they ended.");
	c->queue_bytes = gauge(s, "hearth_export_queue_bytes", "Requests that wait in memory, or are being sent.");
	c->retries = counter(s, "hearth_export_retries_total", NULL, NULL,
			     "Attempts that repeated an earlier one of the same request.");
	c->splits = counter(s, "hearth_export_splits_total", NULL, NULL,
			    "Requests that a collector called too large, sent again in parts.");
	c->repacked = counter(s, "hearth_export_repacked_total", NULL, NULL,
			      "Requests that a collector did not take packed by zstd, sent again packed by gzip.");
	c->bytes = counter(s, "hearth_export_bytes_total", NULL, NULL,
			   "Bytes of the acknowledged request bodies, as sent (compressed).");
	c->exported = counter(s, "hearth_exported_samples_total", NULL, NULL, "Samples in acknowledged requests.");
	for (enum otlp_signal signal = 0; signal < OTLP_OTHERS; signal++)
		c->forwarded[signal] = counter(s, "hearth_forwarded_requests_total", "signal", otlp_signal_name(signal),
					       "Acknowledged requests of logs, metrics and traces.");
	c->rejected_profiles = counter(s, "hearth_export_rejected_profiles_total", NULL, NULL,
				       "Profiles inside acknowledged requests that the collector says it did not take.");
	c->dropped_full = dropped_counter(s, "queue full");
	c->dropped_refused = dropped_counter(s, "refused");
	c->dropped_shutdown = dropped_counter(s, "shutdown");
	c->dropped_unanswered = dropped_counter(s, "unanswered");
	c->dropped_error = dropped_counter(s, "error");
}

/* DIR/NAME, with a NAME made of the collector's address: letters, digits, and a number against mix-ups. */
static int spool_path(const char *dir, const char *address, struct buf *out)
{
	uint32_t hash = 2166136261u; /* FNV-1a */
	size_t chars = 0;

	buf_printf(out, "%s/", dir);
	for (const char *c = address; *c; c++) {
		bool is_plain = strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-", *c);

		hash = (hash ^ (uint8_t)*c) * 16777619u;
		if (chars++ < MAX_FOLDER_CHARS)
			buf_putc(out, is_plain ? *c : '_');
	}
	buf_printf(out, "_%08" PRIx32, hash);
	return out->failed ? -ENOMEM : 0;
}

static int open_spool(struct sink_otlp *o, const struct otlp_sink_config *config, const struct series *series)
{
	AUTO(buf_fini) struct buf path = BUF_EMPTY;
	struct spool_config spool = {
		.max_bytes = config->spool_bytes ? config->spool_bytes : DEFAULT_SPOOL_BYTES,
		.max_age_ns = config->spool_age_ns,
		.bytes = gauge(series, "hearth_spool_bytes", "Size of the files in the spool."),
		.samples = gauge(series, "hearth_spool_samples", "Samples in the spool, not sent yet."),
		.dropped_full = dropped_counter(series, "spool full"),
		.dropped_age = dropped_counter(series, "spool age"),
		.dropped_corrupt = dropped_counter(series, "spool corrupt"),
		.corrupt_bytes = counter(series, "hearth_spool_corrupt_bytes_total", NULL, NULL,
					 "Bytes of the spool's files that made no sense and were skipped."),
	};
	int error = spool_path(config->spool_dir, otlp_http_url(o->http), &path);

	if (error)
		return error;
	spool.dir = buf_text(&path);
	o->spool_bytes = spool.max_bytes;
	o->counters.spooled = counter(series, "hearth_spooled_samples_total", NULL, NULL, "Samples written into the spool.");
	error = spool_open(&spool, &o->spool);
	if (!error && spool_samples(o->spool))
		log_info("%" PRIu64 " samples from before wait in %s and will be sent to %s", spool_samples(o->spool),
			 spool_dir(o->spool), otlp_http_url(o->http));
	return error;
}

int sink_otlp_new(const struct otlp_sink_config *config, struct metrics *metrics, struct sink **ret)
{
	struct sink_otlp *o = calloc(1, sizeof(*o));
	struct series series = { .metrics = metrics };
	int error;

	if (!o)
		return -ENOMEM;
	o->sink.ops = &otlp_ops;
	o->packing = config->packing;
	o->max_export_bytes = config->max_export_bytes ? config->max_export_bytes : DEFAULT_EXPORT_BYTES;
	o->max_queue_bytes = config->max_queue_bytes ? config->max_queue_bytes : DEFAULT_QUEUE_BYTES;
	otlp_requests_init(&o->queue);
	pthread_mutex_init(&o->lock, NULL);
	thread_cond_init(&o->wake);
	thread_cond_init(&o->idle);
	error = otlp_http_new(config, &o->http);
	if (!error) {
		series.collector = config->one_of_several ? otlp_http_url(o->http) : NULL;
		register_counters(&o->counters, &series);
	}
	if (!error && config->spool_dir)
		error = open_spool(o, config, &series);
	if (!error)
		error = thread_start(&o->thread, "sink-otlp-send", otlp_send_main, o);
	o->running = !error;
	if (error) {
		otlp_free(&o->sink);
		return error;
	}
	*ret = &o->sink;
	return 0;
}
