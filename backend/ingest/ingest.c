/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request is one job from its whole body to the end of its profiles:
 *
 *   body -> (room, unpacked) -> decoded -> sinks -> acknowledged -> done()
 *                                 `-> profiles, until the last sink lets go of them
 *
 * The job holds the request's claim on the budget all that time. Sinks tell of the two ends from any thread; both become
 * events, handed to the loop's thread under the lock. Everything else belongs to the loop's thread. A job stays until it has
 * answered and nothing can come any more, even beyond ingest_free(): what comes then finds `dead` set and only frees.
 */
#include "backend/ingest/ingest.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/ingest/lazy_counters.h"
#include "backend/ingest/unusable.h"
#include "backend/signals/signals.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "proto/otlp/otlp.h"
#include "proto/otlp/json/json_decode.h"
#include "proto/otlp/signals.h"
#include "proto/sink.h"

enum {
	DEFAULT_RECEIVE_BYTES = 32 << 20,
	DEFAULT_MEMORY_BYTES = 96 << 20,
	DECODING_DIVISOR = 4, /* of the memory: left for what a decoded request takes beside the bodies */
};

enum event { EVENT_ACKED = 1, EVENT_PROFILES_FREED = 2 };

struct ingest {
	struct loop *loop; /* borrowed, as is out */
	struct sink *out;
	struct budget budget;
	struct signals *signals; /* NULL: nothing of them is kept */
	struct unpacker *unpacker;
	struct lazy_counters *lazy;
	struct metric *received_profiles, *received_samples, *rejected_profiles;
	struct metric *received_others[OTLP_OTHERS], *unkept[OTLP_OTHERS];
	struct ingest_job *pending; /* their done() is still to come */
	size_t pending_count;
	struct loop_work work; /* handles the events */
	/* under the lock */
	pthread_mutex_t lock;
	struct ingest_job *events;
	bool posted;
	bool dead;
	size_t holds; /* of all jobs, and one of who made us */
};

struct ingest_job {
	struct ack ack; /* first */
	struct ingest *in;
	struct ingest_request *request; /* NULL: answered, or nobody asks any more */
	enum ingest_signal signal;
	enum ingest_encoding encoding;
	enum ingest_format format;
	bool version_said;
	struct claim claim;
	uint8_t *data; /* owned */
	size_t len;
	size_t room;	  /* to unpack into */
	int64_t rejected; /* profiles, for the reason in @why */
	char why[160];
	struct ingest_job *next, **link; /* among the pending */
	/* under the lock */
	struct ingest_job *next_event;
	unsigned events; /* enum event */
	int error;	 /* of EVENT_ACKED */
	unsigned holds;	 /* references to it: of @request, the ack, the profiles */
};

static struct ingest_job *job_of_claim(struct claim *claim)
{
	return (struct ingest_job *)((char *)claim - offsetof(struct ingest_job, claim));
}

/* --- the ends of a job --- */

static void ingest_put(struct ingest *in)
{
	pthread_mutex_lock(&in->lock);
	bool last = --in->holds == 0;
	pthread_mutex_unlock(&in->lock);
	if (!last)
		return;
	pthread_mutex_destroy(&in->lock);
	free(in);
}

static void job_hold(struct ingest_job *job)
{
	pthread_mutex_lock(&job->in->lock);
	job->holds++;
	pthread_mutex_unlock(&job->in->lock);
}

static void job_put(struct ingest_job *job)
{
	struct ingest *in = job->in;

	pthread_mutex_lock(&in->lock);
	bool last = --job->holds == 0;
	bool dead = in->dead;
	pthread_mutex_unlock(&in->lock);
	if (!last)
		return;
	if (!dead)
		claim_fini(&job->claim);
	free(job->data);
	free(job);
	ingest_put(in);
}

/* Takes the request off @job: no done() comes any more. The request's hold is the caller's to put. */
static struct ingest_request *take_request(struct ingest_job *job)
{
	struct ingest_request *request = job->request;

	if (!request)
		return NULL;
	*job->link = job->next;
	if (job->next)
		job->next->link = job->link;
	job->in->pending_count--;
	job->request = NULL;
	request->job = NULL;
	return request;
}

/* Answers, and puts the hold of the answer; @job may be gone afterwards. */
__attribute__((format(printf, 4, 5))) static void finish(struct ingest_job *job, enum ingest_outcome outcome,
							 int64_t rejected, const char *fmt, ...)
{
	struct ingest_request *request = take_request(job);
	struct ingest_answer answer = { .outcome = outcome, .rejected = rejected };
	va_list args;

	va_start(args, fmt);
	vsnprintf(answer.message, sizeof(answer.message), fmt, args);
	va_end(args);
	job_put(job);
	if (request)
		request->done(request, &answer);
}

static void finish_sink(struct ingest_job *job, int error)
{
	if (error == 0)
		finish(job, job->rejected ? INGEST_PARTIAL : INGEST_OK, job->rejected, "%s", job->why);
	else if (error == -EAGAIN)
		finish(job, INGEST_BUSY, 0, "queues are full: try again");
	else if (error == -ENOSPC || error == -EDQUOT || error == -EROFS || error == -EIO)
		finish(job, INGEST_NO_ROOM, 0, "what came could not be kept: %s: try again", strerror(-error));
	else
		finish(job, INGEST_FAILED, 0, "what came could not be passed on: %s", strerror(-error));
}

static void finish_no_memory(struct ingest_job *job, const char *what)
{
	finish(job, INGEST_NO_MEMORY, 0, "no memory to %s the body now: try again", what);
}

/* --- events --- */

static void tell(struct ingest_job *job, enum event event, int error)
{
	struct ingest *in = job->in;

	pthread_mutex_lock(&in->lock);
	bool dead = in->dead;
	if (!dead) {
		if (!job->events) {
			job->next_event = in->events;
			in->events = job;
		}
		job->events |= event;
		if (event == EVENT_ACKED)
			job->error = error;
		if (!in->posted)
			loop_post(in->loop, &in->work);
		in->posted = true;
	}
	pthread_mutex_unlock(&in->lock);
	if (dead)
		job_put(job);
}

static void on_acked(struct ack *ack, int error)
{
	tell((struct ingest_job *)ack, EVENT_ACKED, error);
}

static void on_profiles_freed(void *arg)
{
	tell(arg, EVENT_PROFILES_FREED, 0);
}

static void on_work(struct loop_work *work)
{
	struct ingest *in = (struct ingest *)((char *)work - offsetof(struct ingest, work));

	pthread_mutex_lock(&in->lock);
	struct ingest_job *job = in->events, *next;
	in->events = NULL;
	in->posted = false;
	pthread_mutex_unlock(&in->lock);

	for (; job; job = next) {
		pthread_mutex_lock(&in->lock);
		unsigned events = job->events;
		int error = job->error;
		job->events = 0;
		next = job->next_event;
		pthread_mutex_unlock(&in->lock);
		if ((events & EVENT_ACKED) && job->request)
			finish_sink(job, error);
		if (events & EVENT_PROFILES_FREED)
			claim_set(&job->claim, 0);
		if (events & EVENT_ACKED)
			job_put(job);
		if (events & EVENT_PROFILES_FREED)
			job_put(job);
	}
}

/* --- the way to the answer --- */

static uint64_t count_profiles(const struct profiles *p)
{
	uint64_t count = 0;

	for (uint32_t i = 0; i < p->resource_count; i++)
		for (uint32_t j = 0; j < p->resources[i].scope_count; j++)
			count += p->resources[i].scopes[j].profile_count;
	return count;
}

static void count(struct ingest *in, const struct profiles *p)
{
	metric_add(in->received_profiles, count_profiles(p));
	metric_add(in->received_samples, p->sample_events);
	lazy_counters_add(in->lazy, p);
}

static void pass_on(struct ingest_job *job, struct profiles *p)
{
	struct ingest *in = job->in;
	bool acks = in->out->ops->durable;

	if (acks)
		job_hold(job);
	int error = sink_consume(in->out, p, acks ? &job->ack : NULL);
	if (!error)
		count(in, p);
	profiles_put(p);
	if (error && acks)
		job_put(job);
	if (error || !acks)
		finish_sink(job, error);
}

/* @items of @signal. Items that no sink has a use for are accepted, as senders of all signals to one address expect, and
 * counted. */
static void pass_bytes(struct ingest_job *job, enum otlp_signal signal, const uint8_t *data, size_t len, uint64_t items)
{
	struct ingest *in = job->in;
	bool acks = in->out->ops->durable;

	if (acks)
		job_hold(job);
	int error = sink_consume_other(in->out, signal, data, len, acks ? &job->ack : NULL);
	if (!error || error == -EOPNOTSUPP) {
		const bool is_kept = in->signals && signal != OTLP_METRICS; /* of metrics only exemplars are */

		metric_add(error && !is_kept ? in->unkept[signal] : in->received_others[signal], items);
		if (in->signals)
			signals_keep(in->signals, signal, data, len);
	}
	if (error && acks)
		job_put(job);
	if (error || !acks)
		finish_sink(job, error == -EOPNOTSUPP ? 0 : error);
}

/* Logs, metrics, traces: decoded to see that they are what they say, passed on as protobuf. */
static void pass_other(struct ingest_job *job)
{
	static const enum otlp_signal signals[] = {
		[INGEST_LOGS] = OTLP_LOGS, [INGEST_METRICS] = OTLP_METRICS, [INGEST_TRACES] = OTLP_TRACES
	};
	const uint8_t *data = job->data ? job->data : (const uint8_t *)"";
	bool is_json = job->format == FORMAT_JSON;
	AUTO(buf_fini) struct buf protobuf = BUF_EMPTY;
	struct otlp_error err = { "" };
	struct otlp_other other;
	uint64_t items = 0;
	int error = otlp_other_decode(signals[job->signal], is_json, data, job->len, &other, &err);

	if (error == -EBADMSG) {
		finish(job, INGEST_MALFORMED, 0, "%s", err.message);
		return;
	}
	if (!error) {
		error = is_json ? otlp_other_encode(&other, &protobuf) : 0;
		items = other.items;
		otlp_other_fini(&other);
	}
	if (error)
		finish_no_memory(job, "decode");
	else if (is_json)
		pass_bytes(job, signals[job->signal], protobuf.data ? protobuf.data : (const uint8_t *)"", protobuf.len,
			   items);
	else
		pass_bytes(job, signals[job->signal], data, job->len, items);
}

static int decode_profiles(struct ingest_job *job, struct profiles **ret, struct otlp_error *err)
{
	const struct otlp_decode_options options = { .no_guess = job->version_said };

	if (job->format == FORMAT_JSON)
		return otlp_json_decode_with(job->data ? job->data : (const uint8_t *)"", job->len, &options, ret, err);
	if (!job->data)
		job->data = malloc(1); /* no body: an empty message */
	int error = job->data ? otlp_decode_with(job->data, job->len, true, &options, ret, err) : -ENOMEM;
	if (!error)
		job->data = NULL; /* the profiles' */
	return error;
}

static void decode(struct ingest_job *job)
{
	struct profiles *p = NULL;
	struct otlp_error err = { "" };

	if (job->signal != INGEST_PROFILES) {
		pass_other(job);
		return;
	}
	int error = decode_profiles(job, &p, &err);
	if (error == -EBADMSG) {
		finish(job, INGEST_MALFORMED, 0, "%s", err.message);
	} else if (error) {
		finish_no_memory(job, "decode");
	} else {
		free(MOVE(job->data));
		job->rejected = drop_unusable(p, job->why, sizeof(job->why));
		metric_add(job->in->rejected_profiles, (uint64_t)job->rejected);
		claim_set(&job->claim, profiles_memory_bytes(p));
		job_hold(job);
		profiles_on_free(p, on_profiles_freed, job);
		pass_on(job, p);
	}
}

static void on_settled(struct claim *claim)
{
	decode(job_of_claim(claim));
}

/* The memory that a decoded body takes is known only after decoding: one at a time may overdraw the budget. */
static void decode_when_settled(struct ingest_job *job)
{
	claim_close(&job->claim);
	job->claim.granted = on_settled;
	if (claim_more(&job->claim, 0))
		decode(job);
}

static void unpack_when_granted(struct ingest_job *job, size_t room);

static void take_unpacked(struct ingest_job *job, uint8_t *data, size_t len)
{
	free(job->data);
	job->data = data;
	job->len = len;
	/* The profiles keep the block for long, so unused room is given back. */
	if (job->room - len > len / 4) {
		uint8_t *exact = realloc(data, len ? len : 1);
		job->data = exact ? exact : data;
		job->room = exact ? len : job->room;
	}
	claim_set(&job->claim, job->room);
	decode_when_settled(job);
}

static void unpack_job(struct ingest_job *job)
{
	struct ingest *in = job->in;
	uint8_t *data = malloc(job->room ? job->room : 1);
	size_t len = 0;
	int error = -ENOMEM;

	if (data)
		error = unpack(in->unpacker, job->encoding, job->data, job->len, data, job->room, &len);
	if (!error) {
		take_unpacked(job, data, len);
		return;
	}
	free(data);
	if (error == -ENOSPC && job->room < in->budget.largest_bytes) {
		claim_set(&job->claim, job->claim.bytes - job->room);
		unpack_when_granted(job, in->budget.largest_bytes);
	} else if (error == -ENOSPC) {
		finish(job, INGEST_TOO_LARGE, 0,
		       "request body is larger than %zu bytes when unpacked: send smaller batches, or raise the limit",
		       in->budget.largest_bytes);
	} else if (error == -EBADMSG) {
		finish(job, INGEST_MALFORMED, 0, "body is not %s: cut, corrupt, or followed by something else",
		       job->encoding == ENCODING_ZSTD ? "whole zstd frames" : "whole gzip members");
	} else {
		finish_no_memory(job, "unpack");
	}
}

static void on_room(struct claim *claim)
{
	unpack_job(job_of_claim(claim));
}

static void unpack_when_granted(struct ingest_job *job, size_t room)
{
	job->room = room;
	job->claim.granted = on_room;
	if (room == 0 || claim_more(&job->claim, room))
		unpack_job(job);
}

static void unpack_first(struct ingest_job *job)
{
	size_t room = 0, max_bytes = job->in->budget.largest_bytes;

	switch (unpack_room(job->encoding, job->data, job->len, max_bytes, &room)) {
	case 0:
		unpack_when_granted(job, room);
		return;
	case -EFBIG:
		finish(job, INGEST_TOO_LARGE, 0,
		       "request body is larger than %zu bytes when unpacked: send smaller batches, or raise the limit",
		       max_bytes);
		return;
	default:
		finish(job, INGEST_MALFORMED, 0, "body is not %s: cut, corrupt, or followed by something else",
		       job->encoding == ENCODING_ZSTD ? "whole zstd frames" : "whole gzip members");
	}
}

/* --- public --- */

void ingest_take(struct ingest *in, struct ingest_request *request)
{
	struct ingest_job *job = calloc(1, sizeof(*job));

	if (!job) {
		const struct ingest_answer answer = { .outcome = INGEST_NO_MEMORY, .message = "no memory now: try again" };
		body_fini(&request->body);
		request->done(request, &answer);
		return;
	}
	job->ack.done = on_acked;
	job->in = in;
	job->holds = 1;
	job->request = request;
	job->signal = request->signal;
	job->encoding = request->encoding;
	job->format = request->format;
	job->version_said = request->version_said;
	claim_move(&job->claim, &request->body.claim);
	job->data = MOVE(request->body.data);
	job->len = request->body.len;
	body_fini(&request->body);
	request->job = job;

	job->next = in->pending;
	job->link = &in->pending;
	if (job->next)
		job->next->link = &job->next;
	in->pending = job;
	in->pending_count++;
	pthread_mutex_lock(&in->lock);
	in->holds++;
	pthread_mutex_unlock(&in->lock);

	if (job->encoding == ENCODING_IDENTITY)
		decode_when_settled(job);
	else
		unpack_first(job);
}

void ingest_cancel(struct ingest_request *request)
{
	struct ingest_job *job = request->job;

	if (!job)
		return;
	take_request(job);
	job_put(job);
}

size_t ingest_pending(const struct ingest *in)
{
	return in->pending_count;
}

struct budget *ingest_budget(struct ingest *in)
{
	return &in->budget;
}

size_t ingest_max_bytes(const struct ingest *in)
{
	return in->budget.largest_bytes;
}

static void register_other(struct ingest *in, struct metrics *metrics, enum otlp_signal signal)
{
	AUTO(buf_fini) struct buf labels = BUF_EMPTY;

	metrics_label(&labels, "signal", otlp_signal_name(signal), strlen(otlp_signal_name(signal)));
	in->received_others[signal] = metrics_counter(metrics, "hearth_received_items_total", buf_text(&labels),
						      "Log records, data points and spans taken.");
	in->unkept[signal] = metrics_counter(
		metrics, "hearth_unkept_items_total", buf_text(&labels),
		"Log records, data points and spans that were acknowledged and forgotten: no sink keeps such.");
}

int ingest_new(const struct ingest_config *config, struct loop *loop, struct metrics *metrics, struct sink *out,
	       struct ingest **ret)
{
	struct ingest *in = calloc(1, sizeof(*in));

	if (!in)
		return -ENOMEM;
	in->loop = loop;
	in->out = out;
	in->signals = config->signals;
	in->holds = 1;
	in->work.fn = on_work;
	pthread_mutex_init(&in->lock, NULL);
	size_t memory = config->receive_memory ? config->receive_memory : DEFAULT_MEMORY_BYTES;
	budget_init(&in->budget, loop, memory - memory / DECODING_DIVISOR,
		    config->max_receive_bytes ? config->max_receive_bytes : DEFAULT_RECEIVE_BYTES);
	in->unpacker = unpacker_new();
	in->lazy = lazy_counters_new(metrics);
	if (!in->unpacker || !in->lazy) {
		ingest_free(in);
		return -ENOMEM;
	}
	in->received_profiles = metrics_counter(metrics, "hearth_received_profiles_total", NULL, "Profiles taken.");
	in->received_samples = metrics_counter(metrics, "hearth_received_samples_total", NULL, "Sample events taken.");
	for (enum otlp_signal signal = 0; signal < OTLP_OTHERS; signal++)
		register_other(in, metrics, signal);
	in->rejected_profiles = metrics_counter(metrics, "hearth_rejected_profiles_total", NULL,
						"Profiles of good requests that nobody can use.");
	in->budget.used_metric = metrics_gauge(metrics, "hearth_receive_memory_bytes", NULL,
					       "Memory held by requests: bodies, unpacked ones, decoded ones.");
	in->budget.waits_metric = metrics_counter(metrics, "hearth_receive_memory_waits_total", NULL,
						  "Times that a request had to wait for memory.");
	*ret = in;
	return 0;
}

void ingest_free(struct ingest *in)
{
	if (!in)
		return;
	while (in->posted || in->budget.posted)
		loop_step(in->loop, 0);
	pthread_mutex_lock(&in->lock);
	in->dead = true;
	pthread_mutex_unlock(&in->lock);
	while (in->pending)
		finish(in->pending, INGEST_BUSY, 0, "the server stops");
	unpacker_free(in->unpacker);
	lazy_counters_free(in->lazy);
	ingest_put(in);
}
