/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs wait in one list under a lock, in the order they came; a thread takes the first that is due. The second thread only
 * does so while the first is at work, with a reader of the store and an API of its own, which are made when first needed and
 * given back when nobody has asked for a while. Whoever waits with the same question as the one that is begun gets its
 * answer too: many that look at the same page cost as much as one. The answer goes back as work posted to the loop. At the
 * end the loop runs no further work of ours, so jobs still on their way are their askers'.
 */
#include "backend/api/query_thread.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/clock.h"
#include "base/pack/gzip.h"
#include "base/thread.h"

enum {
	PACK_BYTES = 1400, /* about what one packet holds */
	GZIP_LEVEL = 3,
	SHARED_BYTES = 256 << 10, /* of an answer that is copied for others; larger ones are made anew, one after another */
};

#define TRIM_NS	 (2 * NSEC_PER_SEC)
#define REST_NS	 (30 * NSEC_PER_SEC)
#define SHORT_NS (1 * NSEC_PER_SEC)   /* the most that a question may take on the second thread */
#define PAUSE_NS (120 * NSEC_PER_SEC) /* a long question ends the API's own work, which begins anew, not more often */

struct lane {
	struct query_thread *t;
	struct api *api; /* NULL: the second one's is not made yet */
	bool is_second;
	pthread_t thread;
	/* The times when memory that answers took is given back, and when memory kept between answers is; not while answers
	 * follow each other. */
	uint64_t trim_ns, rest_ns;
};

struct query_thread {
	struct lane first_lane, second_lane;
	struct loop *loop;
	unsigned max_waiting;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct loop_work tell;		/* first called when jobs are answered; never posted twice */
	struct query_job *first, **end; /* under the lock, as are the following */
	struct query_job *answered, **answered_end;
	unsigned waiting;
	bool has_second;
	bool is_busy;	    /* the first thread is ... */
	bool is_working;    /* ... with the API's own work */
	uint64_t paused_ns; /* when a question ended that last; 0: none did */
	bool is_ended;
};

static void tell_answered(struct loop_work *work)
{
	struct query_thread *t = (struct query_thread *)((char *)work - offsetof(struct query_thread, tell));
	struct query_job *job, *next;

	pthread_mutex_lock(&t->lock);
	job = t->answered;
	t->answered = NULL;
	t->answered_end = &t->answered;
	pthread_mutex_unlock(&t->lock);
	for (; job; job = next) {
		next = job->next;
		job->done(job);
	}
}

/* Under the lock. */
static void put_answered(struct query_thread *t, struct query_job *job)
{
	bool was_empty = !t->answered;

	job->next = NULL;
	*t->answered_end = job;
	t->answered_end = &job->next;
	if (was_empty)
		loop_post(t->loop, &t->tell);
}

/* The second thread's API, as new as the store. 0 or -errno. */
static int second_api(struct lane *lane)
{
	const struct api *first = lane->t->first_lane.api;

	if (lane->api && !api_is_stale(lane->api, first))
		return 0;
	api_free(lane->api);
	lane->api = NULL;
	return api_second(first, &lane->api);
}

/* Answers a question. False: it takes too long for this thread. */
static bool answer(struct lane *lane, struct query_job *job)
{
	struct buf *body = &job->answer.body;
	struct buf packed = BUF_EMPTY;
	const struct api_budget budget = {
		.is_unwanted = &job->is_unwanted,
		.timeout_ns = lane->is_second ? SHORT_NS : 0,
		.is_trial = lane->is_second,
		.hides_addresses = job->hides_addresses,
	};

	if (lane->is_second && second_api(lane))
		return false;
	if (job->symbols_fd >= 0)
		api_take_symbols(lane->api, job->symbols_fd, job->symbols_encoding, &job->answer);
	else if (job->clears)
		api_clear(lane->api, &job->answer);
	else if (api_answer(lane->api, job->path, &job->params, &budget, &job->answer) == -ETIMEDOUT && budget.is_trial)
		return false;
	if (job->answer.is_on_disk)
		return true;
	job->hash = XXH3_64bits(body->data ? body->data : (const uint8_t *)"", body->len);
	if (!job->pack || body->len < PACK_BYTES || gzip_pack(body->data, body->len, GZIP_LEVEL, &packed)) {
		buf_fini(&packed);
		return true;
	}
	buf_fini(body);
	*body = packed;
	job->is_packed = true;
	return true;
}

/* Under the lock. */
static void put_waiting(struct query_thread *t, struct query_job *job)
{
	job->next = NULL;
	*t->end = job;
	t->end = &job->next;
	t->waiting++;
	if (t->is_working && job->is_long && (!t->paused_ns || clock_mono_ns() - t->paused_ns > PAUSE_NS)) {
		t->paused_ns = clock_mono_ns();
		api_abandon(t->first_lane.api);
	}
	pthread_cond_broadcast(&t->changed);
}

/* Takes the first job that is due out of the list; NULL when there is none, *@next_ns is then when one will be. */
static struct query_job *take_due(const struct lane *lane, uint64_t *next_ns)
{
	struct query_thread *t = lane->t;
	uint64_t now_ns = clock_mono_ns();

	*next_ns = UINT64_MAX;
	if (lane->is_second && !t->is_busy)
		return NULL;
	for (struct query_job **link = &t->first; *link; link = &(*link)->next) {
		struct query_job *job = *link;

		if (lane->is_second && job->is_long)
			continue;
		if (job->not_before_ns <= now_ns) {
			*link = job->next;
			if (!*link)
				t->end = link;
			t->waiting--;
			return job;
		}
		if (job->not_before_ns < *next_ns)
			*next_ns = job->not_before_ns;
	}
	return NULL;
}

/* Gives memory back when nobody has asked for a while. */
static void rest(struct lane *lane)
{
	if (lane->is_second) {
		api_free(lane->api);
		lane->api = NULL;
	} else {
		api_rest(lane->api);
	}
}

/* Used when nothing is asked until @next_ns: does the API's own work, and gives memory back. The caller holds the lock,
 * which is given up meanwhile. */
static void work_or_wait(struct lane *lane, uint64_t next_ns)
{
	struct query_thread *t = lane->t;
	const uint64_t work_ns = lane->api ? api_work_ns(lane->api) : UINT64_MAX, now_ns = clock_mono_ns();

	next_ns = work_ns < next_ns ? work_ns : next_ns;
	next_ns = lane->trim_ns < next_ns ? lane->trim_ns : next_ns;
	next_ns = lane->rest_ns < next_ns ? lane->rest_ns : next_ns;
	if (next_ns > now_ns) {
		thread_cond_wait(&t->changed, &t->lock, next_ns);
		return;
	}
	if (!lane->is_second && work_ns <= now_ns) {
		t->is_busy = t->is_working = true; /* the second thread answers what comes meanwhile */
		api_resume(lane->api);
	}
	pthread_mutex_unlock(&t->lock);
	if (!lane->is_second && work_ns <= now_ns)
		api_work(lane->api);
	if (lane->rest_ns <= now_ns) {
		rest(lane);
		lane->rest_ns = UINT64_MAX;
		lane->trim_ns = now_ns;
	}
	if (lane->trim_ns <= now_ns) {
		malloc_trim(0);
		lane->trim_ns = UINT64_MAX;
	}
	pthread_mutex_lock(&t->lock);
	if (!lane->is_second)
		t->is_busy = t->is_working = false;
}

static bool is_same(const struct query_job *a, const struct query_job *b)
{
	if (a->clears || b->clears || a->symbols_fd >= 0 || b->symbols_fd >= 0 || a->pack != b->pack ||
	    a->hides_addresses != b->hides_addresses || a->params.count != b->params.count || strcmp(a->path, b->path))
		return false;
	for (size_t i = 0; i < a->params.count; i++) {
		const struct query_param *p = &a->params.items[i], *q = &b->params.items[i];

		if (strcmp(p->key, q->key) || strcmp(p->value, q->value))
			return false;
	}
	return true;
}

/* Takes the same questions as @job that are due out of the list: they get its answer, which is not begun yet, and so is as
 * new as theirs would be. Under the lock. */
static void take_same(struct query_thread *t, struct query_job *job)
{
	const uint64_t now_ns = clock_mono_ns();
	struct query_job **end = &job->same, **link = &t->first;

	while (*link) {
		struct query_job *other = *link;

		if (other->not_before_ns > now_ns || !is_same(job, other)) {
			link = &other->next;
			continue;
		}
		*link = other->next;
		t->waiting--;
		*end = other;
		end = &other->next;
	}
	t->end = link;
	*end = NULL;
}

/* 0 or -ENOMEM. */
static int copy_answer(struct query_job *to, const struct query_job *from)
{
	struct buf body = BUF_EMPTY;

	buf_append(&body, from->answer.body.data, from->answer.body.len);
	if (body.failed) {
		buf_fini(&body);
		return -ENOMEM;
	}
	to->answer = from->answer;
	to->answer.body = body;
	to->is_packed = from->is_packed;
	to->hash = from->hash;
	return 0;
}

/* Ends the wait of those that take_same() took for @job: they have its answer, or wait again, before all others. Under the
 * lock. */
static void end_same(struct query_thread *t, struct query_job *job, bool is_answered)
{
	struct query_job *next, **at = &t->first;

	is_answered = is_answered && !atomic_load(&job->is_unwanted) && !job->answer.is_on_disk &&
		      job->answer.body.len <= SHARED_BYTES;
	for (struct query_job *other = job->same; other; other = next) {
		next = other->next;
		if (t->is_ended || atomic_load(&other->is_unwanted) || (is_answered && !copy_answer(other, job))) {
			put_answered(t, other);
			continue;
		}
		other->is_long = job->is_long;
		other->next = *at;
		*at = other;
		at = &other->next;
		if (!other->next)
			t->end = at;
		t->waiting++;
	}
	job->same = NULL;
}

/* Called under the lock, which is given up while a question is answered. */
static void serve(struct lane *lane, struct query_job *job)
{
	struct query_thread *t = lane->t;
	bool is_answered;

	take_same(t, job);
	if (!lane->is_second) {
		t->is_busy = true;
		api_resume(lane->api);
		if (t->first)
			pthread_cond_broadcast(&t->changed);
	}
	pthread_mutex_unlock(&t->lock);
	is_answered = answer(lane, job);
	pthread_mutex_lock(&t->lock);
	if (!lane->is_second)
		t->is_busy = false;
	job->is_long = !is_answered;
	if (is_answered || atomic_load(&job->is_unwanted) || t->is_ended)
		put_answered(t, job);
	else
		put_waiting(t, job);
	end_same(t, job, is_answered);
	lane->trim_ns = clock_mono_ns() + TRIM_NS;
	lane->rest_ns = clock_mono_ns() + REST_NS;
}

static void *query_main(void *arg)
{
	struct lane *lane = arg;
	struct query_thread *t = lane->t;

	pthread_mutex_lock(&t->lock);
	while (!t->is_ended) {
		uint64_t next_ns;
		struct query_job *job = take_due(lane, &next_ns);

		if (job)
			serve(lane, job);
		else
			work_or_wait(lane, next_ns);
	}
	pthread_mutex_unlock(&t->lock);
	return NULL;
}

static int start(struct query_thread *t, struct lane *lane, struct api *api, const char *name)
{
	lane->t = t;
	lane->api = api;
	lane->is_second = !api;
	lane->trim_ns = lane->rest_ns = UINT64_MAX;
	return thread_start(&lane->thread, name, query_main, lane);
}

int query_thread_new(struct api *api, struct loop *loop, unsigned max_waiting, struct query_thread **ret)
{
	struct query_thread *t = calloc(1, sizeof(*t));
	int err = t ? thread_cond_init(&t->changed) : -ENOMEM;

	if (err) {
		free(t);
		api_free(api);
		return err;
	}
	t->loop = loop;
	t->max_waiting = max_waiting;
	t->end = &t->first;
	t->answered_end = &t->answered;
	t->tell.fn = tell_answered;
	pthread_mutex_init(&t->lock, NULL);
	err = start(t, &t->first_lane, api, "query");
	if (err) {
		api_free(api);
		pthread_cond_destroy(&t->changed);
		pthread_mutex_destroy(&t->lock);
		free(t);
		return err;
	}
	t->has_second = api_may_have_second(api) && !start(t, &t->second_lane, NULL, "query short");
	*ret = t;
	return 0;
}

void query_thread_free(struct query_thread *t)
{
	if (!t)
		return;
	pthread_mutex_lock(&t->lock);
	t->is_ended = true;
	api_abandon(t->first_lane.api);
	pthread_cond_broadcast(&t->changed);
	pthread_mutex_unlock(&t->lock);
	pthread_join(t->first_lane.thread, NULL);
	if (t->has_second)
		pthread_join(t->second_lane.thread, NULL);
	tell_answered(&t->tell);
	api_free(t->second_lane.api);
	api_free(t->first_lane.api);
	pthread_cond_destroy(&t->changed);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

int query_thread_ask(struct query_thread *t, struct query_job *job)
{
	int err = 0;

	job->is_long = job->symbols_fd >= 0 || job->clears;
	pthread_mutex_lock(&t->lock);
	if (t->waiting >= t->max_waiting)
		err = -EAGAIN;
	else
		put_waiting(t, job);
	pthread_mutex_unlock(&t->lock);
	return err;
}

bool query_thread_cancel(struct query_thread *t, struct query_job *job)
{
	bool is_found = false;

	atomic_store(&job->is_unwanted, true);
	pthread_mutex_lock(&t->lock);
	for (struct query_job **link = &t->first; *link; link = &(*link)->next) {
		if (*link != job)
			continue;
		is_found = true;
		*link = job->next;
		if (!*link)
			t->end = link;
		t->waiting--;
		break;
	}
	pthread_mutex_unlock(&t->lock);
	return is_found;
}

int query_thread_symbols_file(const struct query_thread *t)
{
	return api_symbols_file(t->first_lane.api);
}
