/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs wait in one list under a lock, in the order they came; the thread takes the first that is due. The answer goes back
 * as work posted to the loop. At the end the loop runs no further work of ours, so jobs still on their way are their
 * askers'.
 */
#include "backend/query_thread.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/thread.h"

struct query_thread {
	struct api *api;
	struct loop *loop;
	unsigned max_waiting;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct query_job *first, **end; /* under the lock, as are the following */
	unsigned waiting;
	bool is_ended;
};

static void tell(struct loop_work *work)
{
	struct query_job *job = (struct query_job *)((char *)work - offsetof(struct query_job, work));

	job->done(job);
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

static void *query_main(void *arg)
{
	struct query_thread *t = arg;

	pthread_mutex_lock(&t->lock);
	while (!t->is_ended) {
		uint64_t next_ns;
		struct query_job *job = take_due(t, &next_ns);

		if (!job) {
			thread_cond_wait(&t->changed, &t->lock, next_ns);
			continue;
		}
		pthread_mutex_unlock(&t->lock);
		api_answer(t->api, job->path, &job->params, &job->answer);
		job->work.fn = tell;
		loop_post(t->loop, &job->work);
		pthread_mutex_lock(&t->lock);
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
	t->end = &t->first;
	pthread_mutex_init(&t->lock, NULL);
	err = thread_start(&t->thread, "query", query_main, t);
	if (err) {
		t->is_ended = true;
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
	pthread_mutex_lock(&t->lock);
	t->is_ended = true;
	pthread_cond_signal(&t->changed);
	pthread_mutex_unlock(&t->lock);
	pthread_join(t->thread, NULL);
	api_free(t->api);
	pthread_cond_destroy(&t->changed);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

int query_thread_ask(struct query_thread *t, struct query_job *job)
{
	int err = 0;

	job->thread = t;
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
