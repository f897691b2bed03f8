/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs wait in one list under a lock, in the order they came; the thread takes the first that is due. The answer goes back
 * as work posted to the loop. At the end the loop runs no further work of ours, so jobs still on their way are their
 * askers'.
 */
#include "backend/query_thread.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/clock.h"
#include "base/gzip.h"
#include "base/thread.h"

enum { PACK_BYTES = 1400 /* about what one packet holds */, GZIP_LEVEL = 3 };

#define TRIM_NS (2 * NSEC_PER_SEC)
#define REST_NS (30 * NSEC_PER_SEC)

struct query_thread {
	struct api *api;
	struct loop *loop;
	unsigned max_waiting;
	pthread_t thread;
	/* The thread's: when memory that answers took goes back, and what is kept from one to the next; not while they
	 * follow each other. */
	uint64_t trim_ns, rest_ns;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct loop_work tell;		/* first called when jobs are answered; never posted twice */
	struct query_job *first, **end; /* under the lock, as are the following */
	struct query_job *answered, **answered_end;
	unsigned waiting;
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

static void answer(struct query_thread *t, struct query_job *job)
{
	struct buf *body = &job->answer.body;
	struct buf packed = BUF_EMPTY;

	if (job->symbols_fd >= 0)
		api_take_symbols(t->api, job->symbols_fd, job->symbols_encoding, &job->answer);
	else
		api_answer(t->api, job->path, &job->params, &job->answer);
	job->hash = XXH3_64bits(body->data ? body->data : (const uint8_t *)"", body->len);
	if (!job->pack || body->len < PACK_BYTES || gzip_pack(body->data, body->len, GZIP_LEVEL, &packed)) {
		buf_fini(&packed);
		return;
	}
	buf_fini(body);
	*body = packed;
	job->is_packed = true;
}

/* Takes the first job that is due out of the list; NULL when there is none, *@next_ns is then when one will be. */
static struct query_job *take_due(struct query_thread *t, uint64_t *next_ns)
{
	uint64_t now_ns = clock_mono_ns();

	*next_ns = UINT64_MAX;
	for (struct query_job **link = &t->first; *link; link = &(*link)->next) {
		struct query_job *job = *link;

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

/* Nothing is asked until @next_ns: time for what the API has to do of its own, and to give memory back. Under the lock,
 * which it gives up for that. */
static void work_or_wait(struct query_thread *t, uint64_t next_ns)
{
	const uint64_t work_ns = api_work_ns(t->api), now_ns = clock_mono_ns();

	next_ns = work_ns < next_ns ? work_ns : next_ns;
	next_ns = t->trim_ns < next_ns ? t->trim_ns : next_ns;
	next_ns = t->rest_ns < next_ns ? t->rest_ns : next_ns;
	if (next_ns > now_ns) {
		thread_cond_wait(&t->changed, &t->lock, next_ns);
		return;
	}
	pthread_mutex_unlock(&t->lock);
	if (work_ns <= now_ns)
		api_work(t->api);
	if (t->rest_ns <= now_ns) {
		api_rest(t->api);
		t->rest_ns = UINT64_MAX;
		t->trim_ns = now_ns;
	}
	if (t->trim_ns <= now_ns) {
		malloc_trim(0);
		t->trim_ns = UINT64_MAX;
	}
	pthread_mutex_lock(&t->lock);
}

static void *query_main(void *arg)
{
	struct query_thread *t = arg;

	pthread_mutex_lock(&t->lock);
	while (!t->is_ended) {
		uint64_t next_ns;
		struct query_job *job = take_due(t, &next_ns);

		if (!job) {
			work_or_wait(t, next_ns);
			continue;
		}
		pthread_mutex_unlock(&t->lock);
		answer(t, job);
		pthread_mutex_lock(&t->lock);
		put_answered(t, job);
		t->trim_ns = clock_mono_ns() + TRIM_NS;
		t->rest_ns = clock_mono_ns() + REST_NS;
	}
	pthread_mutex_unlock(&t->lock);
	return NULL;
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
	t->api = api;
	t->loop = loop;
	t->max_waiting = max_waiting;
	t->trim_ns = t->rest_ns = UINT64_MAX;
	t->end = &t->first;
	t->answered_end = &t->answered;
	t->tell.fn = tell_answered;
	pthread_mutex_init(&t->lock, NULL);
	err = thread_start(&t->thread, "query", query_main, t);
	if (err) {
		api_free(api);
		pthread_cond_destroy(&t->changed);
		pthread_mutex_destroy(&t->lock);
		free(t);
		return err;
	}
	*ret = t;
	return 0;
}

void query_thread_free(struct query_thread *t)
{
	if (!t)
		return;
	api_abandon(t->api);
	pthread_mutex_lock(&t->lock);
	t->is_ended = true;
	pthread_cond_signal(&t->changed);
	pthread_mutex_unlock(&t->lock);
	pthread_join(t->thread, NULL);
	tell_answered(&t->tell);
	api_free(t->api);
	pthread_cond_destroy(&t->changed);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

int query_thread_ask(struct query_thread *t, struct query_job *job)
{
	int err = 0;

	job->next = NULL;
	pthread_mutex_lock(&t->lock);
	if (t->waiting >= t->max_waiting) {
		err = -EAGAIN;
	} else {
		*t->end = job;
		t->end = &job->next;
		t->waiting++;
		pthread_cond_signal(&t->changed);
	}
	pthread_mutex_unlock(&t->lock);
	return err;
}

bool query_thread_cancel(struct query_thread *t, struct query_job *job)
{
	bool is_found = false;

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
	return api_symbols_file(t->api);
}
