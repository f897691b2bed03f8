/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exporter's sending thread. It holds at most one request: taken off the queue, or read from the spool, by turns while
 * both have some. One attempt settles it, or it waits for the next: in the hand, or, with a spool, there. While the
 * collector is away the spool also takes the queued requests, group by group, each synced once before its acks are
 * completed; the collector is tried with the oldest record.
 *
 * A request counts in queued_bytes from consume() until it is settled or spooled.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "sinks/otlp/exporter.h"
#include "sinks/otlp/spool.h"
#include "base/thread.h"

enum {
	BACKOFF_FIRST_MS = 500,
	BACKOFF_MAX_MS = 30000,
	LEAST_SPLIT_BYTES = 32 << 10, /* a smaller request is not refused for its size */
	SPOOL_REST_S = 10,	      /* after an error */
};

/* --- what is said --- */

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
	uint64_t bytes = o->spool ? o->spool_bytes : o->max_queue_bytes;

	if (o->away)
		return;
	o->away = true;
	log_warn("cannot reach %s: %s%s%s; keeping up to %" PRIu64 " MiB%s%s and retrying", otlp_http_url(o->http),
		 a->status, a->status[0] && a->message[0] ? ": " : "", a->message, bytes >> 20, o->spool ? " in " : "",
		 o->spool ? spool_dir(o->spool) : "");
}

static void note_back(struct sink_otlp *o)
{
	if (o->away)
		log_info("%s answers again", otlp_http_url(o->http));
	o->away = false;
	o->failures = 0;
	o->pause_ns = 0;
}

static void account_ok(struct sink_otlp *o, const struct otlp_request *r, size_t sent, const struct otlp_http_answer *a)
{
	metric_add(o->counters.exported, r->samples);
	if (r->signal != OTLP_PROFILES)
		metric_add(o->counters.forwarded[r->signal], 1);
	metric_add(o->counters.bytes, sent);
	if (a->rejected > 0)
		metric_add(o->counters.rejected_profiles, (uint64_t)a->rejected);
	if (a->rejected > 0 || a->message[0])
		log_limited(&o->partial_limit, OTLP_LOG_INTERVAL_S * NSEC_PER_SEC, LOG_WARN,
			    "%s did not take %" PRId64 " of the profiles of a request: %s", otlp_http_url(o->http),
			    a->rejected, a->message);
}

static void account_refused(struct sink_otlp *o, const struct otlp_request *r, const struct otlp_http_answer *a)
{
	metric_add(o->counters.dropped_refused, r->samples);
	if (r->signal != OTLP_PROFILES)
		log_limited(&o->refused_limit, OTLP_LOG_INTERVAL_S * NSEC_PER_SEC, LOG_ERROR,
			    "%s refused a request of %s with %s%s%s", otlp_http_url(o->http), otlp_signal_name(r->signal),
			    a->status, a->message[0] ? ": " : "", a->message);
	else
		log_limited(&o->refused_limit, OTLP_LOG_INTERVAL_S * NSEC_PER_SEC, LOG_ERROR,
			    "%s refused %" PRIu64 " samples with %s%s%s%s", otlp_http_url(o->http), r->samples, a->status,
			    a->message[0] ? ": " : "", a->message, advice(a->cause));
}

/* --- the spool --- */

/* Whether requests may go there now. */
static bool spool_is_usable(const struct sink_otlp *o)
{
	return o->spool && clock_mono_ns() >= o->spool_mended_ns;
}

static void note_spool_error(struct sink_otlp *o, int error)
{
	o->spool_mended_ns = clock_mono_ns() + SPOOL_REST_S * NSEC_PER_SEC;
	log_limited(&o->spool_limit, OTLP_LOG_INTERVAL_S * NSEC_PER_SEC, LOG_ERROR,
		    "cannot keep requests in %s: %s; they stay in memory", spool_dir(o->spool), strerror(-error));
}

/* The number of a packing in the spool. Before there was zstd, bit 0 said gzip. */
static const uint8_t kept_as[] = { [OTLP_GZIP] = 1, [OTLP_ZSTD] = 2, [OTLP_UNPACKED] = 0 };

static enum otlp_packing packing_of(uint8_t number)
{
	return number == kept_as[OTLP_ZSTD] ? OTLP_ZSTD : number == kept_as[OTLP_GZIP] ? OTLP_GZIP : OTLP_UNPACKED;
}

static int spool_request(struct sink_otlp *o, const struct otlp_request *r)
{
	struct spool_record record = {
		.data = r->frame.data + OTLP_REQUEST_ROOM_BYTES,
		.len = otlp_request_len(r),
		.message_bytes = r->message_bytes,
		.packing = kept_as[r->packing],
		.kind = r->signal == OTLP_PROFILES ? 0 : (uint8_t)(1 + r->signal),
		.samples = r->samples,
	};

	return spool_append(o->spool, &record);
}

/* Moves requests from @list into the spool and settles them once they are on the disk; those it could not take stay. Not
 * under the lock. */
static void spool_list(struct sink_otlp *o, struct otlp_requests *list)
{
	struct otlp_requests written;
	struct otlp_request *r;
	int error = 0;

	otlp_requests_init(&written);
	while (!error && list->first) {
		error = spool_request(o, list->first);
		if (error == -EFBIG) { /* it fits nowhere, ever */
			r = otlp_requests_pop(list);
			metric_add(o->counters.dropped_full, r->samples);
			otlp_request_settle(r, -ENOBUFS);
			error = 0;
		} else if (!error) {
			otlp_requests_append(&written, otlp_requests_pop(list));
		}
	}
	if (!error)
		error = spool_sync(o->spool);
	if (error)
		note_spool_error(o, error);
	while ((r = otlp_requests_pop(&written))) {
		metric_add(o->counters.spooled, r->samples);
		otlp_request_settle(r, 0); /* not synced is still written: only a crash of the machine would lose it */
	}
}

static size_t bytes_of(const struct otlp_requests *list)
{
	size_t bytes = 0;

	for (const struct otlp_request *r = list->first; r; r = r->next)
		bytes += otlp_request_len(r);
	return bytes;
}

/* Takes what is held and queued off. The lock is held. */
static void take_all(struct sink_otlp *o, struct otlp_requests *ret)
{
	struct otlp_request *r;

	otlp_requests_init(ret);
	if (o->held)
		otlp_requests_append(ret, o->held);
	o->held = NULL;
	while ((r = otlp_requests_pop(&o->queue)))
		otlp_requests_append(ret, r);
}

/* Moves all queued requests into the spool. Called with the lock, which is released in between. */
static void spool_queue(struct sink_otlp *o)
{
	struct otlp_requests rest;
	size_t bytes;

	take_all(o, &rest);
	bytes = bytes_of(&rest);
	o->busy = rest.first;
	pthread_mutex_unlock(&o->lock);
	spool_list(o, &rest);
	pthread_mutex_lock(&o->lock);
	otlp_count_queued(o, -(ptrdiff_t)(bytes - bytes_of(&rest)));
	otlp_requests_prepend(&o->queue, &rest);
	o->busy = false;
	pthread_cond_broadcast(&o->idle);
}

/* Gives up all there is: into the spool what it takes, the rest is dropped. The lock is held, and let go on the way. */
static void give_up(struct sink_otlp *o)
{
	struct otlp_requests rest;
	struct otlp_request *r;
	uint64_t samples = 0;

	take_all(o, &rest);
	otlp_count_queued(o, -(ptrdiff_t)bytes_of(&rest));
	pthread_mutex_unlock(&o->lock);
	if (o->spool)
		spool_list(o, &rest);
	while ((r = otlp_requests_pop(&rest))) {
		samples += r->samples;
		metric_add(r->is_unanswered ? o->counters.dropped_unanswered : o->counters.dropped_shutdown, r->samples);
		otlp_request_settle(r, -ETIMEDOUT);
	}
	pthread_mutex_lock(&o->lock);
	o->gave_up |= samples > 0;
	o->busy = false;
	o->abandon = false;
	pthread_cond_broadcast(&o->idle);
}

/* The oldest of the spool as a request; NULL when there is none that can be read. */
static struct otlp_request *load_spooled(struct sink_otlp *o)
{
	struct otlp_request *r = NULL;
	struct spool_record record;
	int error = spool_peek(o->spool, &record);

	if (error == 1)
		error = otlp_request_of(record.data, record.len, record.samples, packing_of(record.packing), &r);
	if (error < 0)
		note_spool_error(o, error);
	if (r) {
		r->message_bytes = record.message_bytes;
		r->signal = record.kind && record.kind <= OTLP_OTHERS ? (enum otlp_signal)(record.kind - 1) : OTLP_PROFILES;
	}
	return r;
}

/* --- one attempt --- */

/* The time to wait after the @failures-th failure in a row: doubled each time, and half of it left to chance, so that many
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

/* While a flush waits, no pause is longer than the first step (what the collector asked for is kept to). */
static void begin_pause(struct sink_otlp *o, uint64_t retry_after_ns)
{
	o->failures++;
	o->pause_start_ns = clock_mono_ns();
	o->pause_ns = retry_after_ns ? retry_after_ns : backoff_ns(o->failures);
	o->hurried_ns = retry_after_ns ? retry_after_ns : BACKOFF_FIRST_MS * NSEC_PER_MSEC;
}

enum verdict {
	SETTLED,   /* what it is settled with is in the error */
	TRY_LATER, /* keep it */
};

/* Two or more of at most @max_bytes go on in the place of @r. False when it cannot be split. */
static bool send_in_parts(struct sink_otlp *o, const struct otlp_request *r, size_t max_bytes)
{
	struct otlp_requests parts;

	otlp_requests_init(&parts);
	if (otlp_request_split(r, max_bytes, &parts))
		return false;
	pthread_mutex_lock(&o->lock);
	otlp_count_queued(o, (ptrdiff_t)bytes_of(&parts));
	otlp_requests_prepend(&o->queue, &parts);
	pthread_mutex_unlock(&o->lock);
	return true;
}

/* The collector called @r too large: half of that is the bound from now on. */
static bool learn_size(struct sink_otlp *o, const struct otlp_request *r)
{
	size_t half = r->message_bytes / 2;

	if (r->message_bytes < LEAST_SPLIT_BYTES || !send_in_parts(o, r, half))
		return false;
	metric_add(o->counters.splits, 1);
	if (half < o->max_export_bytes)
		o->max_export_bytes = half;
	log_info("%s finds requests of %zu KiB too large; sending at most %zu KiB from now on", otlp_http_url(o->http),
		 r->message_bytes >> 10, o->max_export_bytes >> 10);
	return true;
}

/* The collector does not take zstd: all goes packed by gzip from now on, also what waits. */
static void learn_packing(struct sink_otlp *o, const struct otlp_http_answer *a)
{
	o->packing = OTLP_GZIP;
	metric_add(o->counters.repacked, 1);
	log_warn("%s does not take requests packed by zstd (%s%s%s); sending them packed by gzip from now on",
		 otlp_http_url(o->http), a->status, a->message[0] ? ": " : "", a->message);
}

static enum verdict attempt(struct sink_otlp *o, struct otlp_request *r, int *error_ret)
{
	AUTO(buf_fini) struct buf scratch = BUF_EMPTY;
	const enum otlp_packing packing = o->packing;
	struct otlp_http_answer answer;
	uint8_t *body;
	size_t len, sent;

	*error_ret = 0;
	if (r->message_bytes > o->max_export_bytes && send_in_parts(o, r, o->max_export_bytes))
		return SETTLED; /* made before a smaller bound was known */
	*error_ret = otlp_request_body(r, otlp_http_protocol(o->http), packing, &scratch, &body, &len);
	if (*error_ret) {
		metric_add(o->counters.dropped_error, r->samples);
		return SETTLED;
	}
	if (o->failures)
		metric_add(o->counters.retries, 1);
	otlp_http_post(o->http, r->signal, packing, body, len, &o->abandon, &answer, &sent);
	r->is_unanswered |= answer.outcome == OTLP_HTTP_ABANDONED || answer.outcome == OTLP_HTTP_TIMEOUT;
	if (answer.outcome == OTLP_HTTP_ABANDONED)
		return TRY_LATER;
	metric_add(o->counters.requests[answer.outcome], 1);
	switch (answer.outcome) {
	case OTLP_HTTP_OK:
		note_back(o);
		account_ok(o, r, sent, &answer);
		return SETTLED;
	case OTLP_HTTP_REFUSED:
		note_back(o);
		if (answer.cause == OTLP_CAUSE_PACKING) {
			learn_packing(o, &answer);
			return attempt(o, r, error_ret); /* which gzip does not come back to */
		}
		if (answer.cause == OTLP_CAUSE_SIZE && learn_size(o, r))
			return SETTLED;
		account_refused(o, r, &answer);
		*error_ret = -EREMOTEIO;
		return SETTLED;
	default:
		note_away(o, &answer);
		begin_pause(o, answer.retry_after_ns);
		return TRY_LATER;
	}
}

/* --- the loop --- */

static void send_fresh(struct sink_otlp *o, struct otlp_request *r)
{
	size_t len = otlp_request_len(r);
	int error;

	if (attempt(o, r, &error) == TRY_LATER) {
		pthread_mutex_lock(&o->lock);
		o->held = r;
		pthread_mutex_unlock(&o->lock);
		return;
	}
	pthread_mutex_lock(&o->lock);
	otlp_count_queued(o, -(ptrdiff_t)len);
	pthread_mutex_unlock(&o->lock);
	otlp_request_settle(r, error);
}

static void send_spooled(struct sink_otlp *o)
{
	struct otlp_request *r = load_spooled(o);
	int error;

	if (!r)
		return;
	if (attempt(o, r, &error) == SETTLED)
		spool_remove(o->spool);
	otlp_request_settle(r, 0);
}

/* Takes one request and tries it. The lock is held, and let go on the way. False when there is none. */
static bool send_next(struct sink_otlp *o)
{
	bool has_spooled = spool_is_usable(o) && !spool_is_empty(o->spool);
	bool has_fresh = o->held || o->queue.first;
	struct otlp_request *r = NULL;

	if (!has_spooled && !has_fresh)
		return false;
	o->is_spools_turn = !o->is_spools_turn;
	if (has_fresh && !(has_spooled && o->is_spools_turn)) {
		r = o->held ? o->held : otlp_requests_pop(&o->queue);
		o->held = NULL;
	}
	o->busy = r;
	pthread_mutex_unlock(&o->lock);
	if (r)
		send_fresh(o, r);
	else
		send_spooled(o);
	pthread_mutex_lock(&o->lock);
	o->busy = o->held;
	pthread_cond_broadcast(&o->idle);
	return true;
}

/* Waits while a pause lasts; false when it is over. The lock is held, and let go on the way. */
static bool pause_a_while(struct sink_otlp *o)
{
	uint64_t pause = o->flushing && o->hurried_ns < o->pause_ns ? o->hurried_ns : o->pause_ns;
	uint64_t until = o->pause_start_ns + pause;

	if (!o->pause_ns || clock_mono_ns() >= until)
		return false;
	thread_cond_wait(&o->wake, &o->lock, until);
	return true;
}

void *otlp_send_main(void *arg)
{
	struct sink_otlp *o = arg;

	pthread_mutex_lock(&o->lock);
	for (;;) {
		if (o->abandon) {
			give_up(o);
			continue;
		}
		if (o->stop)
			break;
		if (o->away && (o->held || o->queue.first) && spool_is_usable(o)) {
			spool_queue(o);
			continue;
		}
		if (pause_a_while(o) || send_next(o))
			continue;
		pthread_cond_broadcast(&o->idle);
		pthread_cond_wait(&o->wake, &o->lock);
	}
	pthread_mutex_unlock(&o->lock);
	return NULL;
}
